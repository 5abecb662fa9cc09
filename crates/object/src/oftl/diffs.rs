//! Differences of an object from its pages on the flash, as its metadata has them.

use super::patch::Patch;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Deref;

/// Bytes of a diff extent: offset in the object, length, place in the record.
pub(super) const DIFF_EXTENT: u64 = 16;

/// What is done with the bytes of differences before they are programmed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compression {
    Off,
    /// LZ4, where that is smaller.
    Lz4,
    /// There are no bytes, and they are taken to need this share.
    Share(f64),
}

/// Differences by logical page.
#[derive(Clone, Debug, Default)]
pub(super) struct Diffs {
    patches: BTreeMap<u32, Patch>,
    /// What [`Diffs::stored_bytes`] found, until something changes.
    stored: Cell<Option<u64>>,
}

impl Deref for Diffs {
    type Target = BTreeMap<u32, Patch>;

    fn deref(&self) -> &BTreeMap<u32, Patch> {
        &self.patches
    }
}

impl Diffs {
    pub fn change(&mut self) -> &mut BTreeMap<u32, Patch> {
        self.stored.set(None);
        &mut self.patches
    }

    /// Ranges of all pages.
    pub fn extents(&self) -> usize {
        self.values().map(|patch| patch.ranges().len()).sum()
    }

    /// Bytes of extents and of the differences of a page, as they were written.
    pub fn plain_bytes_of(patch: &Patch) -> u64 {
        DIFF_EXTENT * patch.ranges().len() as u64 + u64::from(patch.covered())
    }

    /// The same of all pages.
    pub fn plain_bytes(&self) -> u64 {
        self.values().map(Self::plain_bytes_of).sum()
    }

    /// Bytes of extents and of the differences in the metadata.
    pub fn stored_bytes(&self, compression: Compression) -> u64 {
        let extents = || DIFF_EXTENT * self.extents() as u64;
        match compression {
            Compression::Off => self.plain_bytes(),
            Compression::Share(share) => {
                let extents = extents();
                extents + ((self.plain_bytes() - extents) as f64 * share).ceil() as u64
            }
            Compression::Lz4 => self.stored.get().unwrap_or_else(|| {
                let bytes = extents() + self.encode(compression).0.len() as u64;
                self.stored.set(Some(bytes));
                bytes
            }),
        }
    }

    /// The bytes of all ranges in order, as the metadata has them, and whether they are compressed.
    pub fn encode(&self, compression: Compression) -> (Vec<u8>, bool) {
        let mut plain = Vec::new();
        for patch in self.values() {
            for (start, end) in patch.ranges() {
                plain.extend_from_slice(patch.part(*start, *end));
            }
        }
        if compression == Compression::Lz4 {
            let packed = lz4_flex::block::compress(&plain);
            if packed.len() < plain.len() {
                return (packed, true);
            }
        }
        (plain, false)
    }

    /// The bytes of ranges that take `len` together, from the metadata; nothing if they are damaged.
    pub fn decode(stored: &[u8], is_packed: bool, len: usize) -> Option<Cow<'_, [u8]>> {
        let plain = if is_packed {
            Cow::Owned(lz4_flex::block::decompress(stored, len).ok()?)
        } else {
            Cow::Borrowed(stored)
        };
        (plain.len() == len).then_some(plain)
    }
}
