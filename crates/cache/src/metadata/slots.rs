//! An entry for each slot, in place.

use super::table::{group_blocks, read_table, table_block, table_group, whole_table};
use super::{
    Area, Entry, Found, Kind, Metadata, MetadataError, Opened, Setup, Shape, Superblock, Table, Write,
};
use super::{clean, running, written};
use nandscape_core::Info;

pub const KIND: Kind = Kind {
    info: Info {
        name: "slots",
        summary: "an entry for each slot in place, written before a block that becomes dirty is acknowledged; clean blocks return only after a clean removal",
        source: "FlashCache, EnhanceIO; [cache-article flashcache]",
        params: &[],
    },
    shape,
    open,
};

#[derive(Debug)]
struct Slots {
    superblock: Superblock,
    // Groups of table blocks that are to be written.
    pending: Vec<u32>,
}

// A block of the table is no larger than what survives a loss of power whole: in place there is no second
// copy. Blocks are written in groups of 4096 bytes, as FlashCache and EnhanceIO write theirs.
fn shape(setup: &Setup) -> Result<Shape, MetadataError> {
    let (block_bytes, unit) = (setup.block_bytes, setup.store_block.clamp(512, 4096));
    Shape::fit(setup, |slots| Shape { block_bytes, slots, unit, tables: 1, ring: 0, has_closing: false })
}

fn open(superblock: &Superblock, area: &mut dyn Area) -> Result<Opened, MetadataError> {
    superblock.shape.check_one_table()?;
    let mut found = Found::default();
    found.report.is_clean = superblock.is_clean;
    let removal = superblock.removal;
    found.entries.reserve_exact(superblock.shape.slots as usize);
    let damaged = read_table(superblock, 0, area, &mut found, |found, sequence, slot, entry| {
        if superblock.is_clean && sequence == removal {
            found.entries.push((slot, entry));
        } else if entry.dirty != 0 {
            found.entries.push((slot, Entry { valid: entry.dirty, ..entry }));
        }
    });
    found.finish(superblock.shape.block_bytes);
    let superblock = running(superblock, 0);
    let mut repairs: Vec<Write> =
        damaged.iter().map(|block| table_block(&superblock, 0, *block, 0, &[])).collect();
    repairs.push(written(&superblock));
    let metadata = Box::new(Slots { superblock, pending: Vec::new() });
    Ok(Opened { metadata, superblock: None, found, repairs })
}

// What a crash brings back of an entry.
fn kept(entry: Option<&Entry>) -> Option<(u64, u16)> {
    entry.filter(|entry| entry.dirty != 0).map(|entry| (entry.key.0, entry.dirty))
}

impl Metadata for Slots {
    fn slots(&self) -> u32 {
        self.superblock.shape.slots
    }

    fn data_offset(&self, slot: u32) -> u64 {
        self.superblock.shape.slot_offset(slot)
    }

    fn is_in_place(&self) -> bool {
        true
    }

    // Becoming clean must not wait either: the slot is given to another block next, and a crash would call
    // that one dirty.
    fn is_synchronous(&self, old: Option<&Entry>, new: Option<&Entry>) -> bool {
        kept(old) != kept(new)
    }

    fn note(&mut self, slot: u32, _: Option<Entry>) {
        let group = slot / self.superblock.shape.per_block() / group_blocks(&self.superblock);
        if self.pending.last() != Some(&group) {
            self.pending.push(group);
        }
    }

    fn noted(&self) -> u32 {
        self.pending.len() as u32
    }

    fn commit(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        self.pending.sort_unstable();
        self.pending.dedup();
        let superblock = &self.superblock;
        let write = |group| table_group(superblock, 0, group, 0, table, |entry| entry.dirty != 0);
        out.extend(self.pending.drain(..).map(write));
    }

    fn memory_bytes(&self) -> u64 {
        (self.pending.capacity() * size_of::<u32>()) as u64
    }

    fn superblock(&mut self) -> Option<&mut Superblock> {
        Some(&mut self.superblock)
    }

    fn close(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        self.pending.clear();
        let superblock = clean(&self.superblock, 0);
        whole_table(&superblock, 0, table, out);
        out.push(written(&superblock));
        self.superblock = superblock;
    }
}
