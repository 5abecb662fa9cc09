//! 2Q, the full version.

use super::ghost::Ghost;
use super::lists::{Links, List};
use super::table::Table;
use super::{Build, Eviction, Footprint, part};
use crate::key::BlockKey;
use nandscape_core::{Info, Params, keys};

/// New blocks pass through a queue; those asked for again after they left it go to a list by recency.
#[derive(Clone, Debug)]
pub struct TwoQ {
    links: Links,
    new: List,
    known: List,
    names: Ghost,
    keys: Table<u64>,
    is_known: Table<bool>,
    new_max: u32,
    returning: Option<BlockKey>,
}

keys! { PARAMS:
    IN: f64 = share() or "25%", "share of the slots for the queue (Kin)";
    OUT: f64 = share() or "50%", "names remembered of the queue, as a share of the slots (Kout)";
}

impl Build for TwoQ {
    const INFO: Info = Info {
        name: "2q",
        summary: "new blocks pass through a queue; what is asked for again after it has left goes to a list by recency",
        source: "Johnson and Shasha, VLDB '94, full version",
        params: PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        Self {
            links: Links::new(slots),
            new: List::new(),
            known: List::new(),
            names: Ghost::new(part(slots, params.get(OUT))),
            keys: Table::of(0, slots),
            is_known: Table::of(false, slots),
            new_max: part(slots, params.get(IN)),
            returning: None,
        }
    }
}

impl TwoQ {
    fn take_new(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let slot = self.new.take_first(&mut self.links, may)?;
        self.names.push(self.keys[slot as usize]);
        Some(slot)
    }
}

impl Eviction for TwoQ {
    #[inline]
    fn hit(&mut self, slot: u32) {
        if self.is_known[slot as usize] {
            self.known.make_youngest(&mut self.links, slot);
        }
    }

    #[inline]
    fn miss(&mut self, key: BlockKey) {
        self.returning = self.names.take(key.0).then_some(key);
    }

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.new.len() > self.new_max || self.known.len() == 0 {
            self.take_new(&mut may).or_else(|| self.known.take_first(&mut self.links, &mut may))
        } else {
            self.known.take_first(&mut self.links, &mut may).or_else(|| self.take_new(&mut may))
        }
    }

    #[inline]
    fn insert(&mut self, slot: u32, key: BlockKey) {
        let is_known = self.returning.take_if(|returning| *returning == key).is_some();
        self.keys[slot as usize] = key.0;
        self.is_known[slot as usize] = is_known;
        let list = if is_known { &mut self.known } else { &mut self.new };
        list.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.is_known[slot as usize] { &mut self.known } else { &mut self.new };
        list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.keys[to as usize] = self.keys[from as usize];
        self.is_known[to as usize] = self.is_known[from as usize];
        let list = if self.is_known[to as usize] { &mut self.known } else { &mut self.new };
        list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let is_new = self.new.len() > self.new_max || self.known.len() == 0;
        let (first, second) = if is_new { (self.new, self.known) } else { (self.known, self.new) };
        let _ = first.visit(&self.links, each) && second.visit(&self.links, each);
    }

    fn favoured(&self) -> u32 {
        self.known.len()
    }

    fn footprint(&self) -> Footprint {
        let tables = self.keys.footprint() + self.is_known.footprint();
        self.links.footprint() + self.names.footprint() + tables
    }
}
