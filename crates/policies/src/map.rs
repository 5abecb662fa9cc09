//! Which set a block belongs to.

use crate::hash::mix;
use crate::key::BlockKey;
use serde::Serialize;

/// How blocks are spread over sets of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "map")]
pub enum Map {
    /// One set: every block may lie in every slot.
    Full,
    /// Runs of as many neighbouring blocks as a set has slots share a set, and the sets are taken in turn
    /// (`FlashCache` before its cluster hash, `EnhanceIO`, `RapidCache`).
    Linear {
        /// Slots of a set.
        ways: u32,
    },
    /// Neighbouring blocks of a cluster share a set, which the cluster's hash selects (`FlashCache` later,
    /// dm-cache of FIU).
    ClusterHashed {
        /// Slots of a set.
        ways: u32,
        /// Blocks of a cluster.
        cluster: u32,
    },
}

impl Map {
    /// Its name in configurations and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Linear { .. } => "linear",
            Self::ClusterHashed { .. } => "cluster-hashed",
        }
    }

    /// Slots of a set, where there are `slots` in all.
    pub fn ways(self, slots: u32) -> u32 {
        match self {
            Self::Full => slots,
            Self::Linear { ways } | Self::ClusterHashed { ways, .. } => ways.min(slots),
        }
    }

    /// The set of a block. Volumes after the first start at other sets of the linear map.
    #[inline]
    pub fn set(self, key: BlockKey, sets: u32) -> u32 {
        let sets = u64::from(sets);
        match self {
            Self::Full => 0,
            Self::Linear { ways } => {
                let shift = if key.volume() == 0 { 0 } else { mix(u64::from(key.volume())) % sets };
                ((key.block() / u64::from(ways) + shift) % sets) as u32
            }
            Self::ClusterHashed { cluster, .. } => {
                let cluster = BlockKey::new(key.volume(), key.block() / u64::from(cluster));
                (mix(cluster.0) % sets) as u32
            }
        }
    }
}
