//! How often caches miss: eviction policies alone over a workload, without data, time or devices.
//!
//! * [`advise()`]: the curves of many policies, and what follows from them.
//! * [`simulate()`]: any number of caches over one reading of a workload.

mod advise;
mod feed;
mod simulate;

pub use advise::{AdviseCase, Advised, advise};
pub use feed::footprint;
pub use simulate::{Case, Replacement, simulate};

use nandscape_core::ParamError;
use nandscape_sim::Progress;
use nandscape_stack::RunError;
use std::sync::atomic::{AtomicBool, Ordering};

/// How to go about it. Nothing here but the seed changes what is found.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Seed of samples and of policies that draw.
    pub seed: u64,
    /// Simulations at the same time; `None` for one per core.
    pub jobs: Option<usize>,
    /// Set from outside to stop: [`simulate()`] then has partial results, [`advise()`] none.
    pub stop: Option<&'a AtomicBool>,
    /// Called now and then.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Options<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Size of a simulated cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheSize {
    /// Blocks, at least 1.
    Blocks(u32),
    /// Share of the blocks that the workload reads and writes, from 0 to 1.
    Share(f64),
}

impl CacheSize {
    /// Blocks for a workload with so many different ones, at least 1.
    pub fn blocks(self, footprint: u64) -> u32 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Share(share) => (footprint as f64 * share).round().clamp(1.0, f64::from(1 << 30)) as u32,
        }
    }
}

fn bad_value(key: &str, value: impl std::fmt::Display, expected: String) -> RunError {
    RunError::Config(ParamError::bad(key, value, expected).into())
}
