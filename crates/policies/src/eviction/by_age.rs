//! All blocks in one list by age: what the policies have in common that need no more than this.

use super::lists::{Links, List};
use super::{Build, Eviction};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};
use std::marker::PhantomData;

/// What a policy decides over a list by age.
pub trait Order: Clone + std::fmt::Debug {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// A block becomes the youngest when it is asked for, and not only when it comes.
    const HITS_RENEW: bool;
    /// The youngest leaves first, not the oldest.
    const YOUNGEST_LEAVES: bool;
}

/// The policy of an order.
#[derive(Clone, Debug)]
pub struct ByAge<O> {
    links: Links,
    list: List,
    order: PhantomData<O>,
}

impl<O: Order> Build for ByAge<O> {
    const INFO: Info = O::INFO;

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self { links: Links::new(slots), list: List::new(), order: PhantomData }
    }
}

impl<O: Order> ByAge<O> {
    /// The next to leave of those that `may`.
    #[inline]
    fn next(&self, may: impl FnMut(u32) -> bool) -> Option<u32> {
        if O::YOUNGEST_LEAVES { self.list.last(&self.links, may) } else { self.list.first(&self.links, may) }
    }
}

impl<O: Order> Eviction for ByAge<O> {
    #[inline]
    fn hit(&mut self, slot: u32) {
        if O::HITS_RENEW {
            self.list.make_youngest(&mut self.links, slot);
        }
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, may: impl FnMut(u32) -> bool) -> Option<u32> {
        let slot = self.next(may)?;
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
        self.next(|slot| !each(slot));
    }

    fn memory_bytes(&self) -> u64 {
        self.links.memory_bytes()
    }
}
