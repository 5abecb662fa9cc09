//! Which blocks are dirty: how many of them in each set, which comes next on the disk, which has been so
//! longest, and which set.
//!
//! By place, dirty blocks are short numbers or bits in a tree (`places`), so that a run of neighbours is
//! found at once and costs little memory: about 2.2 bytes for a block alone, and a bit for one of many in a
//! row. By age they are a list through the slots, 16 bytes for every slot of the cache, kept only where
//! a cleaning policy asks for ages ([`nandscape_policies::cleaning::Needs`]). By set they are counts in
//! order, 12 bytes for each set, and a list of the sets with one age for all dirty blocks of a set takes 16
//! bytes for each set.

mod ages;
mod places;
mod sets;

use ages::Ages;
use nandscape_core::SimTime;
use nandscape_policies::BlockKey;
use places::Places;
use sets::Sets;

/// The dirty blocks of a cache. Every call costs at most the logarithm of their number.
#[derive(Debug)]
pub struct DirtyIndex {
    places: Places,
    count: u32,
    ways: u32,
    /// With one set the count says it all.
    sets: Option<Sets>,
    ages: Option<Ages>,
    /// Sets with dirty blocks, by when one of these became dirty last.
    set_ages: Option<Ages>,
}

/// Which ages are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Of every block.
    pub of_blocks: bool,
    /// Of every set.
    pub of_sets: bool,
}

impl DirtyIndex {
    /// Of a cache with `slots` slots in sets of `ways` (all of them, where it is fully associative).
    pub fn new(slots: u32, ways: u32, ages: Kept) -> Self {
        assert!(ways > 0 && slots.is_multiple_of(ways), "{slots} slots are not whole sets of {ways}");
        Self {
            places: Places::default(),
            count: 0,
            ways,
            sets: (ways < slots).then(|| Sets::new(slots / ways, ways)),
            ages: ages.of_blocks.then(|| Ages::new(slots)),
            set_ages: ages.of_sets.then(|| Ages::new(slots / ways)),
        }
    }

    /// The block `key` in `slot` is dirty since `at`, which is not before any time given earlier. `false`,
    /// and nothing happens, if it was dirty already.
    pub fn insert(&mut self, key: BlockKey, slot: u32, at: SimTime) -> bool {
        if !self.places.insert(key) {
            return false;
        }
        let set = slot / self.ways;
        let was_dirty = self.len_of_set(set) > 0;
        if let Some(ages) = &mut self.set_ages {
            if was_dirty {
                ages.remove(set);
            }
            ages.push_young(set, at);
        }
        self.count += 1;
        if let Some(sets) = &mut self.sets {
            sets.increment(set);
        }
        if let Some(ages) = &mut self.ages {
            ages.push_young(slot, at);
        }
        true
    }

    /// The block `key` in `slot` is clean or gone. `false`, and nothing happens, if it was not dirty.
    pub fn remove(&mut self, key: BlockKey, slot: u32) -> bool {
        if !self.places.remove(key) {
            return false;
        }
        let set = slot / self.ways;
        self.count -= 1;
        if let Some(sets) = &mut self.sets {
            sets.decrement(set);
        }
        if self.len_of_set(set) == 0
            && let Some(ages) = &mut self.set_ages
        {
            ages.remove(set);
        }
        if let Some(ages) = &mut self.ages {
            ages.remove(slot);
        }
        true
    }

    /// A dirty block was written again at `at`: for policies that count the age from the last write on, it is
    /// the youngest.
    pub fn rewrite(&mut self, slot: u32, at: SimTime) {
        if let Some(ages) = &mut self.ages {
            ages.remove(slot);
            ages.push_young(slot, at);
        }
    }

    /// The dirty block in `from` lies in `to` now, where none was.
    pub fn relabel(&mut self, from: u32, to: u32) {
        let (source, target) = (from / self.ways, to / self.ways);
        if let Some(sets) = self.sets.as_mut().filter(|_| source != target) {
            if let Some(ages) = &mut self.set_ages {
                // Its age is that of the youngest set at least, so that the list stays in order.
                let at = ages.youngest_at();
                if sets.count(target) == 0 {
                    ages.push_young(target, at);
                }
                if sets.count(source) == 1 {
                    ages.remove(source);
                }
            }
            sets.decrement(source);
            sets.increment(target);
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
        self.places.has(key)
    }

    /// Dirty blocks of a set.
    pub fn len_of_set(&self, set: u32) -> u32 {
        self.sets.as_ref().map_or(self.count, |sets| sets.count(set))
    }

    /// The set with the most dirty blocks, and how many these are; `None` without dirty blocks. Of equals,
    /// any.
    pub fn fullest_set(&self) -> Option<(u32, u32)> {
        let fullest = self.sets.as_ref().map_or((0, self.count), Sets::fullest);
        (fullest.1 > 0).then_some(fullest)
    }

    /// The slot that has been dirty longest, and since when. `None` if ages are not kept, or nothing is
    /// dirty.
    pub fn oldest(&self) -> Option<(u32, SimTime)> {
        self.by_age().next()
    }

    /// Of the sets with dirty blocks the one in which a block became dirty longest ago last, and when. `None`
    /// if ages of sets are not kept, or nothing is dirty.
    pub fn oldest_set(&self) -> Option<(u32, SimTime)> {
        self.set_ages.as_ref().and_then(|ages| ages.iter().next())
    }

    /// Since when a dirty slot is so. `None` if ages are not kept. Of a slot that is not dirty it means
    /// nothing.
    pub fn since(&self, slot: u32) -> Option<SimTime> {
        self.ages.as_ref().map(|ages| ages.at(slot))
    }

    /// Dirty slots, the oldest first, with their times. Empty if ages are not kept.
    pub fn by_age(&self) -> impl Iterator<Item = (u32, SimTime)> {
        self.ages.iter().flat_map(Ages::iter)
    }

    /// The first dirty block at `from` or behind, going round: behind the last comes the first of all.
    pub fn next_on_disk(&self, from: BlockKey) -> Option<BlockKey> {
        self.places.next(from).or_else(|| self.places.next(BlockKey(0)))
    }

    /// The run of dirty disk neighbours that `key` is in, at most `limit` blocks: those behind it first, then
    /// those before. Gives its first block and its length; `None` if the block is not dirty.
    pub fn run(&self, key: BlockKey, limit: u32) -> Option<(BlockKey, u32)> {
        if !self.has(key) || limit == 0 {
            return None;
        }
        let behind = self.places.row_up(key, u64::from(limit));
        let before = self.places.row_down(key, u64::from(limit) - behind);
        Some((BlockKey(key.0 - before), (before + behind) as u32))
    }

    /// Memory held, in bytes; of the tree an estimate from above.
    pub fn memory_bytes(&self) -> u64 {
        self.places.memory_bytes()
            + self.sets.as_ref().map_or(0, Sets::memory_bytes)
            + [&self.ages, &self.set_ages].into_iter().flatten().map(Ages::memory_bytes).sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
