//! All blocks in one list by age: what the policies have in common that need no more than this.

use super::lists::{Links, List};
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, Key, Params};
use std::marker::PhantomData;

/// What a policy decides over a list by age.
pub trait Order: Clone + std::fmt::Debug {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// A block becomes the youngest when it is asked for, and not only when it comes.
    const HITS_RENEW: bool;
    /// Which block leaves next.
    const LEAVES: Leaves;
}

/// The end at which blocks leave.
#[derive(Clone, Copy, Debug)]
pub enum Leaves {
    /// The oldest.
    Oldest,
    /// The youngest.
    Youngest,
    /// The oldest, but at this share of the evictions the youngest.
    Both(Key<f64>),
}

/// The policy of an order.
#[derive(Clone, Debug)]
pub struct ByAge<O> {
    links: Links,
    list: List,
    /// Evictions that are due at the young end with each, and that are due by now.
    share: f64,
    due: f64,
    order: PhantomData<O>,
}

impl<O: Order> Build for ByAge<O> {
    const INFO: Info = O::INFO;

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        let share = if let Leaves::Both(share) = O::LEAVES { params.get(share) } else { 0.0 };
        Self { links: Links::new(slots), list: List::new(), share, due: 0.0, order: PhantomData }
    }
}

impl<O: Order> ByAge<O> {
    #[inline]
    fn takes_youngest(&self) -> bool {
        match O::LEAVES {
            Leaves::Oldest => false,
            Leaves::Youngest => true,
            Leaves::Both(_) => self.due + self.share >= 1.0,
        }
    }

    /// The next to leave of those that `may`.
    #[inline]
    fn next(&self, may: impl FnMut(u32) -> bool) -> Option<u32> {
        let Self { list, links, .. } = self;
        if self.takes_youngest() { list.last(links, may) } else { list.first(links, may) }
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
        if matches!(O::LEAVES, Leaves::Both(_)) {
            let taken = if self.takes_youngest() { 1.0 } else { 0.0 };
            self.due += self.share - taken;
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
        self.next(|slot| !each(slot));
    }

    fn footprint(&self) -> Footprint {
        self.links.footprint()
    }
}
