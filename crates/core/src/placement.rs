//! What a device that tells writes apart by streams or placement handles has counted: a part of the result
//! document.

use serde::{Deserialize, Serialize};

/// Counts of a streams or data placement directive, since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementReport {
    /// `streams` or `fdp`.
    pub directive: String,
    /// Bytes written without a directive, or with an id that the device could not give a stream.
    pub unplaced_bytes: u64,
    /// Streams opened by a first write; 0 for data placement.
    pub opened: u64,
    /// Streams that the device released to make room for another one; 0 for data placement.
    pub evicted: u64,
    /// Bytes left unwritten in pieces or reclaim units that were left early.
    pub left_bytes: u64,
    /// Every stream resource that was used, or every reclaim unit handle in every reclaim group, in ascending
    /// order of `set` and `log`.
    pub streams: Vec<StreamReport>,
    /// Of data placement only.
    pub fdp: Option<FdpReport>,
}

/// One stream resource or reclaim unit handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StreamReport {
    /// The namespace that last wrote, numbered from 1.
    pub namespace: u32,
    /// The host's stream id, or the reclaim unit handle.
    pub id: u16,
    /// The reclaim group, where there are several.
    #[serde(default)]
    pub group: u16,
    /// The NVM set whose translation layer holds the log.
    pub set: u16,
    pub log: u16,
    pub host_bytes: u64,
    pub writes: u64,
    /// Pieces (stream granularity) or reclaim units that hold data now.
    pub pieces: u64,
    pub piece_bytes: u64,
    /// Bytes of `host_bytes` that went to another reclaim group, since this one had no room for them.
    #[serde(default)]
    pub spilled_bytes: u64,
}

/// Statistics of flexible data placement, over all endurance groups where it is enabled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FdpReport {
    /// Host bytes with metadata written.
    pub hbmw: u64,
    /// Media bytes with metadata written.
    pub mbmw: u64,
    /// Media bytes erased.
    pub mbe: u64,
    /// Device-level write amplification, `mbmw / hbmw`; null without host writes.
    pub dlwa: Option<f64>,
    /// Writes whose placement identifier was invalid.
    pub invalid_pids: u64,
    /// Host events logged, by FDP event type; those that are not enabled are not counted.
    pub host_events: u64,
    /// Controller events logged.
    pub controller_events: u64,
}
