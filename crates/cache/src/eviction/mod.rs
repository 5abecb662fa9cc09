//! Which block leaves when another comes.
//!
//! A policy knows the slots `0..slots` of one set (of the whole cache, where it is fully associative) and who is in each. It never looks
//! at data, and never acts. The caller keeps the index from key to slot, and the list of free slots.

use crate::key::BlockKey;
use nandscape_core::Params;

/// A replacement policy over the slots of one set.
///
/// The calls for one request: on a hit [`Eviction::hit`]; on a miss that is admitted [`Eviction::miss`], then [`Eviction::evict`] where no slot
/// is free, then [`Eviction::insert`].
pub trait Eviction: Sized {
    /// A policy over `slots` empty slots.
    fn new(slots: u32, params: &Params, seed: u64) -> Self;

    /// The block in `slot` was asked for.
    fn hit(&mut self, slot: u32);

    /// `key` was asked for, is not cached, and will be inserted: the time to look at what was remembered of it.
    fn miss(&mut self, key: BlockKey);

    /// Chooses a slot among those that `may` leave (busy and dirty ones may not, as the caller wishes), and takes it out. `None` if none may.
    fn evict(&mut self, may: impl FnMut(u32) -> bool) -> Option<u32>;

    /// `key` is now in `slot`, which was empty.
    fn insert(&mut self, slot: u32, key: BlockKey);

    /// The block in `slot` is gone (trimmed, invalidated, its place lost) without having been chosen.
    fn remove(&mut self, slot: u32);

    /// The block in `from` now lies in `to`, which was empty, and keeps its standing.
    fn relabel(&mut self, from: u32, to: u32);

    /// Memory held, in bytes.
    fn memory_bytes(&self) -> u64;
}
