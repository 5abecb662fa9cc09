//! The multi-queue of the first dm-cache of Linux.

use super::lists::{Links, List, NIL};
use super::table::Table;
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, Params, keys};

/// Queues by the binary logarithm of the hit count, each in order of the last hit. The oldest block of the
/// lowest queue leaves.
///
/// Time is counted in generations of so many requests. A block that was not hit for `lifetime` generations
/// falls one level and loses half of its count. Every request looks at one level, at its four oldest
/// blocks at most: the work for a request has a fixed bound, whatever the size of the cache.
///
/// The kernel's policy also counts hits of blocks outside the cache, to decide about their promotion, and
/// keeps clean and dirty blocks apart. Here admission and [`Eviction::evict`]'s `may` do that, and a block
/// enters with a count of one.
#[derive(Clone, Debug)]
pub struct Mq {
    links: Links,
    levels: Vec<List>,
    counts: Table<Count>,
    hits_max: u32,
    generation: u32,
    lifetime: u32,
    asked: u64,
    period: u64,
    /// The level that the next request looks at.
    looks_at: usize,
}

/// Requests for a block. The logarithm of `hits` is the block's level.
#[derive(Clone, Copy, Debug)]
struct Count {
    hits: u32,
    /// When the block was hit or fell.
    generation: u32,
}

/// Blocks that a request may move down a level.
const EXPIRING: u32 = 4;

keys! { PARAMS:
    LEVELS: u8 = int(1, 32) or "16", "queues";
    PERIOD: u64 = int(1, 1000) or "1", "requests of a generation, for each slot";
    LIFETIME: u32 = int(1, 1_000_000) or "4", "generations without a hit after which a block falls a level";
}

impl Build for Mq {
    const INFO: Info = Info {
        name: "mq",
        summary: "queues by the logarithm of the hit count, blocks without hits fall, the lowest queue's oldest leaves",
        source: "Zhou et al., USENIX ATC '01; Linux dm-cache before smq, without its counts of blocks outside",
        params: PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        let levels: u8 = params.get(LEVELS);
        Self {
            links: Links::new(slots),
            levels: vec![List::new(); levels.into()],
            counts: Table::of(Count { hits: 1, generation: 0 }, slots),
            hits_max: u32::MAX >> (32 - u32::from(levels)),
            generation: 0,
            lifetime: params.get(LIFETIME),
            asked: 0,
            period: params.get(PERIOD) * u64::from(slots.max(1)),
            looks_at: 0,
        }
    }
}

impl Mq {
    #[inline]
    fn level(&self, slot: u32) -> usize {
        self.counts[slot as usize].hits.ilog2() as usize
    }

    /// Gives a block another count, and makes it the youngest of the level of that count.
    #[inline]
    fn recount(&mut self, slot: u32, hits: u32) {
        let level = self.level(slot);
        self.levels[level].unlink(&mut self.links, slot);
        self.enter(slot, hits);
    }

    #[inline]
    fn enter(&mut self, slot: u32, hits: u32) {
        self.counts[slot as usize] = Count { hits, generation: self.generation };
        self.levels[hits.ilog2() as usize].push_young(&mut self.links, slot);
    }

    #[inline]
    fn ask(&mut self) {
        self.asked += 1;
        if self.asked >= self.period {
            self.asked = 0;
            self.generation = self.generation.wrapping_add(1);
        }
        // Nothing falls from the lowest level.
        self.looks_at += 1;
        if self.looks_at >= self.levels.len() {
            self.looks_at = 0;
            return;
        }
        for _ in 0..EXPIRING {
            let oldest = self.levels[self.looks_at].oldest();
            if oldest == NIL {
                break;
            }
            let Count { hits, generation } = self.counts[oldest as usize];
            if self.generation.wrapping_sub(generation) < self.lifetime {
                break;
            }
            self.recount(oldest, hits / 2);
        }
    }
}

impl Eviction for Mq {
    #[inline]
    fn hit(&mut self, slot: u32) {
        self.ask();
        let hits = self.counts[slot as usize].hits;
        self.recount(slot, hits.saturating_add(1).min(self.hits_max));
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {
        self.ask();
    }

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let links = &mut self.links;
        self.levels.iter_mut().find_map(|list| list.take_first(links, &mut may))
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.enter(slot, 1);
    }

    fn remove(&mut self, slot: u32) {
        let level = self.level(slot);
        self.levels[level].unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.counts[to as usize] = self.counts[from as usize];
        let level = self.level(to);
        self.levels[level].relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let _ = self.levels.iter().all(|list| list.visit(&self.links, each));
    }

    fn footprint(&self) -> Footprint {
        self.links.footprint() + Footprint::held(&self.levels) + self.counts.footprint()
    }
}
