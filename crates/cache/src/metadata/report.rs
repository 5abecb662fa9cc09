//! What an opening found.

use super::{Entry, MetadataError, format};
use nandscape_policies::BlockKey;
use serde::Serialize;
use std::fmt;

/// Bytes of a volume that were promised, and of which the newest version cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Lost {
    /// The volume.
    pub volume: u16,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// What an opening read, and in which state it found the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is found by itself, and told by itself")]
pub struct Report {
    /// Whether it was never used since it was made.
    pub is_new: bool,
    /// Whether the cache had been removed cleanly.
    pub is_clean: bool,
    /// The last commit that counts; 0 for kinds without commits.
    pub commit: u64,
    /// Whether a later commit was begun, and is undone.
    pub has_torn_commit: bool,
    /// Slots in use.
    pub entries: u32,
    /// Slots with dirty sub-blocks.
    pub dirty_entries: u32,
    /// Of those: slots that were clean, and in which the disk may have got something newer that was not
    /// flushed.
    pub doubted_entries: u32,
    /// Record blocks that were replayed.
    pub record_blocks: u32,
    /// Records in them.
    pub records: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Copies of the superblock that are damaged.
    pub damaged_superblocks: u32,
    /// Table blocks that are damaged in one copy at least.
    pub damaged_table_blocks: u32,
    /// Record blocks of which both copies are damaged.
    pub damaged_record_blocks: u32,
    /// Slots of which nothing is known: neither what they held nor whether it was dirty.
    pub unknown_slots: u32,
    /// Blocks of which the newest version may be lost, since the state of their slot may not be the last
    /// one.
    pub uncertain_entries: u32,
    /// The dirty bytes among those.
    pub lost: Vec<Lost>,
    /// Whether blocks that were dirty when the last session was cut short are lost, by the design of the
    /// kind (`at-removal`); which ones is not known.
    pub lost_session: bool,
}

/// What an opening found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Slots in use, by number.
    pub entries: Vec<(u32, Entry)>,
    /// Entries that may be older than the last promise. Their slots count as free; a salvage may still look
    /// at them before anything is written.
    pub uncertain: Vec<(u32, Entry)>,
    /// Entries that were clean and count as dirty: the disk may have got something newer.
    pub doubted: Vec<u32>,
    /// The classes of regions that they are in ([`super::region`]).
    pub doubtful: u64,
    /// Numbers.
    pub report: Report,
}

impl Report {
    /// What is said of a cache that was never used.
    pub const NEW: &str = "new: nothing has been cached yet";

    /// Whether damage may hide dirty blocks, so that disks may be older than what was flushed.
    pub fn hides_dirty(&self) -> bool {
        self.unknown_slots != 0 || self.damaged_record_blocks != 0 || !self.lost.is_empty()
    }

    /// An error if it does: the repairs would make that invisible.
    pub fn check(&self) -> Result<(), MetadataError> {
        if self.hides_dirty() { Err(MetadataError::Damaged) } else { Ok(()) }
    }
}

impl Found {
    /// Sorts by slot and counts.
    pub(super) fn finish(&mut self, block_bytes: u32) {
        self.entries.sort_unstable_by_key(|(slot, _)| *slot);
        self.report.entries = self.entries.len() as u32;
        self.report.dirty_entries = self.entries.iter().filter(|(_, entry)| entry.dirty != 0).count() as u32;
        self.report.doubted_entries = self.doubted.len() as u32;
        self.report.uncertain_entries = self.uncertain.len() as u32;
        let ranges = self.uncertain.iter().flat_map(|(_, entry)| dirty_of(entry, block_bytes));
        self.report.lost = merged(ranges.collect());
    }
}

pub(crate) const fn sub_bytes(block_bytes: u32) -> u32 {
    if block_bytes < 16 * 512 { 512 } else { block_bytes / 16 }
}

// The dirty sub-blocks of an entry.
pub(crate) fn dirty_of(entry: &Entry, block_bytes: u32) -> impl Iterator<Item = Lost> + use<> {
    let Entry { key, dirty, .. } = *entry;
    let len = u64::from(sub_bytes(block_bytes));
    let first = key.block() * u64::from(block_bytes);
    let range = move |bit: u64| Lost { volume: BlockKey::volume(key), offset: first + bit * len, len };
    (0..u64::from(block_bytes) / len).filter(move |bit| dirty >> bit & 1 == 1).map(range)
}

/// Neighbours as one.
pub(crate) fn merged(mut ranges: Vec<Lost>) -> Vec<Lost> {
    ranges.sort_unstable();
    let mut out: Vec<Lost> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.volume == range.volume && last.offset + last.len >= range.offset => {
                last.len = last.len.max(range.offset + range.len - last.offset);
            }
            _ => out.push(range),
        }
    }
    out
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_new {
            return f.write_str(Self::NEW);
        }
        let how = if self.is_clean { "removed cleanly" } else { "not removed cleanly" };
        write!(f, "{how}; {} blocks cached, {} of them dirty; ", self.entries, self.dirty_entries)?;
        if self.doubted_entries != 0 {
            write!(f, "{} of these since the disk may be newer; ", self.doubted_entries)?;
        }
        write!(
            f,
            "commit {}{}; ",
            self.commit,
            if self.has_torn_commit { " (a later one undone)" } else { "" }
        )?;
        write!(
            f,
            "{} records in {} blocks, {} bytes read",
            self.records, self.record_blocks, self.read_bytes
        )?;
        let damaged = self.damaged_superblocks + self.damaged_table_blocks + self.damaged_record_blocks;
        if damaged != 0 {
            let [s, t, r] = [self.damaged_superblocks, self.damaged_table_blocks, self.damaged_record_blocks];
            write!(f, "\ndamaged: {s} superblocks, {t} table blocks, {r} record blocks")?;
        }
        if self.unknown_slots != 0 {
            write!(f, "\n{} slots of which nothing is known any more, dirty or not", self.unknown_slots)?;
        }
        if self.damaged_record_blocks != 0 {
            let most = u64::from(self.damaged_record_blocks) * u64::from(format::items(format::BLOCK));
            write!(f, "\nup to {most} changes cannot be read; {} blocks dropped", self.uncertain_entries)?;
        }
        if self.lost_session {
            f.write_str(
                "\nblocks that were dirty at this end are lost, flushed ones too: this metadata is written at a clean end alone",
            )?;
        }
        for lost in &self.lost {
            write!(f, "\nlost: volume {}, {} bytes at offset {}", lost.volume, lost.len, lost.offset)?;
        }
        Ok(())
    }
}
