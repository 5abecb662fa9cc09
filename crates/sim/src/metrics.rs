//! What is measured while a workload runs: latencies, the series over time, single requests.

use crate::cached::CachePoint;
use crate::histogram::LogHistogram;
use crate::result::{LatencyResult, LatencySummary};
use crate::sums;
use crate::zones::{ZoneHistory, ZoneRecorder};
use hdrhistogram::Histogram;
use nandscape_core::command::HostCounts;
use nandscape_core::{CauseTable, FtlStats, Op, SimTime, Subsystem, TraceOp};

const TEN_DAYS_NS: u64 = 864_000_000_000_000;

/// Latencies of one kind of request. Percentiles have so many significant digits; what is longer than the
/// longest counts as that for them. Count, sum and extremes are exact.
#[derive(Clone, Debug)]
pub struct Latencies<const DIGITS: u8 = 3, const LONGEST_NS: u64 = TEN_DAYS_NS> {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl<const DIGITS: u8, const LONGEST_NS: u64> Default for Latencies<DIGITS, LONGEST_NS> {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        let histogram = histogram.expect("bounds and precision are valid");
        Self { histogram, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl<const DIGITS: u8, const LONGEST_NS: u64> Latencies<DIGITS, LONGEST_NS> {
    /// Counts a latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts a latency so many times.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns, count);
        self.sum += u128::from(ns) * u128::from(count);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Adds another set.
    pub fn merge(&mut self, other: &Self) {
        if !other.histogram.is_empty() {
            self.histogram.add(&other.histogram).expect("both have the same bounds");
            self.sum += other.sum;
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if !self.histogram.is_empty() {
            self.histogram.reset();
            (self.sum, self.min, self.max) = (0, u64::MAX, 0);
        }
    }

    /// The latency that a share of the requests does not exceed; 0 without requests.
    pub fn at(&self, quantile: f64) -> u64 {
        if self.histogram.is_empty() {
            return 0;
        }
        // Buckets report their upper end; nothing is longer than the longest nor shorter than the shortest.
        self.histogram.value_at_quantile(quantile).clamp(self.min, self.max)
    }

    /// How many took at most so long, within the resolution.
    pub fn up_to(&self, ns: u64) -> u64 {
        self.histogram.count_between(0, ns.min(LONGEST_NS))
    }

    /// The distribution so far.
    pub fn summary(&self) -> LatencySummary {
        let count = self.histogram.len();
        if count == 0 {
            return LatencySummary::default();
        }
        LatencySummary {
            count,
            mean: self.sum as f64 / count as f64,
            min: self.min,
            max: self.max,
            p50: self.at(0.5),
            p90: self.at(0.9),
            p99: self.at(0.99),
            p99_9: self.at(0.999),
            p99_99: self.at(0.9999),
            p99_999: self.at(0.99999),
            p99_9999: self.at(0.999_999),
        }
    }
}

/// One point of the series: cumulative counters at the end of an interval, and the latencies inside it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Requests completed so far.
    pub requests: u64,
    /// Virtual time since the first issue.
    pub simulated_ns: u64,
    /// Host counters so far.
    pub host: HostCounts,
    /// Flash operations by cause so far.
    pub causes: CauseTable,
    /// Translation-layer counters so far.
    pub ftl: FtlStats,
    /// The cache, where there is one.
    pub cache: Option<CachePoint>,
    /// Latencies of the reads that completed in the interval.
    pub read_latency: LogHistogram,
    /// Latencies of the writes that completed in the interval.
    pub write_latency: LogHistogram,
}

impl Sample {
    /// What the counters say now, without latencies.
    fn now(subsystem: &dyn Subsystem, requests: u64, simulated_ns: u64) -> Self {
        let layer = sums::first(subsystem).first();
        Self {
            requests,
            simulated_ns,
            host: subsystem.inspect().host_counts(0),
            causes: layer.map(|layer| *layer.device().counters()).unwrap_or_default(),
            ftl: layer.map(nandscape_core::Mapping::stats).unwrap_or_default(),
            cache: subsystem.inspect().cache().as_ref().map(CachePoint::of),
            read_latency: LogHistogram::default(),
            write_latency: LogHistogram::default(),
        }
    }
}

/// One request, for the per-request chart.
#[derive(Clone, Copy, Debug)]
pub struct RequestSample {
    /// Number of the request in completion order, from 0.
    pub index: u64,
    /// Read or write; an append is a write.
    pub op: Op,
    /// Its bytes.
    pub bytes: u64,
    /// Issue to completion.
    pub latency_ns: u64,
}

/// The series of a run and the requests kept from it.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// At most [`MAX_SAMPLES`] points, evenly spaced in host bytes.
    pub samples: Vec<Sample>,
    /// Host bytes (read and written) between two points.
    pub interval_bytes: u64,
    /// At most [`MAX_REQUESTS`] requests, every `request_stride`-th.
    pub requests: Vec<RequestSample>,
    /// 1 if every request was kept.
    pub request_stride: u64,
    /// Programs per page, block-major, if the device kept them.
    pub program_counts: Option<Vec<u32>>,
    /// Erases per block during the counted part, in the order of `wear.per_block`.
    pub erase_counts: Vec<u32>,
    /// Points at the times that were asked for, whose latencies are empty.
    pub marks: Vec<Sample>,
}

/// Points of a series; when there would be more, every second is merged into its successor.
pub const MAX_SAMPLES: usize = 1024;
/// Single requests kept; when there would be more, every second is dropped.
pub const MAX_REQUESTS: usize = 32_768;
const FIRST_INTERVAL: u64 = 64 << 10;

/// Collects the measurements of a run.
#[derive(Debug)]
pub struct Recorder {
    read: Latencies,
    write: Latencies,
    /// These two are present once one completed: many runs have none.
    flush: Option<Box<Latencies>>,
    zone: Option<Box<Latencies>>,
    completed: u64,
    last_completion: SimTime,
    series: Option<SeriesRecorder>,
    marks: Vec<Sample>,
}

#[derive(Debug)]
struct SeriesRecorder {
    series: Series,
    bytes: u64,
    next_at: u64,
    read_latency: LogHistogram,
    write_latency: LogHistogram,
    zones: Option<ZoneRecorder>,
    /// When zones are looked at next; for the first time before the first request.
    zones_due_ns: u64,
}

impl Recorder {
    /// Collects latencies, and the series if asked for.
    pub fn new(with_series: bool) -> Self {
        Self {
            read: Latencies::default(),
            write: Latencies::default(),
            flush: None,
            zone: None,
            completed: 0,
            last_completion: SimTime::ZERO,
            marks: Vec::new(),
            series: with_series.then(|| SeriesRecorder {
                series: Series { interval_bytes: FIRST_INTERVAL, request_stride: 1, ..Series::default() },
                bytes: 0,
                next_at: FIRST_INTERVAL,
                read_latency: LogHistogram::default(),
                write_latency: LogHistogram::default(),
                zones: None,
                zones_due_ns: 0,
            }),
        }
    }

