//! How blocks are divided among streams: each stream has a share, and collection takes from the one that is
//! furthest over its own.
//!
//! With one greedy choice over all blocks every block is emptied at the same level, so that separation alone
//! gains little. A busy stream gains more from a spare block than an idle one. `auto`
//! measures how often each stream is written and how much it holds, and sets the shares that the greedy law
//! calls best.

use super::config::SplitKind;
use crate::victim::{VictimFacts, VictimPolicy};

/// Victims of each stream, and the streams' shares of the sealed blocks.
pub(super) struct Split {
    families: Vec<Family>,
    /// Shares are set anew at this time; never where they are fixed.
    next_review: Option<u64>,
    interval: u64,
    law: GreedyLaw,
}

struct Family {
    victim: Box<dyn VictimPolicy>,
    sealed: u32,
    /// Invalid pages in its sealed blocks.
    invalid: u64,
    share: f64,
    /// Bytes the host had written at the last review, and a mean of what it wrote between reviews.
    written: u64,
    rate: f64,
    /// Valid pages at the last review.
    live: u64,
}

nandscape_core::state!(impl [] Split { saved: next_review; tables: families; fixed: interval, law; });

nandscape_core::state!(impl [] Family { saved: victim, sealed, invalid, share, written, rate, live; });

impl Split {
    /// `None` for one choice over all blocks.
    pub fn new(
        kind: &SplitKind,
        pages: u64,
        pages_per_block: u32,
        victim: impl Fn() -> Box<dyn VictimPolicy>,
    ) -> Option<Self> {
        let (shares, next_review) = match kind {
            SplitKind::Global | SplitKind::Pieces => return None,
            SplitKind::Fixed(shares) => (shares.clone(), None),
            // Until the first review all compare as if they had no share, and the fullest stream gives way.
            SplitKind::Auto { logs } => (vec![0.0; *logs], Some(0)),
        };
        let family =
            |share| Family { victim: victim(), sealed: 0, invalid: 0, share, written: 0, rate: 0.0, live: 0 };
        Some(Self {
            families: shares.into_iter().map(family).collect(),
            next_review,
            interval: (pages / 8).max(1 << 16),
            law: GreedyLaw::new(pages_per_block),
        })
    }

    pub fn sealed(&mut self, family: usize, block: u32, valid: u32, invalid: u32, now: u64) {
        let family = &mut self.families[family];
        family.sealed += 1;
        family.invalid += u64::from(invalid);
        let pages = self.law.pages_per_block as u32;
        assert_eq!(valid + invalid, pages, "pages of block {block}, {valid} of them valid");
        family.victim.sealed(block, valid, now);
    }

    pub fn invalidated(&mut self, family: usize, block: u32, valid: u32, now: u64) {
        let family = &mut self.families[family];
        assert!(family.sealed > 0, "block {block} with {valid} valid pages is of a stream without any");
        family.invalid += 1;
        family.victim.invalidated(block, valid, now);
    }

    pub fn removed(&mut self, family: usize, block: u32, invalid: u32) {
        let family = &mut self.families[family];
        let held = (family.sealed, family.invalid);
        assert!(held.0 > 0 && held.1 >= invalid.into(), "block {block} with {invalid} invalid of {held:?}");
        family.sealed -= 1;
        family.invalid -= u64::from(invalid);
        family.victim.removed(block);
    }

    /// A block without valid pages if offered, else the choice of the stream furthest over its share that
    /// gains.
    pub fn pick(&mut self, facts: &VictimFacts<'_>) -> Option<u32> {
        let total: u32 = self.families.iter().map(|family| family.sealed).sum();
        let mut best: Option<(f64, u32)> = None;
        for family in self.families.iter_mut().filter(|family| family.invalid > 0) {
            let Some(block) = family.victim.pick(facts) else { continue };
            assert!(family.sealed > 0, "block {block} is offered by a stream that has none");
            if facts.blocks[block as usize].valid == 0 {
                return Some(block);
            }
            let excess = f64::from(family.sealed) - family.share * f64::from(total);
            if best.is_none_or(|(most, _)| excess > most) {
                best = Some((excess, block));
            }
        }
        best.map(|(_, block)| block)
    }

