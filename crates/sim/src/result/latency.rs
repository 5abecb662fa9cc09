//! How long requests took.

use serde::{Deserialize, Serialize};

/// Latency by kind of request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Of reads.
    pub read: LatencySummary,
    /// Of writes.
    pub write: LatencySummary,
    /// Of reads and writes together.
    pub all: LatencySummary,
    /// Of flushes, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<LatencySummary>,
    /// Of operations on the state of zones (reset, finish, open, close), if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<LatencySummary>,
}

impl LatencyResult {
    /// Each kind of request that there was, by name.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &LatencySummary)> {
        let always =
            [("read", &self.read), ("write", &self.write)].into_iter().filter(|(_, of)| of.count > 0);
        let others = [("flush", &self.flush), ("zone", &self.zone)];
        always.chain(others.into_iter().filter_map(|(name, of)| Some((name, of.as_ref()?))))
    }
}

/// Distribution of latencies, in nanoseconds. `min`, `max` and `mean` are exact, percentiles within 0.1 %.
/// All 0 without requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LatencySummary {
    pub count: u64,
    pub mean: f64,
    pub min: u64,
    pub max: u64,
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p99_9: u64,
    /// 99.99 %.
    pub p99_99: u64,
    /// 99.999 %.
    pub p99_999: u64,
    /// 99.9999 %.
    pub p99_9999: u64,
}
