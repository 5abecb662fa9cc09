//! Second chance.

use super::lists::{Links, List, NIL};
use super::table::Table;
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// First in, first out, but a block that was asked for goes round once more.
#[derive(Clone, Debug)]
pub struct Clock {
    links: Links,
    list: List,
    asked: Table<bool>,
}

impl Build for Clock {
    const INFO: Info = Info {
        name: "clock",
        summary: "first in, first out with a second chance for blocks that were asked for",
        source: "Corbato 1968; one bit, as in libCacheSim",
        params: &[],
    };

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self { links: Links::new(slots), list: List::new(), asked: Table::of(false, slots) }
    }
}

impl Eviction for Clock {
    #[inline]
    fn hit(&mut self, slot: u32) {
        self.asked[slot as usize] = true;
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.list.oldest();
        // Every block is passed twice at most: once with its bit, once without.
        for _ in 0..2 * u64::from(self.list.len()) {
            let next = self.links.younger(slot);
            if std::mem::take(&mut self.asked[slot as usize]) {
                self.list.make_youngest(&mut self.links, slot);
            } else if may(slot) {
                self.list.unlink(&mut self.links, slot);
                return Some(slot);
            }
            slot = if next == NIL { self.list.oldest() } else { next };
        }
        None
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.asked[slot as usize] = false;
        self.list.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        self.list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.asked[to as usize] = self.asked[from as usize];
        self.list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        self.list.visit(&self.links, each);
    }

    fn footprint(&self) -> Footprint {
        self.links.footprint() + self.asked.footprint()
    }
}
