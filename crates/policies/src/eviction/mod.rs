//! Which block leaves when another comes.
//!
//! A policy knows the slots `0..slots` of one set (of the whole cache, where it is fully associative) and who
//! is in each. It never looks at data, and never acts. The caller keeps the index from key to slot, and the
//! list of free slots.

pub mod arc;
pub mod by_age;
pub mod clock;
pub mod fifo;
mod ghost;
pub mod lirs;
mod lists;
pub mod lru;
pub mod lru_mru;
pub mod mq;
pub mod mru;
mod names;
pub mod rand;
mod registry;
pub mod s3_fifo;
pub mod s3_fifo_compact;
pub mod sieve;
pub mod smq;
mod table;
#[cfg(test)]
mod tests;
pub mod two_list;
pub mod two_q;
pub mod w_tiny_lfu;

pub use registry::{AnyEviction, EVICTIONS, EvictionSpec, Visit, visit};
pub use table::Footprint;

use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// A policy that can be made.
pub trait Build: Eviction {
    /// Name, summary, source and parameters.
    const INFO: Info;

    /// A policy over `slots` empty slots. `params` have been checked against [`Build::INFO`].
    fn new(slots: u32, params: &Params, seed: u64) -> Self;
}

/// A replacement policy over the slots of one set.
///
/// The calls for one request: on a hit [`Eviction::hit`]; on a miss that is admitted [`Eviction::miss`], then
/// [`Eviction::evict`] where no slot is free, [`Eviction::evicted`] if the chosen block does leave, then
/// [`Eviction::insert`].
pub trait Eviction {
    /// The block in `slot` was asked for.
    fn hit(&mut self, slot: u32);

    /// `key` was asked for, is not cached, and will be inserted: the time to look at what was remembered of
    /// it.
    fn miss(&mut self, key: BlockKey);

    /// Chooses a slot among those that `may` leave (busy and dirty ones may not, as the caller wishes), and
    /// takes it out. `None` if none may.
    fn evict(&mut self, may: impl FnMut(u32) -> bool) -> Option<u32>;

    /// The block that [`Eviction::evict`] has just chosen, of `slot`, was `key`: for policies that remember
    /// who left and not who is there.
    #[inline]
    fn evicted(&mut self, slot: u32, key: BlockKey) {
        let _ = (slot, key);
    }

    /// `key` is now in `slot`, which was empty.
    fn insert(&mut self, slot: u32, key: BlockKey);

    /// The block in `slot` is gone (trimmed, invalidated, its place lost) without having been chosen.
    fn remove(&mut self, slot: u32);

    /// The block in `from` now lies in `to`, which was empty, and keeps its standing.
    fn relabel(&mut self, from: u32, to: u32);

    /// Visits blocks in about the order in which they would leave, the next one first, until `each` says
    /// `false`. Changes nothing. By default there is no order, and nothing is visited.
    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let _ = each;
    }

    /// Blocks in the part that the policy favours, where it has one.
    fn favoured(&self) -> u32 {
        0
    }

    /// Blocks that went to the favoured part because of hits, and back from it, since the beginning, where
    /// that is counted.
    fn moves(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Memory that it holds, and what it wrote there.
    fn footprint(&self) -> Footprint;
}

/// So many of the slots, rounded down.
fn part(slots: u32, share: f64) -> u32 {
    (f64::from(slots) * share) as u32
}
