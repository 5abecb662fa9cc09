//! What the data path counts, in blocks: a request over several blocks counts once for each.

/// Blocks by what became of them, since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Read, and all that was asked for was there.
    pub read_hits: u64,
    /// Read, cached, but not all that was asked for was there.
    pub read_partial_hits: u64,
    /// Read and not cached.
    pub read_misses: u64,
    /// Written and cached.
    pub write_hits: u64,
    /// Written and not cached.
    pub write_misses: u64,
    /// Of the misses: not inserted.
    pub bypassed: u64,
    /// Inserted.
    pub inserted: u64,
    /// Chosen by the eviction policy.
    pub evicted: u64,
    /// Of those: dirty, so written to the disk first.
    pub evicted_dirty: u64,
    /// Dropped, or parts of them, since a write or trim went past the cache.
    pub invalidated: u64,
    /// Written to the disk without being evicted.
    pub cleaned: u64,
    /// Moved to another slot, since committed metadata refer to the old one.
    pub moved: u64,
    /// Metadata commits.
    pub commits: u64,
}
