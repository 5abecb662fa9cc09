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
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Memory of the simulation in bytes, at the end.
    pub memory_bytes: u64,
    /// Entries of the policy's tables (links, counts, flags, names) that were written; none where the policy
    /// has no tables.
    pub policy_writes: Option<u64>,
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