    /// A request completed.
    #[inline]
    pub fn complete(&mut self, op: TraceOp, bytes: u64, issued: SimTime, at: SimTime) {
        let ns = at.since(issued).0;
        match op {
            _ if op.is_read() => self.read.record(ns),
            _ if op.is_write() => self.write.record(ns),
            TraceOp::Flush | TraceOp::ObjectFlush => self.flush.get_or_insert_default().record(ns),
            TraceOp::Reset | TraceOp::Finish | TraceOp::Open | TraceOp::Close => {
                self.zone.get_or_insert_default().record(ns);
            }
            _ => {}
        }
        self.last_completion = self.last_completion.max(at);
        if let Some(series) = &mut self.series {
            series.complete(self.completed, op, bytes, ns);
        }
        self.completed += 1;
    }

    /// Whether the series wants a point or a look at the zones now. The run began at `start`.
    #[inline]
    pub fn wants_sample(&self, start: SimTime) -> bool {
        let now_ns = self.last_completion.since(start).0;
        self.series.as_ref().is_some_and(|s| s.bytes >= s.next_at || now_ns >= s.zones_due_ns)
    }

    /// Adds to the series what it wants.
    pub fn sample(&mut self, subsystem: &dyn Subsystem, start: SimTime) {
        let (requests, simulated_ns) = (self.completed, self.last_completion.since(start).0);
        let Some(series) = &mut self.series else { return };
        if series.bytes >= series.next_at {
            series.sample(subsystem, requests, simulated_ns);
        }
        if simulated_ns >= series.zones_due_ns {
            match &mut series.zones {
                Some(zones) => zones.look(simulated_ns, subsystem),
                zones => *zones = ZoneRecorder::new(subsystem),
            }
            series.zones_due_ns = series.zones.as_ref().map_or(u64::MAX, |zones| zones.due_ns);
        }
    }

    /// A point of its own, whether there is a series or not.
    pub fn mark(&mut self, subsystem: &dyn Subsystem, start: SimTime) {
        let simulated_ns = self.last_completion.since(start).0;
        self.marks.push(Sample::now(subsystem, self.completed, simulated_ns));
    }

