//! All blocks of a region in a random order, each once, without memory: a keyed bijection on the next power
//! of two, stepped through in order, numbers beyond the region left out (fewer than half).

use nandscape_core::rng::Rng;

/// One order. Each round multiplies by an odd number and folds high bits into low ones, both bijections on k
/// bits.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    blocks: u64,
    mask: u64,
    shift: u32,
    keys: [(u64, u64); ROUNDS],
    next: u64,
}

const ROUNDS: usize = 3;

impl Permutation {
    /// An order of `blocks` (at least 1) blocks.
    pub fn new(blocks: u64, rng: &mut impl Rng) -> Self {
        let mask = blocks.next_power_of_two() - 1;
        let bits = mask.count_ones();
        let mut permutation =
            Self { blocks, mask, shift: bits.div_ceil(2).max(1), keys: [(0, 0); ROUNDS], next: 0 };
        permutation.restart(rng);
        permutation
    }

    pub fn restart(&mut self, rng: &mut impl Rng) {
        self.next = 0;
        for key in &mut self.keys {
            *key = (rng.next_u64() | 1, rng.next_u64());
        }
    }

    #[inline]
    fn place(&self, index: u64) -> u64 {
        let mut x = index;
        for (factor, offset) in self.keys {
            x = x.wrapping_add(offset).wrapping_mul(factor) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }

    /// The next block; `None` when each was given once.
    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        while self.next <= self.mask {
            let block = self.place(self.next);
            self.next += 1;
            if block < self.blocks {
                return Some(block);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::seeded;

    #[test]
    fn every_block_comes_once() {
        let mut rng = seeded(5);
        for blocks in [1, 2, 3, 5, 64, 1000, 4096, 65_537] {
            let mut order = Permutation::new(blocks, &mut rng);
            let mut seen = vec![false; blocks as usize];
            while let Some(block) = order.next() {
                assert!(!std::mem::replace(&mut seen[block as usize], true), "{block} of {blocks} twice");
            }
            assert!(seen.iter().all(|s| *s), "{blocks}");
        }
    }

    /// Two consecutive blocks are as far apart as two random ones: mean distance of a third, and both halves
    /// alike at any time.
    #[test]
    fn the_order_looks_random() {
        let mut rng = seeded(6);
        for blocks in [1u64 << 16, 100_000] {
            let mut order = Permutation::new(blocks, &mut rng);
            let first: Vec<u64> = (0..10_000).filter_map(|_| order.next()).collect();
            let distance: u64 = first.windows(2).map(|w| w[0].abs_diff(w[1])).sum();
            let mean = distance as f64 / (first.len() - 1) as f64 / blocks as f64;
            assert!((mean - 1.0 / 3.0).abs() < 0.015, "{mean}");
            let low = first.iter().filter(|b| **b < blocks / 2).count() as f64 / first.len() as f64;
            assert!((low - 0.5).abs() < 0.02, "{low}");
            // Neighbours in the order are not neighbours in the region more often than by chance (2 in
            // `blocks`).
            let close = first.windows(2).filter(|w| w[0].abs_diff(w[1]) <= 1).count();
            assert!(close <= 8, "{close}");
        }
    }
}
