//! What a simulation says of itself, as one object of a JSON array.

use super::Counts;
use serde::Serialize;

/// One simulated cache over one workload. Fields are added, never renamed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The workload as it was typed.
    pub workload: String,
    /// Eviction policy, with the parameters that were typed.
    pub eviction: String,
    /// Design whose map, block and policy these are; none where a policy was named by itself.
    pub preset: Option<String>,
    /// `full`, `linear` or `cluster-hashed`.
    pub map: &'static str,
    /// Slots of a set; all of them where the map is full.
    pub ways: u32,
    /// Bytes of a cache block; 0 where every request counts as one object.
    pub block_bytes: u64,
    /// Blocks that the cache holds.
    pub size_blocks: u32,
    /// The same in bytes.
    pub size_bytes: u64,
    /// Blocks read and written; trims are none.
    pub requests: u64,
    /// Those that were cached.
    pub hits: u64,
    /// Those that were not.
    pub misses: u64,
    /// Misses over requests.
    pub miss_ratio: f64,
    /// Blocks read that were cached.
    pub read_hits: u64,
    /// Blocks read that were not.
    pub read_misses: u64,
    /// Blocks written that were cached.
    pub write_hits: u64,
    /// Blocks written that were not.
    pub write_misses: u64,
    /// Blocks that left for others.
    pub evictions: u64,
    /// Cached blocks that were trimmed.
    pub trimmed: u64,
    /// Blocks cached at the end.
    pub used_blocks: u64,
    /// Memory of the simulation in bytes, at the end.
    pub memory_bytes: u64,
    /// Seed of policies that draw.
    pub seed: u64,
    /// Seconds that this simulation took by itself.
    pub wall_s: f64,
    /// Requests over these seconds.
    pub requests_per_wall_s: f64,
    /// Seconds for reading and splitting the workload, once for all simulations of the command.
    pub reading_wall_s: f64,
    /// Interrupted: what was counted until then.
    pub partial: bool,
}

impl Row {
    /// Takes over what was counted.
    pub fn count(&mut self, counts: &Counts) {
        self.requests = counts.requests();
        self.hits = counts.hits();
        self.misses = counts.misses();
        self.miss_ratio = counts.miss_ratio();
        self.read_hits = counts.read_hits;
        self.read_misses = counts.read_misses;
        self.write_hits = counts.write_hits;
        self.write_misses = counts.write_misses;
        self.evictions = counts.evictions;
        self.trimmed = counts.trimmed;
        self.used_blocks = counts.used;
    }
}
