//! Blocks of the table: an entry for each of consecutive slots.

use super::format::{self, Header, Magic};
use super::{Area, Entry, Found, Superblock, Table, Write};

/// The write of a table block with these entries, which are all of its slots'.
pub fn table_block(
    superblock: &Superblock,
    copy: u32,
    block: u32,
    sequence: u64,
    entries: &[(u32, Entry)],
) -> Write {
    let shape = &superblock.shape;
    let mut bytes = vec![0; shape.unit as usize];
    let slots = shape.slots_of(block);
    let (first, count) = (slots.start, slots.len() as u32);
    for (slot, entry) in entries {
        format::put_entry(&mut bytes, (slot - first) as usize, Some(*entry));
    }
    let header = Header { index: block, sequence, count, part: 0, parts: 0, visited: 0, regions: 0 };
    format::seal(&mut bytes, Magic::Table, superblock.tag(), &header);
    Write { offset: shape.table_offset(copy, block), bytes }
}

/// The writes of all blocks of a table copy.
pub fn whole_table(superblock: &Superblock, copy: u32, table: &dyn Table, out: &mut Vec<Write>) {
    let mut entries = Vec::new();
    for block in 0..superblock.shape.table_blocks() {
        entries.clear();
        table.list(superblock.shape.slots_of(block), &mut entries);
        out.push(table_block(superblock, copy, block, superblock.generation, &entries));
    }
}

/// Reads a copy of the table, gives each entry with the stamp of its block, and returns the damaged blocks,
/// whose slots are counted as unknown.
pub fn read_table(
    superblock: &Superblock,
    copy: u32,
    area: &mut dyn Area,
    found: &mut Found,
    mut each: impl FnMut(&mut Found, u64, u32, Entry),
) -> Vec<u32> {
    let shape = &superblock.shape;
    let mut damaged = Vec::new();
    let (offset, unit) = (shape.table_offset(copy, 0), shape.unit);
    found.report.read_bytes += u64::from(shape.table_blocks()) * u64::from(unit);
    scan(area, offset, shape.table_blocks(), unit, |block, bytes| {
        let header = bytes.and_then(|bytes| format::unseal(bytes, Magic::Table, superblock.tag(), block));
        let slots = shape.slots_of(block);
        if let (Some(bytes), Some(header)) = (bytes, header) {
            let entries =
                slots.enumerate().filter_map(|(at, slot)| Some((slot, format::entry_at(bytes, at)?)));
            entries.for_each(|(slot, entry)| each(found, header.sequence, slot, entry));
        } else {
            found.report.damaged_table_blocks += 1;
            found.report.unknown_slots += slots.len() as u32;
            damaged.push(block);
        }
    });
    damaged
}

/// Reads `count` blocks in large pieces, and one by one where a piece cannot be read. `None` is a block that
/// cannot.
pub fn scan(
    area: &mut dyn Area,
    offset: u64,
    count: u32,
    unit: u32,
    mut each: impl FnMut(u32, Option<&[u8]>),
) {
    const PIECE: u32 = 1 << 20;
    let mut piece = vec![0; PIECE as usize];
    let step = PIECE / unit;
    let mut first = 0;
    while first < count {
        let blocks = step.min(count - first);
        let at = |block: u32| offset + u64::from(block) * u64::from(unit);
        let bytes = &mut piece[..(blocks * unit) as usize];
        let is_read = area.read(at(first), bytes).is_ok();
        for (block, bytes) in (first..).zip(bytes.chunks_exact_mut(unit as usize)) {
            let is_read = is_read || area.read(at(block), bytes).is_ok();
            each(block, is_read.then_some(&*bytes));
        }
        first += blocks;
    }
}
