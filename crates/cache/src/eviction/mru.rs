//! Most recently used.

use super::lists::{Links, List, NIL};
use super::{Build, Eviction};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// The block that was asked for last leaves.
#[derive(Clone, Debug)]
pub struct Mru {
    links: Links,
    list: List,
}

impl Build for Mru {
    const INFO: Info = Info {
        name: "mru",
        summary: "the block that was asked for last leaves: for loops larger than the cache",
        source: "S3-19",
        params: &[],
    };

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self { links: Links::new(slots), list: List::new() }
    }
}

impl Eviction for Mru {
    #[inline]
    fn hit(&mut self, slot: u32) {
        self.list.make_youngest(&mut self.links, slot);
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.list.youngest();
        while slot != NIL && !may(slot) {
            slot = self.links.older(slot);
        }
        if slot == NIL {
            return None;
        }
        self.list.unlink(&mut self.links, slot);
        Some(slot)
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.list.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        self.list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let mut slot = self.list.youngest();
        while slot != NIL && each(slot) {
            slot = self.links.older(slot);
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.links.memory_bytes()
    }
}
