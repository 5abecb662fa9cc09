//! A hand that passes over what was asked for.

use super::lists::{Links, List, NIL};
use super::table::Table;
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// A queue that nothing moves in: the hand goes from old to young, spares what was asked for since it last
/// came by, and takes the first that was not.
#[derive(Clone, Debug)]
pub struct Sieve {
    links: Links,
    list: List,
    asked: Table<bool>,
    hand: u32,
}

impl Build for Sieve {
    const INFO: Info = Info {
        name: "sieve",
        summary: "a hand goes from old to young, spares what was asked for and takes the first that was not",
        source: "Zhang et al., NSDI '24",
        params: &[],
    };

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self { links: Links::new(slots), list: List::new(), asked: Table::of(false, slots), hand: NIL }
    }
}

impl Eviction for Sieve {
    #[inline]
    fn hit(&mut self, slot: u32) {
        self.asked[slot as usize] = true;
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.hand;
        // Every block is passed twice at most: once with its bit, once without.
        for _ in 0..2 * u64::from(self.list.len()) {
            if slot == NIL {
                slot = self.list.oldest();
            }
            if !std::mem::take(&mut self.asked[slot as usize]) && may(slot) {
                self.hand = self.links.younger(slot);
                self.list.unlink(&mut self.links, slot);
                return Some(slot);
            }
            slot = self.links.younger(slot);
        }
        self.hand = slot;
        None
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.asked[slot as usize] = false;
        self.list.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        if self.hand == slot {
            self.hand = self.links.younger(slot);
        }
        self.list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        if self.hand == from {
            self.hand = to;
        }
        self.asked[to as usize] = self.asked[from as usize];
        self.list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let mut slot = self.hand;
        for _ in 0..self.list.len() {
            slot = if slot == NIL { self.list.oldest() } else { slot };
            if !each(slot) {
                return;
            }
            slot = self.links.younger(slot);
        }
    }

    fn footprint(&self) -> Footprint {
        self.links.footprint() + self.asked.footprint()
    }
}
