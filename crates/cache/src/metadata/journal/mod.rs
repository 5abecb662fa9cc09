//! Records of changes in a ring, and a table that follows block by block.
//!
//! A commit writes its records, each block of them twice, and some blocks of the table, in turn. The table
//! has two copies; what is written is the copy that is not the newest, and a block is passed over when both
//! copies are newer than its last change. So that nothing is lost:
//! * every record stays in the ring until both copies of its table block are newer, with a quarter of the
//!   ring to spare;
//! * a commit counts if all its records are there, and undoes nothing if not: what it writes is never the
//!   only copy of anything.

use super::format::{self, BLOCK, Header, Magic};
use super::table::{table_block, whole_table};
use super::{
    Entry, Kind, Metadata, MetadataError, RECORDS, Setup, Shape, Superblock, Survives, Table, Write,
};
use super::{clean, written};
use nandscape_core::Info;

mod open;

pub use open::open;
mod replay;

pub const KIND: Kind = Kind {
    info: Info {
        name: "journal",
        summary: "every change is recorded: what was flushed returns after a loss of power, and clean blocks stay warm",
        source: "the base of bcache; docs/formats/cache.md",
        params: &[],
    },
    shape,
    open: |superblock, area| open(superblock, area, true),
};

const RING_LEAST: u32 = 64;
/// Entries between being known and being asked for.
const AHEAD: usize = 8;

/// State beside what is on the device: one byte for each table block, and what was noted.
#[derive(Debug)]
pub struct Journal {
    superblock: Superblock,
    sequence: u64,
    /// Place in the ring of its successor.
    place: u32,
    /// Table blocks that were visited; the next one is this modulo their number.
    visited: u64,
    /// Of each table block.
    sides: Vec<Sides>,
    /// Slots that changed, some perhaps more than once.
    pending: Vec<u32>,
    /// Of the table block that is being written.
    entries: Vec<(u32, Entry)>,
    /// What the last commit said of regions, and what the next one is to say.
    regions: [u64; 2],
    /// Whether dirty bits are recorded; if not, they are in the table of a clean removal and nowhere else.
    has_dirty: bool,
}

/// The two copies of a table block.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    /// Which was written last.
    newest: u8,
    /// Whether a change of the block is missing in a copy.
    is_stale: [bool; 2],
}

fn shape(setup: &Setup) -> Result<Shape, MetadataError> {
    shape_with(setup, false)
}

/// A ring as long as the table.
pub fn shape_with(setup: &Setup, has_closing: bool) -> Result<Shape, MetadataError> {
    let block_bytes = setup.block_bytes;
    Shape::fit(setup, |slots| {
        let ring = slots.div_ceil(RECORDS).max(RING_LEAST);
        Shape { block_bytes, slots, unit: BLOCK as u32, tables: 2, ring, has_closing }
    })
}

/// Whether a shape from a superblock can be one of a journal. The ring's length is that of [`shape_with`],
/// which the bounds on replay rest on.
fn is_journal(shape: &Shape, has_closing: bool) -> bool {
    shape.tables == 2
        && shape.unit as usize == BLOCK
        && shape.ring == shape.table_blocks().max(RING_LEAST)
        && shape.has_closing == has_closing
}

/// Blocks of records that one commit may have.
fn parts_most(shape: &Shape) -> u32 {
    shape.ring / 4
}

/// Table blocks that are visited for each block of records: all twice within half a ring.
fn visits_per_part(shape: &Shape) -> u32 {
    (4 * u64::from(shape.table_blocks())).div_ceil(u64::from(shape.ring)) as u32
}

impl Journal {
    fn compact(&mut self) {
        self.pending.sort_unstable();
        self.pending.dedup();
    }

    // What is recorded of an entry.
    fn recorded(&self, entry: Entry) -> Entry {
        Entry { dirty: if self.has_dirty { entry.dirty } else { 0 }, ..entry }
    }

    fn write_records(&mut self, table: &dyn Table, visited: u64, out: &mut Vec<Write>) {
        let shape = self.superblock.shape;
        // One that has nothing to say but of regions has an empty block.
        let parts = (self.pending.len() as u32).div_ceil(RECORDS).max(1);
        for part in 0..parts {
            let first = (part * RECORDS) as usize;
            let slots = &self.pending[first..self.pending.len().min(first + RECORDS as usize)];
            let mut bytes = vec![0; BLOCK];
            for (at, slot) in slots.iter().enumerate() {
                if let Some(next) = slots.get(at + AHEAD) {
                    table.prepare(*next);
                }
                format::put_record(
                    &mut bytes,
                    at,
                    *slot,
                    table.entry(*slot).map(|entry| self.recorded(entry)),
                );
            }
            let (index, sequence, count) = (self.place, self.sequence, slots.len() as u32);
            let header = Header { index, sequence, count, part, parts, visited, regions: self.regions[1] };
            format::seal(&mut bytes, Magic::Records, self.superblock.tag(), &header);
            out.push(Write { offset: shape.ring_offset(0, self.place), bytes: bytes.clone() });
            out.push(Write { offset: shape.ring_offset(1, self.place), bytes });
            self.place = (self.place + 1) % shape.ring;
        }
    }

