//! The shape of a stat document. Names as in the result document where it has them; add, never rename.

use crate::record::RecordingStat;
use nandscape_core::command::HostCounts;
use nandscape_core::recovery::RecoveryReport;
use nandscape_core::{ObjectReport, OpCounts};
use nandscape_sim::result::{
    CostResult, FlashResult, LatencySummary, LayerResult, SetResult, Speed, Waf, WearResult, ZonesResult,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a server tells of itself. Counters run since the start of the server or the last reset; wear is of
/// the whole life of the device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stat {
    #[serde(flatten)]
    pub server: ServerStat,
    pub namespaces: Vec<NamespaceStat>,
    pub host: HostCounts,
    pub flash: FlashResult,
    /// Write amplification.
    #[serde(flatten)]
    pub waf: Waf,
    /// The last seconds.
    pub interval: Interval,
    /// Free and used.
    pub space: Space,
    /// Erase counts over the good blocks, since the device was made.
    pub wear: WearResult,
    /// What the translation layers did.
    #[serde(flatten)]
    pub layer: LayerResult,
    /// The model's time and the real one since the start or the last reset, and what was moved in it.
    #[serde(flatten)]
    pub speed: Speed,
    /// How requests were served.
    #[serde(flatten)]
    pub service: ServiceStat,
    /// What went wrong.
    #[serde(flatten)]
    pub faults: FaultStat,
    pub cost: CostResult,
    /// Each NVM set by itself, where there are several. Without wear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<SetResult>,
    /// Zones, where there are any: counts, and in its history one column of at most 256 rows, as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZonesResult>,
    /// What streams or placement handles were written, where writes are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<serde_json::Value>,
    /// Writes by what the blocks hold, for each namespace whose file system is watched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, serde_json::Value>,
    /// The recording that runs or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingStat>,
    /// The cache over files that is served, with its volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<serde_json::Value>,
    /// The configuration of the device, as nested tables.
    #[serde(default)]
    pub config: serde_json::Value,
}

/// A server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerStat {
    /// Version of the document's shape: 1.
    pub schema: u32,
    /// Version of nandscape.
    pub version: String,
    /// Process id of the server.
    pub pid: u32,
    /// Seconds since the server started.
    pub uptime_s: f64,
    /// How the model's time runs.
    pub clock: ClockStat,
}

/// How requests were served.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServiceStat {
    /// Issue to completion in the model.
    pub latency_ns: Latencies,
    /// Arrival at the engine to when the answer may be sent, in real time.
    pub real_latency_ns: Latencies,
    /// Waiting for the stack.
    pub queue: QueueStat,
    /// Whether the host keeps the pace; absent on a free clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<PaceStat>,
}

/// What went wrong, and what the start found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FaultStat {
    /// Failed requests by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Why sets take no more writes, by number of the set: as text, since a part of a document that is read
    /// has no other keys.
    pub read_only: BTreeMap<String, String>,
    /// Pages that failed their checksum when they were read, since the start.
    pub checksum_errors: u64,
    /// Pages that were found to be cut short, since the start.
    pub torn_pages: u64,
    /// What the start found, for each set whose device keeps a journal.
    pub recovery: Vec<RecoveryReport>,
}

/// How the model's time runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockStat {
    /// `free` or `paced`.
    pub mode: String,
    /// Requests outstanding in the model, on a free clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// A namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NamespaceStat {
    pub name: String,
    pub capacity_bytes: u64,
    pub page_bytes: u32,
    /// NVM set that holds it.
    pub set: u16,
    pub host: HostCounts,
}

/// The last seconds: ten at most.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Real time of the interval.
    pub seconds: f64,
    /// The model's time in it.
    pub simulated_ns: u64,
    /// What the hosts asked for.
    pub host: HostCounts,
    /// What the flash did.
    pub flash: OpCounts,
    /// Programs over host pages written; null without writes.
    pub waf: Option<f64>,
    /// Requests a second of real time.
    pub requests_per_s: f64,
    /// Bytes read a second of real time.
    pub read_bytes_per_s: f64,
    /// Bytes written a second of real time.
    pub write_bytes_per_s: f64,
    /// Issue to completion in the model.
    pub latency_ns: Latencies,
    /// Arrival to answer in real time.
    pub real_latency_ns: Latencies,
}

/// Latencies by kind of request. Percentiles are within 1 %.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// Reads.
    pub read: LatencySummary,
    /// Writes, forced unit access included.
    pub write: LatencySummary,
    /// Discards and write zeroes.
    pub trim: LatencySummary,
    /// Flushes.
    pub flush: LatencySummary,
}

/// Free and used space.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Space {
    /// Blocks that translation layers may use.
    pub total_blocks: u64,
    /// Of these, blocks that are erased.
    pub free_blocks: u64,
    /// Blocks that are bad, from the factory or since.
    pub bad_blocks: u64,
    /// Logical pages that hold data.
    pub live_pages: u64,
    /// Logical pages in all.
    pub logical_pages: u64,
    /// Bytes in those that hold data.
    pub live_bytes: u64,
    /// A store of files: what it holds, the space that takes, what was reclaimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectReport>,
}

/// How batches waited for the stack, which one thread at a time owns.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct QueueStat {
    /// Batches that front ends brought.
    pub batches: u64,
    /// How long they waited.
    pub wait_ns: LatencySummary,
}

/// Whether the host keeps the model's pace.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PaceStat {
    /// Answers with a time of their own.
    pub answers: u64,
    /// Those that were later than `late_after_ns`.
    pub late: u64,
    /// What counts as late.
    pub late_after_ns: u64,
    /// How late answers were, over all whose sending was seen.
    pub late_ns: LatencySummary,
}
