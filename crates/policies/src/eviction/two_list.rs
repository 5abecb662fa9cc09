//! `FlashCache`'s two lists of a set.

use super::lists::{Links, List};
use super::table::Table;
use super::{Build, Eviction, Footprint, part};
use crate::key::BlockKey;
use nandscape_core::{Info, Params, keys};

/// A warm and a hot list by recency. Blocks enter warm, and are hot from so many requests on; a hot list that
/// is too long gives its oldest back.
#[derive(Clone, Debug)]
pub struct TwoList {
    links: Links,
    warm: List,
    hot: List,
    state: Table<State>,
    hot_max: u32,
    promote: u8,
    /// Made hot, and given back.
    moves: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    hits: u8,
    is_hot: bool,
}

keys! { PARAMS:
    HOT: f64 = share() or "75%", "share of the slots that may be hot";
    PROMOTE: u8 = int(1, 255) or "2", "hits that make a block hot";
}

impl Build for TwoList {
    const INFO: Info = Info {
        name: "two-list",
        summary: "a warm and a hot list by recency; the oldest warm block leaves",
        source: "FlashCache's LRU (lru_hot_pct, lru_promote_thresh)",
        params: PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        Self {
            links: Links::new(slots),
            warm: List::new(),
            hot: List::new(),
            state: Table::of(State::default(), slots),
            hot_max: part(slots, params.get(HOT)),
            promote: params.get(PROMOTE),
            moves: (0, 0),
        }
    }
}

impl Eviction for TwoList {
    #[inline]
    fn hit(&mut self, slot: u32) {
        let state = &mut self.state[slot as usize];
        if state.is_hot {
            self.hot.make_youngest(&mut self.links, slot);
            return;
        }
        state.hits += 1;
        if state.hits < self.promote || self.hot_max == 0 {
            state.hits = state.hits.min(self.promote - 1);
            self.warm.make_youngest(&mut self.links, slot);
            return;
        }
        state.is_hot = true;
        self.moves.0 += 1;
        self.warm.unlink(&mut self.links, slot);
        self.hot.push_young(&mut self.links, slot);
        if self.hot.len() > self.hot_max {
            let back = self.hot.oldest();
            self.state[back as usize] = State::default();
            self.moves.1 += 1;
            self.hot.unlink(&mut self.links, back);
            self.warm.push_young(&mut self.links, back);
        }
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {}

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        self.warm
            .take_first(&mut self.links, &mut may)
            .or_else(|| self.hot.take_first(&mut self.links, &mut may))
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.state[slot as usize] = State::default();
        self.warm.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.state[slot as usize].is_hot { &mut self.hot } else { &mut self.warm };
        list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.state[to as usize] = self.state[from as usize];
        let list = if self.state[to as usize].is_hot { &mut self.hot } else { &mut self.warm };
        list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let _ = self.warm.visit(&self.links, each) && self.hot.visit(&self.links, each);
    }

    fn favoured(&self) -> u32 {
        self.hot.len()
    }

    fn moves(&self) -> (u64, u64) {
        self.moves
    }

    fn footprint(&self) -> Footprint {
        self.links.footprint() + self.state.footprint()
    }
}
