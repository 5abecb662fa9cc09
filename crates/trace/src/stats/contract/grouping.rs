//! Grouping by death time: whether what is written together dies together.

use crate::pages::GRANULE;
use serde::Serialize;
use std::collections::BTreeMap;

/// How mixed the death times of data are that is written together.
///
/// All writes of the workload in their order, page by page, are cut into groups of one erase block, as a
/// drive with one log and endless space would fill its blocks (the zombie curves of the paper, section 3.4).
/// A page dies when it is written again or discarded as a whole. The spread of a group is the time from its
/// first death to its last, over the time from the end of its writing to its last death: 0 if all die at
/// once, near 1 if they die one by one from the beginning. A group with live pages has its last death, at the
/// soonest, at the end of the workload. A group without deaths has no spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeathTimes {
    /// Groups that were filled.
    pub groups: u64,
    /// Of them, those with at least one death.
    pub with_deaths: u64,
    /// Of them, those without a live page at the end.
    pub dead: u64,
    /// Mean spread of those with deaths.
    pub spread_mean: f64,
    /// Half of those with deaths have at most this spread.
    pub spread_p50: f64,
    /// Nine in ten have at most this spread.
    pub spread_p90: f64,
    /// Live shares of the groups that have live pages at the end: least, 10 %, and so on to the largest.
    /// Empty without such groups.
    pub live_shares: Vec<f64>,
    /// Their mean.
    pub live_mean: f64,
}

#[derive(Clone, Copy)]
struct Group {
    dead: u32,
    first: u64,
    last: u64,
}

/// Spreads are counted in steps of a thousandth.
const STEPS: usize = 1000;

pub(super) struct Grouping {
    /// Pages of a group.
    size: u64,
    /// Groups with deaths and live pages.
    open: BTreeMap<u64, Group>,
    spreads: Vec<u64>,
    sum: f64,
    dead: u64,
}

impl Default for Grouping {
    fn default() -> Self {
        Self::new(GRANULE)
    }
}

impl Grouping {
    pub(super) fn new(block_bytes: u64) -> Self {
        let size = (block_bytes / GRANULE).clamp(1, u64::from(u32::MAX));
        Self { size, open: BTreeMap::new(), spreads: vec![0; STEPS + 1], sum: 0.0, dead: 0 }
    }

    /// A page that was written at `born` dies; both in pages written.
    pub(super) fn died(&mut self, born: u64, now: u64) {
        let number = born / self.size;
        let group = self.open.entry(number).or_insert(Group { dead: 0, first: now, last: now });
        group.dead += 1;
        group.last = now;
        if u64::from(group.dead) == self.size {
            let group = *group;
            self.open.remove(&number);
            self.dead += 1;
            self.close(number, group.first, group.last);
        }
    }

    fn close(&mut self, number: u64, first: u64, last: u64) {
        let born = (number + 1) * self.size;
        let (first, last) = (first.max(born), last.max(born));
        let spread = if last == born { 0.0 } else { (last - first) as f64 / (last - born) as f64 };
        self.sum += spread;
        self.spreads[(spread * STEPS as f64).round() as usize] += 1;
    }

    fn quantile(&self, share: f64) -> f64 {
        let total: u64 = self.spreads.iter().sum();
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.spreads.iter().position(|n| {
            seen += n;
            seen >= wanted
        });
        found.map_or(0.0, |step| step as f64 / STEPS as f64)
    }

    pub(super) fn finish(mut self, clock: u64) -> DeathTimes {
        let groups = clock / self.size;
        let open: Vec<(u64, Group)> =
            std::mem::take(&mut self.open).into_iter().filter(|(number, _)| *number < groups).collect();
        for (number, group) in &open {
            self.close(*number, group.first, clock);
        }
        let with_deaths = self.dead + open.len() as u64;
        let mut live: Vec<f64> =
            open.iter().map(|(_, group)| 1.0 - f64::from(group.dead) / self.size as f64).collect();
        live.sort_by(f64::total_cmp);
        // The others with live pages are live as a whole, and stand behind these.
        let whole = groups - with_deaths;
        let holding = live.len() as u64 + whole;
        let at = |index: u64| live.get(index as usize).copied().unwrap_or(1.0);
        let live_mean =
            if holding > 0 { (live.iter().sum::<f64>() + whole as f64) / holding as f64 } else { 0.0 };
        DeathTimes {
            groups,
            with_deaths,
            dead: self.dead,
            spread_mean: if with_deaths > 0 { self.sum / with_deaths as f64 } else { 0.0 },
            spread_p50: self.quantile(0.5),
            spread_p90: self.quantile(0.9),
            live_shares: if holding > 0 {
                (0..=10).map(|tenth| at((holding - 1) * tenth / 10)).collect()
            } else {
                Vec::new()
            },
            live_mean,
        }
    }
}