    /// How zones stood, if the series was asked for and there are any.
    pub fn take_zones(&mut self, subsystem: &dyn Subsystem, start: SimTime) -> Option<ZoneHistory> {
        let end_ns = self.last_completion.since(start).0;
        Some(self.series.as_mut()?.zones.take()?.finish(end_ns, subsystem))
    }

    /// The last completion so far.
    pub const fn last_completion(&self) -> SimTime {
        self.last_completion
    }

    /// Requests completed so far.
    pub const fn completed(&self) -> u64 {
        self.completed
    }

    /// Latencies of reads, writes (with appends), both, flushes, and operations on the state of zones.
    pub fn latencies(&self) -> LatencyResult {
        let mut all = self.read.clone();
        all.merge(&self.write);
        LatencyResult {
            read: self.read.summary(),
            write: self.write.summary(),
            all: all.summary(),
            flush: self.flush.as_ref().map(|flush| flush.summary()),
            zone: self.zone.as_ref().map(|zone| zone.summary()),
        }
    }

    /// The series, with a last point at the end of the run.
    pub fn into_series(self, subsystem: &dyn Subsystem, start: SimTime) -> Option<Series> {
        let is_stale = self
            .series
            .as_ref()
            .is_some_and(|s| s.series.samples.last().is_none_or(|last| last.requests < self.completed));
        let (requests, simulated_ns) = (self.completed, self.last_completion.since(start).0);
        let marks = self.marks;
        let Some(mut recorder) = self.series else {
            return (!marks.is_empty()).then(|| Series { marks, ..Series::default() });
        };
        if is_stale {
            recorder.sample(subsystem, requests, simulated_ns);
        }
        let mut series = Series { marks, ..recorder.series };
        let counts = sums::first(subsystem).first().and_then(|layer| layer.device().tally().program_counts);
        series.program_counts = counts.map(<[u32]>::to_vec);
        Some(series)
    }
}

impl SeriesRecorder {
    #[inline]
    fn complete(&mut self, index: u64, op: TraceOp, bytes: u64, latency_ns: u64) {
        let (op, latencies) = match op {
            op if op.is_read() => (Op::Read, &mut self.read_latency),
            op if op.is_write() => (Op::Write, &mut self.write_latency),
            _ => return,
        };
        latencies.record(latency_ns);
        self.bytes += bytes;
        if index.is_multiple_of(self.series.request_stride) {
            if self.series.requests.len() == MAX_REQUESTS {
                self.series.request_stride *= 2;
                let stride = self.series.request_stride;
                self.series.requests.retain(|r| r.index.is_multiple_of(stride));
            }
            if index.is_multiple_of(self.series.request_stride) {
                self.series.requests.push(RequestSample { index, op, bytes, latency_ns });
            }
        }
    }

    fn sample(&mut self, subsystem: &dyn Subsystem, requests: u64, simulated_ns: u64) {
        if self.series.samples.len() == MAX_SAMPLES {
            self.thin_out();
        }
        self.series.samples.push(Sample {
            read_latency: self.read_latency.clone(),
            write_latency: self.write_latency.clone(),
            ..Sample::now(subsystem, requests, simulated_ns)
        });
        self.read_latency.clear();
        self.write_latency.clear();
        self.next_at = self.bytes + self.series.interval_bytes;
    }

    /// Merges every point into its successor and doubles the interval.
    fn thin_out(&mut self) {
        let samples = std::mem::take(&mut self.series.samples);
        let mut pairs = samples.into_iter();
        while let Some(first) = pairs.next() {
            self.series.samples.push(match pairs.next() {
                Some(mut second) => {
                    second.read_latency.merge(&first.read_latency);
                    second.write_latency.merge(&first.write_latency);
                    second
                }
                None => first,
            });
        }
        self.series.interval_bytes *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth_at_any_scale() {
        for scale in [1u64, 1_000, 1_000_000, 1_000_000_000] {
            let mut recorder = Recorder::new(false);
            for i in 1..=10_000 {
                recorder.complete(TraceOp::Write, 4096, SimTime::ZERO, SimTime(i * scale));
            }
            let write = recorder.latencies().write;
            assert_eq!((write.min, write.max, write.count), (scale, 10_000 * scale, 10_000));
            for (got, exact) in
                [(write.p50, 5_000), (write.p90, 9_000), (write.p99, 9_900), (write.p99_99, 9_999)]
            {
                let error = (got as f64 / (exact * scale) as f64 - 1.0).abs();
                assert!(error < 0.001, "{got} for {} at scale {scale}", exact * scale);
            }
        }
    }
}
