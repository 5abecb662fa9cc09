//! Blocks of metadata: a header with a checksum, then entries of slots or records of changes. See
//! docs/formats/cache.md.

use super::Entry;
use nandscape_policies::BlockKey;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a block of metadata, except where a smaller unit is chosen because it survives a loss of power
/// whole.
pub const BLOCK: usize = 4096;
/// Bytes of the header of a block.
pub const HEADER: usize = 64;
/// Bytes of an entry and of a record.
pub const ITEM: usize = 16;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Magic {
    /// Entries of consecutive slots.
    Table = u32::from_le_bytes(*b"nsT1"),
    Records = u32::from_le_bytes(*b"nsR1"),
    /// The last commit that was durable when this was written.
    Confirmation = u32::from_le_bytes(*b"nsC1"),
}

/// No cache lives to count so many commits or generations: a block that says so is damaged, whatever its
/// checksum.
pub const NUMBERS_END: u64 = 1 << 62;

/// Header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the table block, or place in the ring.
    pub index: u32,
    /// The commit whose state (table) or changes (records) this is.
    pub sequence: u64,
    /// Items that follow.
    pub count: u32,
    /// Which part of the commit, from 0.
    pub part: u32,
    /// Parts of the commit.
    pub parts: u32,
    /// Table blocks that the round had visited once the commit was done.
    pub visited: u64,
    /// Classes of regions in which the disks may get something newer from then on.
    pub regions: u64,
}

/// Items that a block of `unit` bytes has room for.
pub const fn items(unit: usize) -> u32 {
    ((unit - HEADER) / ITEM) as u32
}

/// Writes header and checksum over a block whose items are in place. `tag` keeps apart what earlier caches
/// left on the same device.
pub fn seal(block: &mut [u8], magic: Magic, tag: u64, header: &Header) {
    block[8..12].copy_from_slice(&(magic as u32).to_le_bytes());
    block[12..16].copy_from_slice(&header.index.to_le_bytes());
    block[16..24].copy_from_slice(&header.sequence.to_le_bytes());
    block[24..32].copy_from_slice(&tag.to_le_bytes());
    block[32..36].copy_from_slice(&header.count.to_le_bytes());
    block[36..40].copy_from_slice(&header.part.to_le_bytes());
    block[40..44].copy_from_slice(&header.parts.to_le_bytes());
    block[44..48].fill(0);
    block[48..56].copy_from_slice(&header.visited.to_le_bytes());
    block[56..64].copy_from_slice(&header.regions.to_le_bytes());
    let sum = xxh3_64(&block[8..]);
    block[..8].copy_from_slice(&sum.to_le_bytes());
}

/// The header of a block, if it is intact, of this cache, of this kind and where it belongs.
pub fn unseal(block: &[u8], magic: Magic, tag: u64, index: u32) -> Option<Header> {
    let header = Header {
        index: u32_at(block, 12),
        sequence: u64_at(block, 16),
        count: u32_at(block, 32),
        part: u32_at(block, 36),
        parts: u32_at(block, 40),
        visited: u64_at(block, 48),
        regions: u64_at(block, 56),
    };
    let is_ours = u32_at(block, 8) == magic as u32 && u64_at(block, 24) == tag && header.index == index;
    let is_intact = is_ours && u64_at(block, 0) == xxh3_64(&block[8..]);
    let is_possible = header.count <= items(block.len()) && header.sequence < NUMBERS_END;
    (is_intact && is_possible).then_some(header)
}

/// Puts an entry at place `at` among the items.
#[inline]
pub fn put_entry(block: &mut [u8], at: usize, entry: Option<Entry>) {
    let item = &mut block[HEADER + at * ITEM..][..ITEM];
    item.fill(0);
    if let Some(entry) = entry {
        item[..8].copy_from_slice(&entry.key.0.to_le_bytes());
        item[8..10].copy_from_slice(&entry.valid.to_le_bytes());
        item[10..12].copy_from_slice(&entry.dirty.to_le_bytes());
    }
}

/// The entry at place `at`; `None` where the slot is free.
pub fn entry_at(block: &[u8], at: usize) -> Option<Entry> {
    let item = &block[HEADER + at * ITEM..][..ITEM];
    entry(u64_at(item, 0), u16_at(item, 8), u16_at(item, 10))
}

/// Puts a record at place `at` among the items: `slot` holds `entry` from now on.
pub fn put_record(block: &mut [u8], at: usize, slot: u32, entry: Option<Entry>) {
    put_entry(block, at, entry);
    block[HEADER + at * ITEM + 12..][..4].copy_from_slice(&slot.to_le_bytes());
}

/// The record at place `at`.
pub fn record_at(block: &[u8], at: usize) -> (u32, Option<Entry>) {
    (u32_at(block, HEADER + at * ITEM + 12), entry_at(block, at))
}

// An entry without valid sub-blocks is no entry, and only what is valid can be dirty.
fn entry(key: u64, valid: u16, dirty: u16) -> Option<Entry> {
    (valid != 0).then_some(Entry { key: BlockKey(key), valid, dirty: dirty & valid })
}

/// Two bytes at `at`, little-endian.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// Four bytes at `at`, little-endian.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Eight bytes at `at`, little-endian.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
