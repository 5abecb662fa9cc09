//! Entries of the tables as bytes: block words and page records.

use crate::layout::{OOB_HEAD, OOB_MOST, RECORD_HEAD, RECORD_MOST};
use nandscape_core::{BlockId, OutOfBand, Ppn};
use nandscape_media::checksum::sum;

/// The most erases an image can count for a block.
pub(crate) const MOST_ERASES: u32 = (1 << 29) - 1;

/// Records of pages of up to 36 KiB have at most so many bytes.
const SHORT: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockWord {
    pub erases: u32,
    /// Its last page is programmed.
    pub is_full: bool,
    /// Some page is programmed.
    pub is_open: bool,
    pub is_bad: bool,
}

impl BlockWord {
    pub fn encode(self, block: BlockId, which: u32) -> [u8; 8] {
        let value = self.erases << 3
            | u32::from(self.is_full) << 2
            | u32::from(self.is_open) << 1
            | u32::from(self.is_bad);
        let mut word = [0; 8];
        word[..4].copy_from_slice(&value.to_le_bytes());
        word[4..].copy_from_slice(&word_sum(block, which, value).to_le_bytes());
        word
    }

    /// Grows with every change of a word between two erases, and with every erase.
    pub const fn age(self) -> (u32, bool, bool, bool) {
        (self.erases, self.is_bad, self.is_full, self.is_open)
    }

    /// `None` where the checksum is wrong.
    pub fn decode(bytes: &[u8], block: BlockId, which: u32) -> Option<Self> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let value = half(0);
        (half(4) == word_sum(block, which, value)).then_some(Self {
            erases: value >> 3,
            is_full: value & 4 != 0,
            is_open: value & 2 != 0,
            is_bad: value & 1 != 0,
        })
    }
}

/// Bound to block and place, so that another's word is not taken for it.
fn word_sum(block: BlockId, which: u32, value: u32) -> u32 {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&block.0.to_le_bytes());
    bytes[4..8].copy_from_slice(&which.to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    sum(&bytes)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data = 1,
    /// Zeroes, which are not stored.
    Blank = 2,
    /// Program or erase cut short.
    Torn = 3,
}

/// A page record without the checksums of its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub kind: Kind,
    /// Erases of the block when the page was programmed.
    pub generation: u32,
    /// Syncs of the image until then, modulo 2^32.
    pub epoch: u32,
}

/// What stands in a place of the page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Empty,
    Record(Record),
    Broken,
}

/// What stands in a record besides its own fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside<'a> {
    /// The OOB as it is stored.
    pub oob: &'a [u8],
    /// Checksums of the units.
    pub sums: &'a [u32],
    /// Where the OOB goes on that is longer than [`OOB_HEAD`].
    pub rest_at: usize,
}

impl Record {
    /// Writes the record over `place`, `sums` and the rest of the OOB behind it.
    pub fn encode(&self, page: Ppn, beside: Beside<'_>, place: &mut [u8]) {
        if place.len() <= SHORT {
            self.encode_in(&mut [0; SHORT], page, beside, place);
        } else {
            self.encode_in(&mut [0; RECORD_MOST], page, beside, place);
        }
    }

    /// As [`Self::encode`], with room to lay the record out.
    #[inline]
    fn encode_in(&self, room: &mut [u8], page: Ppn, beside: Beside<'_>, place: &mut [u8]) {
        let Beside { oob, sums, rest_at } = beside;
        let bytes = &mut room[..place.len()];
        let head = oob.len().min(OOB_HEAD);
        bytes[..head.min(6)].copy_from_slice(&oob[..head.min(6)]);
        bytes[6] = self.kind as u8;
        if head > 6 {
            bytes[8..2 + head].copy_from_slice(&oob[6..head]);
        }
        if oob.len() > OOB_HEAD {
            bytes[rest_at..][..oob.len() - OOB_HEAD].copy_from_slice(&oob[OOB_HEAD..]);
        }
        bytes[16..20].copy_from_slice(&self.generation.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.epoch.to_le_bytes());
        for (index, sum) in sums.iter().enumerate() {
            bytes[RECORD_HEAD + 4 * index..][..4].copy_from_slice(&sum.to_le_bytes());
        }
        // The checksum is over the page's number in its own place.
        bytes[24..28].copy_from_slice(&page.0.to_le_bytes());
        let crc = sum(bytes);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        place.copy_from_slice(bytes);
    }

    /// What stands in a place.
    pub fn decode(bytes: &[u8], page: Ppn) -> Entry {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let crc = word(24);
        if crc == 0 && bytes.iter().all(|byte| *byte == 0) {
            return Entry::Empty;
        }
        let kind = match bytes[6] {
            1 => Kind::Data,
            2 => Kind::Blank,
            3 => Kind::Torn,
            _ => return Entry::Broken,
        };
        if crc != record_sum(bytes, page) {
            return Entry::Broken;
        }
        Entry::Record(Self { kind, generation: word(16), epoch: word(20) })
    }

    /// The OOB in a record whose rest of it is at `rest_at`.
    #[inline]
    pub fn oob<O: OutOfBand>(bytes: &[u8], rest_at: usize) -> O {
        let mut oob = [0; OOB_MOST];
        oob[..6].copy_from_slice(&bytes[..6]);
        oob[6..OOB_HEAD].copy_from_slice(&bytes[8..16]);
        if O::BYTES > OOB_HEAD {
            oob[OOB_HEAD..O::BYTES].copy_from_slice(&bytes[rest_at..][..O::BYTES - OOB_HEAD]);
        }
        O::decode(&oob[..O::BYTES])
    }

    #[inline]
    pub fn unit_sum(bytes: &[u8], unit: u32) -> u32 {
        let at = RECORD_HEAD + 4 * unit as usize;
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    }
}

/// Over the page's number and the record but its checksum.
fn record_sum(bytes: &[u8], page: Ppn) -> u32 {
    let (mut short, mut long);
    let all = if bytes.len() <= SHORT {
        short = [0; SHORT];
        &mut short[..bytes.len()]
    } else {
        long = [0; RECORD_MOST];
        &mut long[..bytes.len()]
    };
    all.copy_from_slice(bytes);
    all[24..28].copy_from_slice(&page.0.to_le_bytes());
    sum(all)
}
