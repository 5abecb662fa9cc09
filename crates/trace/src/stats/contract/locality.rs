//! Locality: what a mapping cache of some size would find, by the working set of the workload.

use crate::pages::GRANULE;
use crate::stats::histogram::{Distribution, Histogram};
use serde::Serialize;

/// How soon pages are used again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Locality {
    /// Bytes of pages read or written between two uses of the same 4 KiB page, the second included.
    pub reuse_bytes: Distribution,
    /// Uses of pages, each request as many as it touches.
    pub uses: u64,
    /// First uses of a page, which no cache has.
    pub first_uses: u64,
    /// What mapping caches of growing size would find: 256 KiB of addresses, four times as much and so on,
    /// and last all that is touched.
    pub coverage: Vec<Coverage>,
}

/// What a mapping cache finds that covers so many bytes of addresses on average, if it keeps the pages of the
/// last uses: the working set of Denning (CACM 11(5), 1968), which follows LRU closely. Page by page: a cache
/// that loads neighbours along does better on sequential loads. Within 1/16 of the distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// Bytes of addresses whose entries it holds.
    pub bytes: u64,
    /// Share of the uses whose entry it has.
    pub hits: f64,
}

#[derive(Default)]
pub(super) struct Uses {
    clock: u64,
    distances: Histogram,
    first: u64,
}

impl Uses {
    /// Uses so far.
    pub(super) fn clock(&self) -> u64 {
        self.clock - 1
    }

    /// A page is used whose last use was then.
    pub(super) fn count(&mut self, last: Option<u64>) {
        match last {
            // Distances in bytes, so that they are reported as they are counted.
            Some(last) => self.distances.add((self.clock - last) * GRANULE),
            None => self.first += 1,
        }
        self.clock += 1;
    }

    pub(super) fn finish(self, touched: u64, last_uses: impl Iterator<Item = u64>) -> Locality {
        const SMALLEST: u64 = 256 << 10;
        let mut residuals = Histogram::default();
        last_uses.for_each(|last| residuals.add((self.clock - last) * GRANULE));
        let reuse_bytes = self.distances.distribution();
        let stays = [reuse_bytes.buckets.as_slice(), &residuals.distribution().buckets].concat();
        let mut locality =
            Locality { reuse_bytes, uses: self.clock, first_uses: self.first, coverage: Vec::new() };
        let touched = touched * GRANULE;
        let mut bytes = SMALLEST;
        while bytes < touched {
            locality.coverage.push(locality.covered(&stays, bytes));
            bytes *= 4;
        }
        if touched > 0 {
            let hits = 1.0 - self.first as f64 / self.clock as f64;
            locality.coverage.push(Coverage { bytes: touched, hits });
        }
        locality
    }
}

impl Locality {
    /// Looks for the longest time that pages may stay unused with no more than `bytes` of them on average. A
    /// page stays until its next use or, after its last one, until the end of the workload, but never longer
    /// than that time: `stays` has the bytes used meanwhile, and how often.
    fn covered(&self, stays: &[(u64, u64)], bytes: u64) -> Coverage {
        let resident = |most: u64| {
            let sum: u128 = stays.iter().map(|(stay, n)| u128::from(most.min(*stay)) * u128::from(*n)).sum();
            sum as f64 / self.uses as f64
        };
        let (mut low, mut high) = (0, self.uses.saturating_mul(GRANULE));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if resident(middle) <= bytes as f64 { low = middle } else { high = middle - 1 }
        }
        let hits: u64 = self.reuse_bytes.buckets.iter().filter(|(d, _)| *d <= low).map(|(_, n)| n).sum();
        Coverage { bytes, hits: hits as f64 / self.uses as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Coverage of a sequence of pages.
    fn locality(pages: impl Iterator<Item = u64>) -> Locality {
        let mut last = std::collections::BTreeMap::new();
        let mut uses = Uses::default();
        for page in pages {
            uses.count(last.get(&page).copied());
            last.insert(page, uses.clock());
        }
        let touched = last.len() as u64;
        uses.finish(touched, last.into_values())
    }

    #[test]
    fn a_loop_misses_until_all_of_it_is_covered() {
        // 256 pages, 1 MiB, ten times.
        let got = locality((0..2560).map(|i| i % 256));
        assert_eq!((got.uses, got.first_uses, got.reuse_bytes.p50), (2560, 256, 1 << 20));
        let coverage: Vec<_> = got.coverage.iter().map(|c| (c.bytes, c.hits)).collect();
        assert_eq!(coverage, [(256 << 10, 0.0), (1 << 20, 0.9)]);
    }

    #[test]
    fn uniform_use_finds_what_share_is_covered() {
        let mut rng = nandscape_core::rng::seeded(3);
        let got = locality((0..400_000).map(|_| nandscape_core::rng::below(&mut rng, 4096)));
        assert_eq!(got.coverage.last().unwrap().bytes, 16 << 20);
        for Coverage { bytes, hits } in &got.coverage[..3] {
            let expected = *bytes as f64 / f64::from(16 << 20);
            assert!((hits - expected).abs() < 0.03, "{hits} at {bytes}: {expected}");
        }
    }
}
