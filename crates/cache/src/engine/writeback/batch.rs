//! Neighbours in one disk write.

use super::Writeback;
use crate::engine::directory::Directory;
use crate::engine::error::CacheError;
use crate::engine::timeline::{Gather, Moment};
use nandscape_core::Extent;
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;

/// Bytes of one disk write at most, so that the memory it passes through is bounded.
const WRITE_MAX: u64 = 1 << 20;

/// Bytes that a block which has to leave takes with it to the disk at most.
const RUN_MAX: u64 = 256 << 10;

/// What was begun.
#[derive(Debug, Default)]
pub struct Begun {
    /// Blocks that are clean now.
    pub blocks: u32,
    /// Blocks of which a part is clean now.
    pub parts: u32,
    /// Disk writes.
    pub writes: u32,
    /// When these are done.
    pub written: Gather,
    /// When the last read ends that the next one begins after; `None`: all begin at once.
    pub read: Option<Moment>,
    pub error: Option<CacheError>,
}

/// A part of a block in a write.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub slot: u32,
    pub start: u32,
    pub end: u32,
    /// Its sub-blocks.
    pub mask: u16,
}

/// A disk write that is being put together.
#[derive(Debug, Default)]
pub struct Pending {
    pub volume: u16,
    pub extent: Option<Extent>,
    pub parts: Vec<Part>,
}

impl Pending {
    /// The write with a part that begins at `start` of a volume's disk, if that goes on where it ends and is
    /// not too large for it.
    pub fn joined(&self, volume: u16, start: u64, len: u64, block_bytes: u32) -> Option<Extent> {
        let goes_on = |extent: &Extent| {
            self.volume == volume
                && extent.end() == start
                && extent.len + len <= WRITE_MAX.max(u64::from(block_bytes))
        };
        self.extent.filter(goes_on).map(|extent| Extent::new(extent.offset, extent.len + len))
    }
}

impl Writeback {
    /// A dirty block that is to leave and its dirty neighbours on the disk, in order, and how many of these
    /// come before it. The list is given back ([`Writeback::run`]).
    pub fn run_around<E: Eviction>(&mut self, directory: &Directory<E>, slot: u32) -> (Vec<u32>, u32) {
        let dirty_at = |volume: u16, block: u64| {
            let slot = directory.find(BlockKey::new(volume, block))?;
            (directory.slots.dirty_bits(slot) != 0 && !directory.pinned.has(slot)).then_some(slot)
        };
        let key = directory.slots.key(slot);
        let mut room = (RUN_MAX / u64::from(directory.shape.block_bytes())).max(1) - 1;
        let mut front = 0;
        let mut slots = std::mem::take(&mut self.run);
        slots.clear();
        slots.push(slot);
        while room > 0
            && let Some(before) = key.block().checked_sub(front + 1)
            && let Some(other) = dirty_at(key.volume(), before)
        {
            slots.push(other);
            (front, room) = (front + 1, room - 1);
        }
        slots.reverse();
        let mut behind = key.block() + 1;
        while room > 0
            && let Some(other) = dirty_at(key.volume(), behind)
        {
            slots.push(other);
            (behind, room) = (behind + 1, room - 1);
        }
        (slots, front as u32)
    }

    /// Up to `max` dirty blocks from the hand on, going round over the slots, in the order of the disk.
    pub fn next_dirty<E: Eviction>(&mut self, directory: &Directory<E>, max: u32) -> Vec<u32> {
        let slots = &directory.slots;
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..slots.count() {
            if found.len() as u32 >= max.min(slots.dirty) {
                break;
            }
            if slots.dirty_bits(self.hand) != 0 {
                found.push(self.hand);
            }
            self.hand = if self.hand + 1 == slots.count() { 0 } else { self.hand + 1 };
        }
        found.sort_unstable_by_key(|slot| slots.key(*slot));
        found
    }
}
