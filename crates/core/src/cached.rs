//! What a cache counted, for the result document and for servers: a part of what a [`crate::Subsystem`]
//! reports.

use crate::command::HostCounts;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pieces of requests that went past a cache for one reason. A piece is the part of a request that lies in
/// one cache block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BypassCount {
    /// Pieces of reads.
    pub read_pieces: u64,
    /// Pieces of writes.
    pub write_pieces: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// A cache as it stands, and what it counted since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Mode: write-back, write-through, write-around, write-only or pass-through.
    pub mode: String,
    /// Cache block in bytes.
    pub block_bytes: u64,
    /// Slots there are; each holds a block.
    pub slots: u64,
    /// Slots in use.
    pub used: u64,
    /// Slots whose block is newer than the disk's.
    pub dirty: u64,
    /// Bytes that are newer than the disk's.
    pub dirty_bytes: u64,
    /// Memory of index, policy and slots, in bytes.
    pub memory_bytes: u64,
    /// Every counter by name, over all volumes: `read_hits`, `write_hits`, `dirty_replacements`,
    /// `metadata_bytes` ...; `None` for what nothing here could count.
    pub counters: BTreeMap<String, Option<u64>>,
    /// What went past the cache, by reason; reasons that did not occur are left out.
    pub bypass: BTreeMap<String, BypassCount>,
    /// Commands that went to the fast side, metadata included.
    pub fast: HostCounts,
    /// Commands that went to the disk of each volume.
    pub disks: Vec<HostCounts>,
}

impl CacheReport {
    /// A counter; 0 where there is none of that name, or nothing could count it.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().flatten().unwrap_or(0)
    }

    /// Share of read requests that were answered wholly from the cache; `None` without reads.
    pub fn read_hit_ratio(&self) -> Option<f64> {
        share(self.count("read_hits") + self.count("bypassed_read_hits"), self.count("reads"))
    }

    /// Share of write requests whose blocks were all cached; `None` without writes.
    pub fn write_hit_ratio(&self) -> Option<f64> {
        share(self.count("write_hits") + self.count("bypassed_write_hits"), self.count("writes"))
    }

    /// The same of both.
    pub fn hit_ratio(&self) -> Option<f64> {
        let hits = ["read_hits", "bypassed_read_hits", "write_hits", "bypassed_write_hits"];
        share(hits.iter().map(|name| self.count(name)).sum(), self.count("reads") + self.count("writes"))
    }

    /// Commands that went to all disks.
    pub fn disk(&self) -> HostCounts {
        self.disks.iter().fold(HostCounts::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }
}

/// What can be asked of a cache that is served.
pub trait CacheControl {
    /// Commands from now on follow other settings, by key: the mode, and the policies with their parameters.
    /// The error says what was expected, and then nothing has changed.
    fn set(&mut self, settings: &BTreeMap<String, String>) -> Result<(), String>;

    /// Writes dirty blocks to their disks, at most so many, and gives how many there were.
    fn clean(&mut self, blocks: u32, at: SimTime) -> Result<u32, String>;
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_requests_and_of_none_there_is_none() {
        let counters =
            [("reads", 8), ("read_hits", 3), ("bypassed_read_hits", 1), ("writes", 2), ("write_hits", 1)];
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), Some(count))).collect();
        let report = CacheReport { counters, ..CacheReport::default() };
        assert_eq!(
            (report.read_hit_ratio(), report.write_hit_ratio(), report.hit_ratio()),
            (Some(0.5), Some(0.5), Some(0.5))
        );
        assert_eq!(CacheReport::default().hit_ratio(), None);
    }
}