    /// Whether it is time to look at what the streams do.
    pub fn is_due(&self, now: u64) -> bool {
        self.next_review.is_some_and(|at| now >= at)
    }

    /// Sets the shares from the bytes the host wrote to each stream so far and the pages each holds; `live`
    /// gives the valid pages of every block with its stream.
    pub fn review(&mut self, now: u64, written: &[u64], live: impl Iterator<Item = (usize, u32)>) {
        assert!(self.is_due(now), "shares are set at {now}, before {:?}", self.next_review);
        self.next_review = Some(now + self.interval);
        for (family, written) in self.families.iter_mut().zip(written) {
            // A stream that falls silent loses its share by halves.
            family.rate = family.rate / 2.0 + (written - family.written) as f64;
            (family.written, family.live) = (*written, 0);
        }
        for (family, valid) in live {
            self.families[family].live += u64::from(valid);
        }
        self.divide();
    }

    /// The shares that make the sum of rate x A(live / blocks) least: where the last block gains the same in
    /// every stream. Bisects on that gain.
    fn divide(&mut self) {
        let total: u32 = self.families.iter().map(|family| family.sealed).sum();
        let pages = f64::from(total) * self.law.pages_per_block;
        let wanted = |families: &[Family], gain: f64| -> f64 {
            families.iter().map(|family| self.law.pages_for(family, gain)).sum()
        };
        let (mut low, mut high) = (1e-15, 1e15_f64);
        for _ in 0..100 {
            let middle = (low * high).sqrt();
            if wanted(&self.families, middle) > pages { low = middle } else { high = middle }
        }
        let sum = wanted(&self.families, high);
        for family in &mut self.families {
            family.share = if sum > 0.0 { self.law.pages_for(family, high) / sum } else { 0.0 };
            assert!((0.0..=1.0).contains(&family.share), "a share of {} of {sum} pages", family.share);
        }
    }

    /// Sealed blocks and invalid pages of each stream, for checks.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u64)> {
        self.families.iter().map(|family| (family.sealed, family.invalid))
    }

    /// Shares of the sealed blocks.
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        self.families.iter().map(|family| family.share)
    }
}

/// Write amplification A of greedy collection under uniform overwrites (Bux and Iliadis 2010; Desnoyers 2012)
/// as a table: blocks taken at exactly `m` valid pages hold `rho = (b - m) / (b sum of 1/i over i = m+1 ..=
/// b)` live pages a page and give `A = b / (b - m)`.
struct GreedyLaw {
    pages_per_block: f64,
    /// `(A' rho^2, rho)` between neighbouring levels, growing; A' rho^2 x rate / live is what a page saves.
    gains: Vec<(f64, f64)>,
}

impl GreedyLaw {
    fn new(pages_per_block: u32) -> Self {
        let size = f64::from(pages_per_block);
        let mut harmonic = 0.0;
        let mut points: Vec<(f64, f64)> = (1..pages_per_block)
            .rev()
            .map(|m| {
                harmonic += 1.0 / f64::from(m + 1);
                let emptied = size - f64::from(m);
                (emptied / (size * harmonic), size / emptied)
            })
            .collect();
        points.reverse();
        let gains = points
            .windows(2)
            .map(|pair| {
                let ((rho, a), (next_rho, next_a)) = (pair[0], pair[1]);
                let middle = f64::midpoint(rho, next_rho);
                ((next_a - a) / (next_rho - rho) * middle * middle, middle)
            })
            .collect();
        Self { pages_per_block: size, gains }
    }

    /// How many pages the stream should have where a page more saves `gain` copies.
    fn pages_for(&self, family: &Family, gain: f64) -> f64 {
        let live = family.live as f64;
        if family.rate <= 0.0 {
            return live;
        }
        live / self.rho(gain * live / family.rate)
    }

