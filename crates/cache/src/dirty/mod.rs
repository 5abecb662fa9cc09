//! Which blocks are dirty: how many of them in each set, which comes next on the disk, which has been so longest.
//!
//! By place, dirty blocks are bits of 64 disk neighbours each in a tree, so that a run of neighbours is found at once and costs little memory: about 28
//! bytes for 64 blocks in a row, the same for one block alone. By age they are a list through the slots, 16 bytes for every slot of the cache, kept only where
//! a cleaning policy asks for ages ([`crate::cleaning::Needs`]). By set they are counts in order, 12 bytes for each set.

mod ages;
mod sets;

use crate::key::BlockKey;
use ages::Ages;
use nandscape_core::SimTime;
use sets::Sets;
use std::collections::BTreeMap;

/// Bytes of the tree for each entry, from above: keys and bits at the tree's usual filling of two thirds, with the inner nodes.
const TREE_ENTRY_BYTES: u64 = 28;

/// The dirty blocks of a cache. Every call costs at most the logarithm of their number.
#[derive(Debug)]
pub struct DirtyIndex {
    /// 64 blocks of one volume, those that are dirty as bits. None is empty.
    chunks: BTreeMap<u64, u64>,
    count: u32,
    ways: u32,
    /// With one set the count says it all.
    sets: Option<Sets>,
    ages: Option<Ages>,
}

impl DirtyIndex {
    /// Of a cache with `slots` slots in sets of `ways` (all of them, where it is fully associative).
    pub fn new(slots: u32, ways: u32, has_ages: bool) -> Self {
        assert!(ways > 0 && slots.is_multiple_of(ways), "{slots} slots are not whole sets of {ways}");
        Self {
            chunks: BTreeMap::new(),
            count: 0,
            ways,
            sets: (ways < slots).then(|| Sets::new(slots / ways, ways)),
            ages: has_ages.then(|| Ages::new(slots)),
        }
    }

    /// The block `key` in `slot` is dirty since `at`, which is not before any time given earlier. `false`, and nothing happens, if it was dirty already.
    pub fn insert(&mut self, key: BlockKey, slot: u32, at: SimTime) -> bool {
        let bits = self.chunks.entry(key.0 >> 6).or_default();
        let bit = 1 << (key.0 & 63);
        if *bits & bit != 0 {
            return false;
        }
        *bits |= bit;
        self.count += 1;
        if let Some(sets) = &mut self.sets {
            sets.increment(slot / self.ways);
        }
        if let Some(ages) = &mut self.ages {
            ages.push_young(slot, at);
        }
        true
    }

    /// The block `key` in `slot` is clean or gone. `false`, and nothing happens, if it was not dirty.
    pub fn remove(&mut self, key: BlockKey, slot: u32) -> bool {
        let std::collections::btree_map::Entry::Occupied(mut entry) = self.chunks.entry(key.0 >> 6) else {
            return false;
        };
        let bit = 1 << (key.0 & 63);
        if entry.get() & bit == 0 {
            return false;
        }
        *entry.get_mut() &= !bit;
        if *entry.get() == 0 {
            entry.remove();
        }
        self.count -= 1;
        if let Some(sets) = &mut self.sets {
            sets.decrement(slot / self.ways);
        }
        if let Some(ages) = &mut self.ages {
            ages.remove(slot);
        }
        true
    }

    /// A dirty block was written again at `at`: for policies that count the age from the last write on, it is the youngest.
    pub fn rewrite(&mut self, slot: u32, at: SimTime) {
        if let Some(ages) = &mut self.ages {
            ages.remove(slot);
            ages.push_young(slot, at);
        }
    }

    /// The dirty block in `from` lies in `to` now, where none was.
    pub fn relabel(&mut self, from: u32, to: u32) {
        if let Some(sets) = self.sets.as_mut().filter(|_| from / self.ways != to / self.ways) {
            sets.decrement(from / self.ways);
            sets.increment(to / self.ways);
        }
        if let Some(ages) = &mut self.ages {
            ages.relabel(from, to);
        }
    }

    /// Dirty blocks.
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether this block is dirty.
    pub fn has(&self, key: BlockKey) -> bool {
        self.chunks.get(&(key.0 >> 6)).is_some_and(|bits| bits >> (key.0 & 63) & 1 == 1)
    }

