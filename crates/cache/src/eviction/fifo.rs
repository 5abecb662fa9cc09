//! First in, first out.

use super::lists::{Links, List};
use super::{Build, Eviction};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// The block that came first leaves first.
#[derive(Clone, Debug)]
pub struct Fifo {
    links: Links,
    list: List,
}

impl Build for Fifo {
    const INFO: Info = Info {
        name: "fifo",
        summary: "the block that came first leaves first; hits count for nothing",
        source: "FlashCache's default, EnhanceIO, RapidDisk",
        params: &[],
    };

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self { links: Links::new(slots), list: List::new() }
    }
}

impl Eviction for Fifo {
    #[inline]
    fn hit(&mut self, _: u32) {}

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
