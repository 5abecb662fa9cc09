//! Least recently used.

use super::lists::{Links, List};
use super::{Build, Eviction};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// The block that was not asked for for longest leaves.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    list: List,
}

impl Build for Lru {
    const INFO: Info = Info {
        name: "lru",
        summary: "the block that was not asked for for longest leaves",
        source: "FIU dm-cache, EnhanceIO, OCF",
        params: &[],
    };

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self { links: Links::new(slots), list: List::new() }
    }
}

impl Eviction for Lru {
    #[inline]
    fn hit(&mut self, slot: u32) {
        self.list.make_youngest(&mut self.links, slot);
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, may: impl FnMut(u32) -> bool) -> Option<u32> {
        self.list.take_first(&mut self.links, may)
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
        self.list.visit(&self.links, each);
    }

    fn memory_bytes(&self) -> u64 {
        self.links.memory_bytes()
    }
}
