//! Uniform data lifetime: how long data lives, and how evenly rewriting is spread.

use crate::pages::GRANULE;
use crate::stats::histogram::{Distribution, Histogram};
use serde::Serialize;
use std::collections::BTreeMap;

/// How long data lives and where it is rewritten.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lifetimes {
    /// Bytes that the workload wrote from the write of a 4 KiB page to its overwrite or discard, for the
    /// pages that died.
    pub lifetime_bytes: Distribution,
    /// Pages that died.
    pub died: u64,
    /// Of them, those that were overwritten; the others were discarded.
    pub overwritten: u64,
    /// Written pages that were alive at the end; their lifetimes are unknown, and longer.
    pub alive: u64,
    /// Erase-block-sized ranges of addresses that were written.
    pub ranges: u64,
    /// The fewest of them that take 80 % of all overwritten pages; 0 without overwrites.
    pub ranges_of_80_percent: u64,
    /// Gini coefficient of the overwritten pages over the written ranges: 0 if each has equally many, near 1
    /// if few have all. Absent without overwrites.
    pub gini: Option<f64>,
}

#[derive(Default)]
pub(super) struct Lives {
    range_pages: u64,
    lifetimes: Histogram,
    /// Overwritten pages by range.
    overwrites: BTreeMap<(u32, u64), u64>,
    /// The range that was written last, and its overwrites that are not in the map yet.
    current: Option<((u32, u64), u64)>,
}

impl Lives {
    pub(super) fn new(block_bytes: u64) -> Self {
        Self { range_pages: (block_bytes / GRANULE).max(1), ..Self::default() }
    }

    /// A page was written, over live data or not.
    pub(super) fn wrote(&mut self, volume: u32, page: u64, is_overwrite: bool) {
        let range = (volume, page / self.range_pages);
        match &mut self.current {
            Some((current, count)) if *current == range => *count += u64::from(is_overwrite),
            _ => {
                self.settle();
                self.current = Some((range, u64::from(is_overwrite)));
            }
        }
    }

    fn settle(&mut self) {
        if let Some((range, count)) = self.current.take() {
            *self.overwrites.entry(range).or_insert(0) += count;
        }
    }

    /// A page that was written at `born` died; both in pages written.
    pub(super) fn died(&mut self, born: u64, now: u64) {
        self.lifetimes.add(now.saturating_sub(born) * GRANULE);
    }

    pub(super) fn finish(mut self, clock: u64) -> Lifetimes {
        self.settle();
        let mut counts: Vec<u64> = self.overwrites.into_values().collect();
        counts.sort_unstable();
        let lifetime_bytes = self.lifetimes.distribution();
        let died = lifetime_bytes.count;
        Lifetimes {
            lifetime_bytes,
            died,
            overwritten: counts.iter().sum(),
            alive: clock - died,
            ranges: counts.len() as u64,
            ranges_of_80_percent: fewest(&counts, 0.8),
            gini: gini(&counts),
        }
    }
}

/// The fewest of the counts, sorted, that make a share of their sum.
fn fewest(sorted: &[u64], share: f64) -> u64 {
    let sum: u64 = sorted.iter().sum();
    let wanted = sum as f64 * share;
    let mut taken = 0;
    sorted
        .iter()
        .rev()
        .take_while(|count| {
            let goes_on = (taken as f64) < wanted;
            taken += **count;
            goes_on
        })
        .count() as u64
}

/// Gini coefficient of counts, sorted.
fn gini(sorted: &[u64]) -> Option<f64> {
    let (n, sum) = (sorted.len() as f64, sorted.iter().sum::<u64>() as f64);
    let weighted: f64 =
        sorted.iter().enumerate().map(|(i, count)| (2.0 * (i as f64 + 1.0) - n - 1.0) * *count as f64).sum();
    (sum > 0.0).then(|| weighted / (n * sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_counts_have_no_gini_and_one_of_ten_has_nine_tenths() {
        assert_eq!(gini(&[3, 3, 3]), Some(0.0));
        let one = gini(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 7]).unwrap();
        assert!((one - 0.9).abs() < 1e-12);
        assert_eq!((gini(&[0, 0]), gini(&[])), (None, None));
        assert_eq!((fewest(&[1, 1, 8], 0.8), fewest(&[1, 2, 7], 0.8), fewest(&[0], 0.8)), (1, 2, 0));
    }
}
