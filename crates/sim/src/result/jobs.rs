//! What the result document has of job files.

use super::{LatencySummary, PolicyResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job of a job file, or the jobs of a report group added up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct JobResult {
    /// Its name; that of the first job of a group.
    pub name: String,
    /// `description`, if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Report group, from 0.
    pub group: u32,
    /// Jobs that were added up; 1 for a single one.
    pub members: u32,
    /// Names of the namespaces it used.
    pub namespaces: Vec<String>,
    /// Outstanding requests it was allowed, of one member.
    pub depth: u32,
    /// When counting began: its start, or the end of `ramp_time`.
    pub start_ns: u64,
    /// From there to its end; of the first to begin and the last to end for a group.
    pub runtime_ns: u64,
    pub read: DirectionResult,
    pub write: DirectionResult,
    pub trim: DirectionResult,
    /// Flushes it asked for (`fsync`, `fdatasync`).
    pub sync: SyncResult,
    /// Share of the requests issued as the 1st, 2nd to 3rd, 4th to 7th ... 64th and further outstanding one,
    /// in percent.
    pub depth_levels: Vec<f64>,
    /// Share of the latencies up to each limit and above the one before, in percent.
    pub latency_levels: Vec<LatencyLevel>,
    /// Whether percentiles of total latency, of completion latency were asked for.
    pub percentiles_of: PercentilesOf,
    /// What the stream policy of its host did, where it issues a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyResult>,
    /// Options of its section, as typed.
    pub options: BTreeMap<String, String>,
}

/// Which latencies a job wants percentiles of. Submission takes no time, so both are the same figures under
/// two names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PercentilesOf {
    /// `clat_percentiles`.
    pub completion: bool,
    /// `lat_percentiles`.
    pub total: bool,
}

/// One direction of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DirectionResult {
    /// Completed requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes over the job's run time.
    pub bytes_per_s: f64,
    /// Requests over the job's run time.
    pub iops: f64,
    /// Issue to completion.
    pub latency_ns: LatencySummary,
    /// Standard deviation of the latencies.
    pub latency_stddev_ns: f64,
    /// The percentiles that the job asked for (`percentile_list`).
    pub percentiles: Vec<LatencyPoint>,
    /// Bandwidth in bytes a second, sampled each 500 ms.
    pub bandwidth_samples: RateSamples,
    /// Requests a second, sampled each 500 ms.
    pub iops_samples: RateSamples,
}

/// Flushes of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SyncResult {
    /// Issue to completion.
    pub latency_ns: LatencySummary,
    /// Standard deviation of the latencies.
    pub latency_stddev_ns: f64,
    /// The percentiles that the job asked for.
    pub percentiles: Vec<LatencyPoint>,
}

/// A percentile of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// 0 to 100.
    pub percent: f64,
    /// So many percent are at most as long, within 0.1 %.
    pub ns: u64,
}

/// A class of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyLevel {
    /// Upper limit; the last class has `u64::MAX`.
    pub up_to_ns: u64,
    /// Share of the requests in percent.
    pub percent: f64,
}

/// Samples of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RateSamples {
    pub count: u64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
}
