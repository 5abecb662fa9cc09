//! What is measured of a job while it runs.

use super::request::Request;
use crate::metrics::Latencies;
use crate::result::{DirectionResult, LatencyPoint, LatencySummary, RateSamples};
use nandscape_jobs::Direction;

/// Interval of the samples of bandwidth and request rate (fio's `bwavgtime`).
pub(crate) const SAMPLE_NS: u64 = 500_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let count = self.count;
        *self = Self {
            count: count + other.count,
            min: if count == 0 { other.min } else { self.min.min(other.min) },
            max: self.max.max(other.max),
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        };
    }

    fn samples(&self) -> RateSamples {
        let n = self.count.max(1) as f64;
        let mean = self.sum / n;
        RateSamples {
            count: self.count,
            min: self.min,
            max: self.max,
            mean,
            stddev: (self.squares / n - mean * mean).max(0.0).sqrt(),
        }
    }
}

/// Latencies with their second moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    /// Made with the first request, so that what a job does not do costs nothing.
    latencies: Option<Box<Latencies>>,
    squares: f64,
}

impl Spread {
    #[inline]
    fn record(&mut self, ns: u64) {
        self.latencies.get_or_insert_default().record(ns);
        self.squares += ns as f64 * ns as f64;
    }

    pub fn merge(&mut self, other: &Self) {
        let Some(theirs) = &other.latencies else { return };
        self.latencies.get_or_insert_default().merge(theirs);
        self.squares += other.squares;
    }

    pub fn summary(&self) -> LatencySummary {
        self.latencies.as_ref().map(|latencies| latencies.summary()).unwrap_or_default()
    }

    fn stddev(&self, summary: &LatencySummary) -> f64 {
        let n = summary.count.max(1) as f64;
        (self.squares / n - summary.mean * summary.mean).max(0.0).sqrt()
    }

    fn percentiles(&self, list: &[f64]) -> Vec<LatencyPoint> {
        let Some(latencies) = &self.latencies else { return Vec::new() };
        list.iter()
            .map(|percent| LatencyPoint { percent: *percent, ns: latencies.at(percent / 100.0) })
            .collect()
    }
}

#[derive(Clone, Debug, Default)]
struct Lane {
    bytes: u64,
    requests: u64,
    spread: Spread,
    sample_bytes: u64,
    sample_requests: u64,
    bandwidth: Moments,
    iops: Moments,
}

/// Levels of depth that are told apart: 1, 2, 4, 8, 16, 32, 64 and more.
pub(crate) const DEPTH_LEVELS: usize = 7;

#[derive(Clone, Debug, Default)]
pub(crate) struct Measure {
    lanes: [Lane; 3],
    sync: Spread,
    /// Requests issued while so many were outstanding.
    pub depths: [u64; DEPTH_LEVELS],
    next_sample: u64,
    used: [bool; 3],
}

impl Measure {
    pub fn new(used: [bool; 3]) -> Self {
        Self { used, ..Self::default() }
    }

    /// Counting begins (anew) at `now`.
    pub fn restart(&mut self, now: u64) {
        *self = Self { used: self.used, next_sample: now + SAMPLE_NS, ..Self::default() };
    }

    #[inline]
    pub fn issue(&mut self, inflight: u32) {
        self.depths[(inflight.max(1).ilog2() as usize).min(DEPTH_LEVELS - 1)] += 1;
    }

    #[inline]
    pub fn complete(&mut self, direction: Direction, bytes: u64, latency_ns: u64, at: u64) {
        if at >= self.next_sample {
            self.close_samples(at);
        }
        let lane = &mut self.lanes[direction as usize];
        lane.bytes += bytes;
        lane.requests += 1;
        lane.sample_bytes += bytes;
        lane.sample_requests += 1;
        lane.spread.record(latency_ns);
    }

    #[cold]
    fn close_samples(&mut self, at: u64) {
        // Intervals without a completion are samples, too.
        let mut is_first = true;
        while at >= self.next_sample {
            for (lane, used) in self.lanes.iter_mut().zip(self.used) {
                let (bytes, requests) =
                    if is_first { (lane.sample_bytes, lane.sample_requests) } else { (0, 0) };
                if used {
                    lane.bandwidth.add(bytes as f64 * 1e9 / SAMPLE_NS as f64);
                    lane.iops.add(requests as f64 * 1e9 / SAMPLE_NS as f64);
                }
                (lane.sample_bytes, lane.sample_requests) = (0, 0);
            }
            is_first = false;
            self.next_sample += SAMPLE_NS;
        }
    }

    pub fn flush(&mut self, latency_ns: u64) {
        self.sync.record(latency_ns);
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.lanes.iter_mut().zip(&other.lanes) {
            mine.bytes += theirs.bytes;
            mine.requests += theirs.requests;
            mine.spread.merge(&theirs.spread);
            mine.bandwidth.merge(&theirs.bandwidth);
            mine.iops.merge(&theirs.iops);
        }
        self.sync.merge(&other.sync);
        for (mine, theirs) in self.depths.iter_mut().zip(other.depths) {
            *mine += theirs;
        }
    }

    /// Latencies of a direction, to be merged over jobs.
    pub fn spread(&self, direction: Direction) -> &Spread {
        &self.lanes[direction as usize].spread
    }

    pub fn direction(&self, direction: Direction, runtime_ns: u64, percentiles: &[f64]) -> DirectionResult {
        let lane = &self.lanes[direction as usize];
        let per_second = |n: u64| if runtime_ns == 0 { 0.0 } else { n as f64 * 1e9 / runtime_ns as f64 };
        let latency_ns = lane.spread.summary();
        DirectionResult {
            requests: lane.requests,
            bytes: lane.bytes,
            bytes_per_s: per_second(lane.bytes),
            iops: per_second(lane.requests),
            latency_stddev_ns: lane.spread.stddev(&latency_ns),
            latency_ns,
            percentiles: lane.spread.percentiles(percentiles),
            bandwidth_samples: lane.bandwidth.samples(),
            iops_samples: lane.iops.samples(),
        }
    }

    pub const fn flushes(&self) -> &Spread {
        &self.sync
    }

    pub fn sync(&self, percentiles: &[f64]) -> (LatencySummary, f64, Vec<LatencyPoint>) {
        let summary = self.sync.summary();
        (summary, self.sync.stddev(&summary), self.sync.percentiles(percentiles))
    }

    pub fn requests(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.requests).sum()
    }

    pub fn up_to(&self, ns: u64) -> u64 {
        self.lanes.iter().filter_map(|lane| lane.spread.latencies.as_ref()).map(|l| l.up_to(ns)).sum()
    }
}

/// Folds a request into the hash of a workload. Not cryptographic: it tells two workloads apart.
#[inline]
pub(crate) fn fold(hash: u64, request: &Request, job: u32) -> u64 {
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
    let meta = u64::from(job) << 32 | u64::from(request.hint) << 8 | request.direction as u64;
    let place = request.extent.offset ^ u64::from(request.namespace) << 48;
    fold(fold(fold(hash, place), request.extent.len), meta)
}
