//! Any block.

use super::lists::NIL;
use super::table::Table;
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{Info, Params};

/// A block that is drawn leaves.
#[derive(Clone, Debug)]
pub struct Rand {
    used: Table<u32>,
    /// Where each slot is in `used`.
    place: Table<u32>,
    rng: Xoshiro256PlusPlus,
}

impl Build for Rand {
    const INFO: Info = Info {
        name: "rand",
        summary: "a block that is drawn leaves; the seed is the run's",
        source: "EnhanceIO, bcache",
        params: &[],
    };

    fn new(slots: u32, _: &Params, seed: u64) -> Self {
        Self { used: Table::with_capacity(slots), place: Table::of(NIL, slots), rng: seeded(seed) }
    }
}

impl Eviction for Rand {
    #[inline]
    fn hit(&mut self, _: u32) {}

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.used.is_empty() {
            return None;
        }
        // From the drawn place onwards: one draw an eviction, whoever may leave.
        let drawn = below(&mut self.rng, self.used.len() as u64) as usize;
        let (before, after) = self.used.split_at(drawn);
        let slot = *after.iter().chain(before).find(|slot| may(**slot))?;
        self.remove(slot);
        Some(slot)
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.place[slot as usize] = self.used.len() as u32;
        self.used.push(slot);
    }

    fn remove(&mut self, slot: u32) {
        let place = self.place[slot as usize];
        self.used.swap_remove(place as usize);
        if let Some(moved) = self.used.get(place as usize) {
            self.place[*moved as usize] = place;
        }
    }

    fn relabel(&mut self, from: u32, to: u32) {
        let place = self.place[from as usize];
        self.used[place as usize] = to;
        self.place[to as usize] = place;
    }

    fn footprint(&self) -> Footprint {
        self.used.footprint() + self.place.footprint()
    }
}
