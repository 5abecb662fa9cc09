//! Three queues: small, main and names.

use super::ghost::Ghost;
use super::lists::{Links, List, NIL};
use super::table::Table;
use super::{Build, Eviction, Footprint, part};
use crate::key::BlockKey;
use nandscape_core::{Info, Params, keys};

/// Blocks start in a small queue and reach the main one if they are asked for often enough while there, or
/// again soon after.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    ghost: Ghost,
    keys: Table<u64>,
    /// Hits up to 3, and whether the block is in the main queue.
    state: Table<State>,
    main_share: u32,
    promote: u8,
    /// The block of the last miss, if its name was remembered.
    returning: Option<BlockKey>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    hits: u8,
    is_main: bool,
}

/// More hits than these make no difference.
const HITS_MAX: u8 = 3;

keys! {
    /// Parameters of S3-FIFO, in whatever way its queues are kept.
    pub(super) PARAMS:
    pub(super) SMALL: f64 = share() or "10%", "share of the slots for the small queue";
    pub(super) GHOST: f64 = share() or "90%", "names remembered, as a share of the slots";
    pub(super) PROMOTE: u8 = int(1, 3) or "2", "hits in the small queue that lead to the main queue";
}

impl Build for S3Fifo {
    const INFO: Info = Info {
        name: "s3-fifo",
        summary: "a small queue that filters, a main queue with second chances, and names of what was filtered out",
        source: "Yang et al., SOSP '23; defaults as in libCacheSim",
        params: PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        Self {
            links: Links::new(slots),
            small: List::new(),
            main: List::new(),
            ghost: Ghost::new(part(slots, params.get(GHOST))),
            keys: Table::of(0, slots),
            state: Table::of(State::default(), slots),
            main_share: slots - part(slots, params.get(SMALL)),
            promote: params.get(PROMOTE),
            returning: None,
        }
    }
}

impl S3Fifo {
    /// Takes a block out of the small queue; those asked for often enough go to the main one on the way.
    fn evict_small(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.small.oldest();
        while slot != NIL {
            let next = self.links.younger(slot);
            let state = &mut self.state[slot as usize];
            if state.hits >= self.promote {
                *state = State { hits: 0, is_main: true };
                self.small.unlink(&mut self.links, slot);
                self.main.push_young(&mut self.links, slot);
            } else if may(slot) {
                self.small.unlink(&mut self.links, slot);
                self.ghost.push(self.keys[slot as usize]);
                return Some(slot);
            }
            slot = next;
        }
        None
    }

    /// Takes a block out of the main queue; those asked for go round, once for each hit up to 3.
    fn evict_main(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.main.oldest();
        for _ in 0..u64::from(HITS_MAX + 1) * u64::from(self.main.len()) {
            let next = self.links.younger(slot);
            let hits = &mut self.state[slot as usize].hits;
            if *hits > 0 {
                *hits -= 1;
                self.main.make_youngest(&mut self.links, slot);
            } else if may(slot) {
                self.main.unlink(&mut self.links, slot);
                return Some(slot);
            }
            slot = if next == NIL { self.main.oldest() } else { next };
        }
        None
    }
}

impl Eviction for S3Fifo {
    #[inline]
    fn hit(&mut self, slot: u32) {
        let hits = &mut self.state[slot as usize].hits;
        *hits = (*hits + 1).min(HITS_MAX);
    }

    #[inline]
    fn miss(&mut self, key: BlockKey) {
        self.returning = self.ghost.take(key.0).then_some(key);
    }

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.main.len() > self.main_share || self.small.len() == 0 {
            self.evict_main(&mut may).or_else(|| self.evict_small(&mut may))
        } else {
            self.evict_small(&mut may).or_else(|| self.evict_main(&mut may))
        }
    }

    #[inline]
    fn insert(&mut self, slot: u32, key: BlockKey) {
        let is_main = self.returning.take_if(|returning| *returning == key).is_some();
        self.keys[slot as usize] = key.0;
        self.state[slot as usize] = State { hits: 0, is_main };
        let list = if is_main { &mut self.main } else { &mut self.small };
        list.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.state[slot as usize].is_main { &mut self.main } else { &mut self.small };
        list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.keys[to as usize] = self.keys[from as usize];
        self.state[to as usize] = self.state[from as usize];
        let list = if self.state[to as usize].is_main { &mut self.main } else { &mut self.small };
        list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let is_main = self.main.len() > self.main_share || self.small.len() == 0;
        let (first, second) = if is_main { (self.main, self.small) } else { (self.small, self.main) };
        let _ = first.visit(&self.links, each) && second.visit(&self.links, each);
    }

    fn favoured(&self) -> u32 {
        self.main.len()
    }

    fn footprint(&self) -> Footprint {
        let tables = self.keys.footprint() + self.state.footprint();
        self.links.footprint() + self.ghost.footprint() + tables
    }
}