    fn visit(&mut self, block: u32, table: &dyn Table, out: &mut Vec<Write>) {
        let sides = &mut self.sides[block as usize];
        if !sides.is_stale.contains(&true) {
            return;
        }
        sides.newest ^= 1;
        sides.is_stale[usize::from(sides.newest)] = false;
        let copy = u32::from(sides.newest);
        let mut entries = std::mem::take(&mut self.entries);
        table.list(self.superblock.shape.slots_of(block), &mut entries);
        if !self.has_dirty {
            for (_, entry) in &mut entries {
                entry.dirty = 0;
            }
        }
        out.push(table_block(&self.superblock, copy, block, self.sequence, &entries));
        entries.clear();
        self.entries = entries;
    }
}

impl Metadata for Journal {
    fn slots(&self) -> u32 {
        self.superblock.shape.slots
    }

    fn data_offset(&self, slot: u32) -> u64 {
        self.superblock.shape.slot_offset(slot)
    }

    // Without dirty bits every block is taken as newer than the disk's, so that a block may be overwritten in
    // its place.
    fn is_in_place(&self) -> bool {
        !self.has_dirty
    }

    fn is_reuse_deferred(&self) -> bool {
        true
    }

    fn note(&mut self, slot: u32, _: Option<Entry>) {
        if self.pending.last() == Some(&slot) {
            return;
        }
        if self.pending.len() as u32 >= self.room() {
            self.compact();
        }
        self.pending.push(slot);
    }

    fn noted(&self) -> u32 {
        self.pending.len() as u32 + u32::from(self.regions[0] != self.regions[1])
    }

    fn room(&self) -> u32 {
        parts_most(&self.superblock.shape).saturating_mul(RECORDS)
    }

    fn commit(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        self.compact();
        if self.noted() == 0 {
            return;
        }
        let (shape, noted) = (self.superblock.shape, self.pending.len() as u32);
        assert!(noted <= self.room(), "{noted} changes in a commit that takes {}", self.room());
        self.sequence += 1;
        let (first, blocks) = (self.visited, shape.table_blocks());
        let visits = visits_per_part(&shape).saturating_mul(noted.div_ceil(RECORDS).max(1)).min(blocks);
        self.visited += u64::from(visits);
        self.write_records(table, self.visited, out);
        self.regions[0] = self.regions[1];
        for slot in std::mem::take(&mut self.pending) {
            self.sides[(slot / shape.per_block()) as usize].is_stale = [true; 2];
        }
        for visit in first..self.visited {
            self.visit((visit % u64::from(blocks)) as u32, table, out);
        }
    }

    fn survives(&self) -> Survives {
        if self.has_dirty { Survives::Clean } else { Survives::Dirty }
    }

    fn expect_writes(&mut self, regions: u64) {
        if self.has_dirty {
            self.regions[1] = regions;
        }
    }

    fn confirm(&self, out: &mut Vec<Write>) {
        let mut bytes = vec![0; BLOCK];
        let (sequence, regions) = (self.sequence, 0);
        let header = Header { index: 0, sequence, count: 0, part: 0, parts: 0, visited: 0, regions };
        format::seal(&mut bytes, Magic::Confirmation, self.superblock.tag(), &header);
        out.push(Write { offset: self.superblock.shape.confirmation_offset(), bytes });
    }

    fn memory_bytes(&self) -> u64 {
        let of_block = self.entries.capacity() * size_of::<(u32, Entry)>();
        (self.sides.capacity() * size_of::<Sides>() + self.pending.capacity() * size_of::<u32>() + of_block)
            as u64
    }

    fn superblock(&mut self) -> Option<&mut Superblock> {
        Some(&mut self.superblock)
    }

    fn close(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        self.commit(table, out);
        let superblock = clean(&self.superblock, self.sequence);
        if superblock.shape.has_closing {
            whole_table(&superblock, 2, table, out);
        }
        out.push(written(&superblock));
        self.superblock = superblock;
    }
}