    /// Live pages a page at which `A' rho^2` is this.
    fn rho(&self, gain: f64) -> f64 {
        let at = self.gains.partition_point(|(point, _)| *point < gain);
        match (at.checked_sub(1).map(|i| self.gains[i]), self.gains.get(at)) {
            (Some((low, low_rho)), Some((high, high_rho))) => {
                low_rho + (high_rho - low_rho) * (gain - low) / (high - low)
            }
            (None, Some((_, rho))) => *rho,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u32);

    nandscape_core::no_state!(impl [] Fixed: "a policy of a test");

    impl VictimPolicy for Fixed {
        fn sealed(&mut self, _: u32, _: u32, _: u64) {}
        fn invalidated(&mut self, _: u32, _: u32, _: u64) {}
        fn removed(&mut self, _: u32) {}
        fn pick(&mut self, _: &VictimFacts<'_>) -> Option<u32> {
            Some(self.0)
        }
    }

    fn split(kind: &SplitKind, victims: [u32; 2]) -> Split {
        let mut split = Split::new(kind, 1000, 64, || Box::new(Fixed(0))).unwrap();
        for (family, block) in split.families.iter_mut().zip(victims) {
            family.victim = Box::new(Fixed(block));
        }
        split
    }

    #[test]
    fn the_stream_that_is_furthest_over_its_share_gives_a_block() {
        use crate::victim::{BlockInfo, BlockState};
        let mut split = split(&SplitKind::Fixed(vec![0.25, 0.75]), [0, 1]);
        let mut infos = [5, 9].map(|valid| BlockInfo { valid, state: BlockState::Sealed });
        let pick =
            |split: &mut Split, infos: &[BlockInfo]| split.pick(&VictimFacts { blocks: infos, now: 0 });
        assert_eq!(pick(&mut split, &infos), None, "nothing to gain");
        for block in 0..4 {
            split.sealed(0, block, 60, 4, 0);
        }
        (4..8).for_each(|block| split.sealed(1, block, 60, 4, 0));
        assert_eq!(pick(&mut split, &infos), Some(0), "4 of 8 where 2 are due");
        (8..40).for_each(|block| split.sealed(1, block, 60, 4, 0));
        assert_eq!(pick(&mut split, &infos), Some(1), "4 of 40 where 10 are due");
        infos[0].valid = 0;
        assert_eq!(pick(&mut split, &infos), Some(0), "it costs nothing");
    }

    #[test]
    fn automatic_shares_are_the_best_that_the_law_knows() {
        let mut split = split(&SplitKind::Auto { logs: 2 }, [0, 1]);
        (0..1280).for_each(|block| split.sealed(0, block, 50, 14, 0));
        assert!(split.is_due(0));
        // Hot and cold 20/80 at 28 % over-provisioning: 12 800 hot pages take four fifths of the writes, 51
        // 200 cold ones the rest.
        let live = (0..1280).map(|block| if block < 256 { (0, 50) } else { (1, 50) });
        split.review(0, &[80_000, 20_000], live);
        let shares: Vec<f64> = split.shares().collect();
        assert!((shares[0] + shares[1] - 1.0).abs() < 1e-9);
        let rho = |share: f64, live: f64| live / (share * 1280.0 * 64.0);
        let a = |rho: f64| {
            let size = 64.0;
            let mut harmonic = 0.0;
            for m in (1..=64).rev() {
                let level = f64::from(m);
                let q = (size - level - rho * size * harmonic) / (rho * size / level - 1.0);
                if (0.0..=1.0).contains(&q) && m < 64 {
                    return size / (size - level + q);
                }
                harmonic += 1.0 / level;
            }
            1.0
        };
        let waf = |share: f64| 0.8 * a(rho(share, 12_800.0)) + 0.2 * a(rho(1.0 - share, 51_200.0));
        let best = (200..350).map(|i| waf(f64::from(i) / 1000.0)).fold(f64::MAX, f64::min);
        assert!(waf(shares[0]) < best * 1.002, "{} at {shares:?}, best {best}", waf(shares[0]));
        assert!(!split.is_due(100) && split.is_due(1 << 16));
    }

    #[test]
    fn a_silent_stream_keeps_what_it_holds_and_little_more() {
        let mut split = split(&SplitKind::Auto { logs: 2 }, [0, 1]);
        (0..128).for_each(|block| split.sealed(0, block, 50, 14, 0));
        split.review(0, &[1000, 0], [(0, 3000), (1, 3000)].into_iter());
        let shares: Vec<f64> = split.shares().collect();
        assert!((shares[1] - 3000.0 / (128.0 * 64.0)).abs() < 1e-6, "{shares:?}");
    }
}
