//! What the printers of `table` and `status` are given of a running cache.

use super::{Design, Member};
use crate::counters::{Counters, Gauges};
use crate::metadata::METADATA_BLOCK;
use crate::mode::Mode;
use crate::status::{Facts, Health};
use nandscape_core::Params;
use nandscape_policies::Map;
use nandscape_policies::admission::{self, BCACHE_CUTOFF, SEQUENTIAL_READ};

/// A cache of a design as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// Name of the fast store.
    pub fast_name: &'a str,
    /// Name of the disk.
    pub disk_name: &'a str,
    /// Capacity of the volume in bytes.
    pub volume_bytes: u64,
    /// The mode, which may have changed since the cache was made.
    pub mode: Mode,
    /// How the fast store does.
    pub health: Health,
    /// How the cache stands ([`crate::Cache::gauges`]).
    pub gauges: Gauges,
    /// What was counted ([`crate::Cache::counters`]), of the volume or of the whole cache.
    pub counters: &'a Counters,
}

impl Design {
    /// What is printed of a cache of this design.
    pub fn facts<'a>(&'a self, now: &Now<'a>) -> Facts<'a> {
        let (ways, cluster) = match self.map {
            Map::Full => (0, 0),
            Map::Linear { ways } => (ways, 0),
            Map::ClusterHashed { ways, cluster } => (ways, cluster),
        };
        Facts {
            fast_name: now.fast_name,
            disk_name: now.disk_name,
            volume_bytes: now.volume_bytes,
            dirty_of_all: now.gauges.dirty,
            block_bytes: self.block_bytes,
            ways: ways.min(u32::try_from(now.gauges.slots).unwrap_or(u32::MAX)),
            cluster_bytes: u64::from(cluster) * u64::from(self.block_bytes),
            metadata_block_bytes: if self.metadata == "none" { 0 } else { METADATA_BLOCK },
            skip_sequential_bytes: self.skip_sequential_bytes(),
            mode: now.mode,
            eviction: self.eviction.info().name,
            admission: &self.admission.name,
            cleaning: &self.cleaning,
            metadata: self.metadata,
            health: now.health,
            gauges: now.gauges,
            counters: now.counters,
        }
    }

    /// Bytes of a stream of reads from which it goes past the cache; 0: never.
    pub fn skip_sequential_bytes(&self) -> u64 {
        let Member { name, typed } = &self.admission;
        for (policy, key) in [("sequential", SEQUENTIAL_READ), ("bcache", BCACHE_CUTOFF)] {
            let is_chosen = super::keys::names(name).any(|name| name == policy);
            if let Some(entry) = admission::find(policy).ok().filter(|_| is_chosen) {
                let own = entry.info.take(&mut typed.clone());
                return Params::check(&entry.info, "", &own).map_or(0, |params| params.get(key));
            }
        }
        0
    }
}