    /// Dirty blocks of a set.
    pub fn len_of_set(&self, set: u32) -> u32 {
        self.sets.as_ref().map_or(self.count, |sets| sets.count(set))
    }

    /// The set with the most dirty blocks, and how many these are; `None` without dirty blocks. Of equals, any.
    pub fn fullest_set(&self) -> Option<(u32, u32)> {
        let fullest = self.sets.as_ref().map_or((0, self.count), Sets::fullest);
        (fullest.1 > 0).then_some(fullest)
    }

    /// The slot that has been dirty longest, and since when. `None` if ages are not kept, or nothing is dirty.
    pub fn oldest(&self) -> Option<(u32, SimTime)> {
        self.by_age().next()
    }

    /// Since when a dirty slot is so. `None` if ages are not kept. Of a slot that is not dirty it means nothing.
    pub fn since(&self, slot: u32) -> Option<SimTime> {
        self.ages.as_ref().map(|ages| ages.at(slot))
    }

    /// Dirty slots, the oldest first, with their times. Empty if ages are not kept.
    pub fn by_age(&self) -> impl Iterator<Item = (u32, SimTime)> {
        self.ages.iter().flat_map(Ages::iter)
    }

    /// The first dirty block at `from` or behind, going round: behind the last comes the first of all.
    pub fn next_on_disk(&self, from: BlockKey) -> Option<BlockKey> {
        self.next_behind(from).or_else(|| self.next_behind(BlockKey(0)))
    }

    /// The run of dirty disk neighbours that `key` is in, at most `limit` blocks: those behind it first, then those before. Gives its first block and its length; `None`
    /// if the block is not dirty.
    pub fn run(&self, key: BlockKey, limit: u32) -> Option<(BlockKey, u32)> {
        if !self.has(key) || limit == 0 {
            return None;
        }
        let behind = self.length_up(key, u64::from(limit));
        let before = self.length_down(key, u64::from(limit) - behind);
        Some((BlockKey(key.0 - before), (before + behind) as u32))
    }

    /// Memory held, in bytes; of the tree an estimate from above.
    pub fn memory_bytes(&self) -> u64 {
        self.chunks.len() as u64 * TREE_ENTRY_BYTES
            + self.sets.as_ref().map_or(0, Sets::memory_bytes)
            + self.ages.as_ref().map_or(0, Ages::memory_bytes)
    }

    fn next_behind(&self, from: BlockKey) -> Option<BlockKey> {
        let chunk = from.0 >> 6;
        for (at, bits) in self.chunks.range(chunk..) {
            let bits = if *at == chunk { bits & (u64::MAX << (from.0 & 63)) } else { *bits };
            if bits != 0 {
                return Some(BlockKey(at << 6 | u64::from(bits.trailing_zeros())));
            }
        }
        None
    }

    /// Dirty blocks in a row from `key` on, `room` at most, all of the same volume.
    fn length_up(&self, key: BlockKey, room: u64) -> u64 {
        let room = room.min((1 << BlockKey::BLOCK_BITS) - key.block());
        let mut length = 0;
        for (chunk, bits) in self.chunks.range(key.0 >> 6..) {
            // The first block not counted yet.
            let Some(at) = (length < room).then(|| key.0 + length).filter(|at| at >> 6 == *chunk) else {
                break;
            };
            let ones = u64::from((bits >> (at & 63)).trailing_ones());
            length += ones;
            if (at & 63) + ones < 64 {
                break;
            }
        }
        length.min(room)
    }

    /// Dirty blocks in a row right before `key`, `room` at most, all of the same volume.
    fn length_down(&self, key: BlockKey, room: u64) -> u64 {
        let room = room.min(key.block());
        let mut length = 0;
        while length < room {
            // The block last counted; the one before it is looked for.
            let before = key.0 - length - 1;
            let Some(bits) = self.chunks.get(&(before >> 6)) else { break };
            let ones = u64::from((bits << (63 - (before & 63))).leading_ones());
            length += ones;
            if ones <= before & 63 {
                break;
            }
        }
        length.min(room)
    }
}

#[cfg(test)]
mod tests;
