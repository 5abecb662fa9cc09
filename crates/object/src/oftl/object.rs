//! An object in memory.

use super::diffs::{Compression, Diffs};
use super::layout::{Known, LEAF_HEAD, Layout, NOWHERE, RUN};
use super::patch::Patch;
use nandscape_core::{Allocation, Extent, Hint, SimTime};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Bytes of a metadata record before its lists.
pub(super) const HEAD: u64 = 64;
/// Bytes of a leaf in the metadata of its object.
pub(super) const LEAF: u64 = 16;

/// What a page counts for in the cache beside its bytes.
const WAITING: u64 = 128;

/// What does not change of all objects of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub page_bytes: u32,
    /// Pages of a leaf.
    pub leaf_pages: u32,
    /// Most bytes of places in the metadata of an object; if there are more, they go to layout pages.
    pub inline_bytes: u64,
    pub stores_data: bool,
    pub compression: Compression,
}

impl Sizes {
    pub const fn new(page_bytes: u32, stores_data: bool, compression: Compression) -> Self {
        let leaf_pages = (page_bytes - LEAF_HEAD) / 4;
        Self { page_bytes, leaf_pages, inline_bytes: page_bytes as u64 / 4, stores_data, compression }
    }

    /// A patch without ranges.
    pub const fn patch(&self) -> Patch {
        Patch::new(self.stores_data)
    }

    /// Pages of a record, which has the places of all of them but the first in it.
    pub const fn parts(&self, bytes: u64) -> u64 {
        let page = self.page_bytes as u64;
        let mut parts = bytes.div_ceil(page);
        while parts * page < bytes + 4 * (parts - 1) {
            parts += 1;
        }
        parts
    }

    /// Bytes for diff extents and their data in a record that has `bytes` besides.
    pub const fn diff_room(&self, bytes: u64) -> u64 {
        let parts = self.parts(bytes);
        parts * self.page_bytes as u64 - 4 * (parts - 1) - bytes
    }
}

/// Buffers of pages that were written, for pages to come, so that no memory is taken and given back for each.
#[derive(Debug, Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    most: usize,
}

impl Spare {
    /// At most so many.
    pub const fn new(most: usize) -> Self {
        Self { buffers: Vec::new(), most }
    }

    /// A buffer, of which nothing is meant to stay.
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Takes back a buffer.
    #[inline]
    pub fn put(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < self.most {
            self.buffers.push(buffer);
        }
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.capacity() as u64).sum()
    }
}

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub id: u64,
    pub size: u64,
    pub hint: Hint,
    pub attributes: Box<[u8]>,
    pub layout: Layout,
    /// Differences from the pages on the flash, which are in the metadata; by logical page.
    pub diffs: Diffs,
    /// What was written since the last flush.
    pub dirty: BTreeMap<u32, Patch>,
    pub dirty_bytes: u64,
    /// Logical pages with anything in them.
    pub touched: u64,
    /// Places of its metadata.
    pub parts: Vec<u32>,
    /// The write of its metadata.
    pub meta_tid: u64,
    /// Objects that are deleted with the next metadata.
    pub replaced: Vec<u64>,
    /// Since when it has something to flush.
    pub dirty_since: Option<SimTime>,
    /// The next flush has to write metadata.
    pub needs_meta: bool,
    /// Since it was last asked whether it may leave the memory.
    pub is_used: bool,
}

impl Object {
    pub fn new(id: u64, hint: Hint, sizes: &Sizes) -> Self {
        Self {
            id,
            size: 0,
            hint,
            attributes: Box::default(),
            layout: Layout::new(sizes.leaf_pages),
            diffs: Diffs::default(),
            dirty: BTreeMap::new(),
            dirty_bytes: 0,
            touched: 0,
            parts: Vec::new(),
            meta_tid: 0,
            replaced: Vec::new(),
            dirty_since: None,
            needs_meta: true,
            is_used: true,
        }
    }

