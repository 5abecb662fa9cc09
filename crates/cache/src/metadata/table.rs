//! Blocks of the table: an entry for each of consecutive slots.

use super::format::{self, BLOCK, Header, Magic};
use super::{Area, Entry, Found, Superblock, Table, Write};

/// Makes zeroes a table block with these entries, which are all of its slots'.
fn encode(superblock: &Superblock, block: u32, sequence: u64, entries: &[(u32, Entry)], bytes: &mut [u8]) {
    let slots = superblock.shape.slots_of(block);
    let (first, count) = (slots.start, slots.len() as u32);
    for (slot, entry) in entries {
        format::put_entry(bytes, (slot - first) as usize, Some(*entry));
    }
    let header = Header { index: block, sequence, count, part: 0, parts: 0, visited: 0, regions: 0 };
    format::seal(bytes, Magic::Table, superblock.tag(), &header);
}

/// The write of a table block with these entries, which are all of its slots'.
pub fn table_block(
    superblock: &Superblock,
    copy: u32,
    block: u32,
    sequence: u64,
    entries: &[(u32, Entry)],
) -> Write {
    let mut bytes = vec![0; superblock.shape.unit as usize];
    encode(superblock, block, sequence, entries, &mut bytes);
    Write { offset: superblock.shape.table_offset(copy, block), bytes }
}

/// Table blocks that are written together: each survives a loss of power whole or as it was, and together
/// they are as large as a block of metadata.
pub fn group_blocks(superblock: &Superblock) -> u32 {
    BLOCK as u32 / superblock.shape.unit
}

/// The write of a group of table blocks, with the entries to keep.
pub fn table_group(
    superblock: &Superblock,
    copy: u32,
    group: u32,
    sequence: u64,
    table: &dyn Table,
    keep: impl Fn(&Entry) -> bool,
) -> Write {
    let shape = &superblock.shape;
    let first = group * group_blocks(superblock);
    let end = shape.table_blocks().min(first + group_blocks(superblock));
    let (mut bytes, mut entries) = (vec![0; ((end - first) * shape.unit) as usize], Vec::new());
    for (block, bytes) in (first..end).zip(bytes.chunks_exact_mut(shape.unit as usize)) {
        entries.clear();
        table.list(shape.slots_of(block), &mut entries);
        entries.retain(|(_, entry)| keep(entry));
        encode(superblock, block, sequence, &entries, bytes);
    }
    Write { offset: shape.table_offset(copy, first), bytes }
}

/// The writes of all blocks of a table copy.
pub fn whole_table(superblock: &Superblock, copy: u32, table: &dyn Table, out: &mut Vec<Write>) {
    let groups = superblock.shape.table_blocks().div_ceil(group_blocks(superblock));
    let sequence = superblock.generation;
    out.extend((0..groups).map(|group| table_group(superblock, copy, group, sequence, table, |_| true)));
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
