//! The stochastic multi-queue of Linux's dm-cache.

use super::lists::{Links, List, NIL};
use super::table::Table;
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, Params, keys};

/// Queues in levels. A block's first hit of a period moves it up a level, and the oldest block there comes
/// down for it; so no counts are kept. At the end of a period the levels are made equally long.
///
/// The kernel's periods are times, and its hotspot queue decides what is promoted at all; here a period is so
/// many requests, and what is inserted has been admitted.
#[derive(Clone, Debug)]
pub struct Smq {
    links: Links,
    levels: Vec<List>,
    level: Table<u8>,
    /// Whether the block was hit in this period.
    is_hit: Table<bool>,
    used: u32,
    asked: u64,
    period: u64,
}

keys! { PARAMS:
    LEVELS: u8 = int(1, 255) or "64", "queues";
    PERIOD: u64 = int(1, 1000) or "1", "requests of a period, for each slot; the kernel's is 60 s";
}

impl Build for Smq {
    const INFO: Info = Info {
        name: "smq",
        summary: "levels of queues: a hit swaps a block one level up, the lowest level's oldest leaves",
        source: "Linux dm-cache, stochastic multi-queue; without its hotspot queue",
        params: PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        Self {
            links: Links::new(slots),
            levels: vec![List::new(); params.get(LEVELS).into()],
            level: Table::of(0, slots),
            is_hit: Table::of(false, slots),
            used: 0,
            asked: 0,
            period: params.get(PERIOD) * u64::from(slots.max(1)),
        }
    }
}

impl Smq {
    fn move_to(&mut self, slot: u32, level: usize) {
        self.levels[self.level[slot as usize] as usize].unlink(&mut self.links, slot);
        self.level[slot as usize] = level as u8;
        self.levels[level].push_young(&mut self.links, slot);
    }

    fn ask(&mut self) {
        self.asked += 1;
        if self.asked >= self.period {
            self.end_period();
        }
    }

    #[cold]
    fn end_period(&mut self) {
        self.asked = 0;
        self.is_hit.fill(false);
        let levels = self.levels.len();
        // From the top: a level that is too short takes the youngest of those below, one that is too long
        // gives its oldest down.
        for level in (1..levels).rev() {
            let target = self.used / levels as u32
                + u32::from(level as u32 >= levels as u32 - self.used % levels as u32);
            while self.levels[level].len() > target {
                let oldest = self.levels[level].oldest();
                self.move_to(oldest, level - 1);
            }
            let mut below = level;
            while self.levels[level].len() < target && below > 0 {
                match self.levels[below - 1].youngest() {
                    NIL => below -= 1,
                    youngest => self.move_to(youngest, level),
                }
            }
        }
    }
}

impl Eviction for Smq {
    #[inline]
    fn hit(&mut self, slot: u32) {
        self.ask();
        if std::mem::replace(&mut self.is_hit[slot as usize], true) {
            return;
        }
        let level = self.level[slot as usize] as usize;
        let above = (level + 1).min(self.levels.len() - 1);
        let other = self.levels[above].oldest();
        if above > level && other != NIL {
            self.move_to(other, level);
        }
        self.move_to(slot, above);
    }

    #[inline]
    fn miss(&mut self, _: BlockKey) {
        self.ask();
    }

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let links = &mut self.links;
        let slot = self.levels.iter_mut().find_map(|list| list.take_first(links, &mut may))?;
        self.used -= 1;
        Some(slot)
    }

    #[inline]
    fn insert(&mut self, slot: u32, _: BlockKey) {
        self.level[slot as usize] = 0;
        self.is_hit[slot as usize] = false;
        self.levels[0].push_young(&mut self.links, slot);
        self.used += 1;
    }

    fn remove(&mut self, slot: u32) {
        self.levels[self.level[slot as usize] as usize].unlink(&mut self.links, slot);
        self.used -= 1;
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.is_hit[to as usize] = self.is_hit[from as usize];
        self.level[to as usize] = self.level[from as usize];
        self.levels[self.level[to as usize] as usize].relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let _ = self.levels.iter().all(|list| list.visit(&self.links, each));
    }

    fn footprint(&self) -> Footprint {
        let tables = self.level.footprint() + self.is_hit.footprint();
        self.links.footprint() + Footprint::held(&self.levels) + tables
    }
}