    /// Whether anything of a logical page is on the flash or about to be.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        self.layout.get(page).is_some() || self.diffs.contains_key(&page) || self.dirty.contains_key(&page)
    }

    /// Whether the first byte of an extent is in a page that has anything, and how far this goes on in it.
    pub fn allocation(&self, extent: Extent, page_bytes: u32) -> Allocation {
        let end = extent.end().min(self.size).div_ceil(page_bytes.into()) as u32;
        let mut from = (extent.offset / u64::from(page_bytes)).min(end.into()) as u32;
        let patched =
            |patches: &BTreeMap<u32, Patch>, from| patches.range(from..end).next().map(|(page, _)| *page);
        let pages = std::iter::from_fn(|| {
            let next = if from < end && self.has(from) {
                from
            } else {
                let stored = self.layout.within(from, end).next();
                let of = [stored, patched(&self.diffs, from), patched(&self.dirty, from)];
                of.into_iter().flatten().min()?
            };
            from = next + 1;
            Some((next, 1))
        });
        Allocation::of_runs(extent, self.size, page_bytes.into(), pages)
    }

    /// Keeps a part of a page in memory, without data zeroes; gives by how much more that counts in the
    /// cache.
    #[inline]
    pub fn keep(
        &mut self,
        page: u32,
        (start, end): (u32, u32),
        data: Option<&[u8]>,
        sizes: &Sizes,
        spare: &mut Spare,
    ) -> u64 {
        let mut before = 0;
        let patch = match self.dirty.entry(page) {
            Entry::Vacant(place) if sizes.stores_data && end - start == sizes.page_bytes => {
                let patch = Patch::whole(spare.take(), data, sizes.page_bytes);
                return Self::waiting(place.insert(patch));
            }
            Entry::Vacant(place) => place.insert(sizes.patch()),
            Entry::Occupied(place) => {
                let patch = place.into_mut();
                before = Self::waiting(patch);
                patch
            }
        };
        patch.write(start, end, data);
        Self::waiting(patch) - before
    }

    /// Bytes that count of a logical page.
    pub fn page_len(&self, page: u32, sizes: &Sizes) -> u32 {
        let start = u64::from(page) * u64::from(sizes.page_bytes);
        self.size.saturating_sub(start).min(sizes.page_bytes.into()) as u32
    }

    /// Bytes of its metadata without diffs.
    pub fn record_bytes(&self, sizes: &Sizes) -> u64 {
        let places = self.layout.run_bytes(sizes.inline_bytes);
        let places = places.unwrap_or_else(|| LEAF * self.layout.leaves().count() as u64);
        HEAD + self.attributes.len() as u64 + 8 * self.replaced.len() as u64 + places
    }

    /// Bytes of its metadata.
    pub fn metadata_bytes(&self, sizes: &Sizes) -> u64 {
        self.record_bytes(sizes) + self.diffs.stored_bytes(sizes.compression)
    }

    /// Pages that all of its metadata takes if it is written now.
    pub fn metadata_pages(&self, sizes: &Sizes) -> u64 {
        let leaves = self.layout.leaves().filter(|(_, leaf)| leaf.known != Known::Whole).count() as u64;
        sizes.parts(self.metadata_bytes(sizes)) + leaves
    }

    /// Pages that it can take, once it has so many touched ones, of which none is behind `end`: each on its
    /// own, layout pages if the metadata has no room for their places, and metadata.
    pub fn cost(&self, touched: u64, end: u64, attributes: u64, sizes: &Sizes) -> u64 {
        let most_inline = (4 + RUN) * touched;
        let leaves = if most_inline <= sizes.inline_bytes {
            0
        } else {
            touched.min(end.div_ceil(sizes.leaf_pages.into()) + 1)
        };
        let places = most_inline.min(sizes.inline_bytes).max(LEAF * leaves);
        let replaced = 8 * self.replaced.len() as u64;
        touched + leaves + sizes.parts(HEAD + attributes + replaced + places)
    }

    /// Where its first metadata page is, if it has any.
    pub fn place(&self) -> u32 {
        self.parts.first().copied().unwrap_or(NOWHERE)
    }

    /// What a page that waits for a flush counts for in the cache: its bytes, and memory besides.
    pub fn waiting(patch: &Patch) -> u64 {
        WAITING + u64::from(patch.covered())
    }

    /// Whether a flush has something to do.
    pub fn is_dirty(&self) -> bool {
        self.needs_meta || !self.dirty.is_empty()
    }

    /// Whether it has been written and waits for nothing.
    pub fn is_on_flash(&self) -> bool {
        let waits = self.dirty_since.is_some() || !self.dirty.is_empty() || !self.replaced.is_empty();
        !waits && !self.parts.is_empty()
    }

    /// Whether its metadata on the flash says everything of it.
    pub fn is_known(&self) -> bool {
        self.is_on_flash() && !self.needs_meta && !self.layout.lags()
    }

    /// Memory in bytes, roughly.
    pub fn bytes(&self) -> u64 {
        let patches = |patches: &BTreeMap<u32, Patch>| {
            patches.values().map(|patch| 64 + u64::from(patch.covered())).sum::<u64>()
        };
        size_of::<Self>() as u64
            + self.attributes.len() as u64
            + self.layout.bytes()
            + patches(&self.diffs)
            + patches(&self.dirty)
    }
}
