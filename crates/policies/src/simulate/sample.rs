//! A part of the blocks that stands for all of them.

use super::{Accesses, Request};
use crate::hash::mix;

/// Spatial sampling at a fixed rate R (SHARDS; Waldspurger, Park, Garthwaite and Ahmad, FAST 2015): a block
/// is in the sample if its hash is below R of the range, so all of its requests are, or none. A cache of `R
/// C` blocks over the sample behaves as one of `C` over all (stack distances in the paper; any policy in
/// Waldspurger, Saemundsson, Ahmad and Park, ATC 2017).
///
/// A few very popular blocks that are in the sample, or are not, move the whole curve. The correction is that
/// of the first paper ("SHARDS-adj"): the difference between the requests that were to be expected, `R N`,
/// and those of the sample is added to the hits at the smallest distance, so misses of the sample over `R N`,
/// and not over the requests of the sample, are the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    rate: f64,
    /// Hashes below it are in; `None` takes all.
    below: Option<u64>,
    salt: u64,
}

impl Sampler {
    /// A sample of the share `rate`, above 0 and up to 1; another `seed` takes other blocks.
    ///
    /// # Errors
    ///
    /// In words, if the rate is none.
    pub fn new(rate: f64, seed: u64) -> Result<Self, String> {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(format!("{rate}: expected a share above 0, up to 1"));
        }
        let below = (rate < 1.0).then_some((rate * 2f64.powi(64)) as u64);
        Ok(Self { rate, below, salt: mix(seed ^ 0x5348_4152_4453) })
    }

    /// Share of the blocks.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether the block of this request is in the sample. The hash is not the one by which tables are
    /// indexed, or a sample would crowd into a part of them.
    #[inline]
    pub fn takes(&self, request: Request) -> bool {
        self.below.is_none_or(|below| mix(mix(request.key().0) ^ self.salt) < below)
    }

    /// Blocks of the cache over the sample that stands for one of `slots`; `None` if that is less than one.
    pub fn scaled(&self, slots: u64) -> Option<u32> {
        let scaled = (slots as f64 * self.rate).round();
        (scaled >= 1.0).then_some(scaled as u32)
    }

    /// Accesses of a cache over `all` requests, by those of one over the sample.
    pub fn corrected(&self, sample: Accesses, all: Accesses) -> Accesses {
        let up = |misses: u64, requests: u64| ((misses as f64 / self.rate).round() as u64).min(requests);
        let (reads, writes) = (all.read_hits + all.read_misses, all.write_hits + all.write_misses);
        let (read_misses, write_misses) = (up(sample.read_misses, reads), up(sample.write_misses, writes));
        Accesses {
            read_hits: reads - read_misses,
            read_misses,
            write_hits: writes - write_misses,
            write_misses,
        }
    }
}
