//! Runs that differ only in their seed.

use super::RunResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Least value.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Largest value.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut n, mut sum) = (0u32, 0.0);
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            n += 1;
            sum += value;
            min = min.min(value);
            max = max.max(value);
        }
        // Rounding must not put the mean of equal values outside them.
        (n > 0).then(|| Self { min, mean: (sum / f64::from(n)).clamp(min, max), max })
    }
}

/// The same configuration run with several seeds. The document that has it is of one of these runs, the one
/// with the median write amplification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeedsResult {
    /// The seeds, as they were given.
    pub used: Vec<u64>,
    /// By dotted key of the document; a figure that a run does not have is not there.
    pub spread: BTreeMap<String, Spread>,
}

type Figure = (&'static str, fn(&RunResult) -> Option<f64>);

/// Figures whose spread is kept.
const FIGURES: [Figure; 18] = [
    ("waf", |r| r.waf.pages),
    ("waf_bytes", |r| r.waf.bytes),
    ("flash.programs", |r| Some(r.flash.programs as f64)),
    ("flash.erases", |r| Some(r.flash.erases as f64)),
    ("gc.moved_pages", |r| Some(r.layer.gc.moved_pages as f64)),
    ("time.simulated_ns", |r| Some(r.speed.time.simulated_ns as f64)),
    ("throughput.read_bytes_per_s", |r| {
        (r.host.read_bytes > 0).then_some(r.speed.throughput.read_bytes_per_s)
    }),
    ("throughput.write_bytes_per_s", |r| {
        (r.host.write_bytes > 0).then_some(r.speed.throughput.write_bytes_per_s)
    }),
    ("latency_ns.read.p50", |r| (r.latency_ns.read.count > 0).then_some(r.latency_ns.read.p50 as f64)),
    ("latency_ns.read.p99", |r| (r.latency_ns.read.count > 0).then_some(r.latency_ns.read.p99 as f64)),
    ("latency_ns.read.p99_9", |r| (r.latency_ns.read.count > 0).then_some(r.latency_ns.read.p99_9 as f64)),
    ("latency_ns.write.p50", |r| (r.latency_ns.write.count > 0).then_some(r.latency_ns.write.p50 as f64)),
    ("latency_ns.write.p99", |r| (r.latency_ns.write.count > 0).then_some(r.latency_ns.write.p99 as f64)),
    ("latency_ns.write.p99_9", |r| (r.latency_ns.write.count > 0).then_some(r.latency_ns.write.p99_9 as f64)),
    ("latency_ns.flush.mean", |r| r.latency_ns.flush.as_ref().map(|flush| flush.mean)),
    ("latency_ns.flush.p99", |r| r.latency_ns.flush.as_ref().map(|flush| flush.p99 as f64)),
    ("cache.read_hit_ratio", |r| r.cache.as_ref()?.read_hit_ratio),
    ("cache.write_hit_ratio", |r| r.cache.as_ref()?.write_hit_ratio),
];

impl SeedsResult {
    /// Of runs that differ only in their seed.
    pub fn new(runs: &[&RunResult]) -> Self {
        let spread = FIGURES.iter().filter_map(|(key, of)| {
            // Of all runs or of none: a mean of those that happen to have a figure would mislead.
            let values: Option<Vec<f64>> = runs.iter().map(|run| of(run)).collect();
            Some(((*key).to_owned(), Spread::of(values?)?))
        });
        Self { used: runs.iter().map(|run| run.run.seed).collect(), spread: spread.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_mean_between_its_ends() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { min: 1.0, mean: 2.0, max: 3.0 }));
        let same = Spread::of([0.1; 3]).unwrap();
        assert!(same.min <= same.mean && same.mean <= same.max);
    }

    #[test]
    fn a_figure_that_one_run_lacks_has_no_spread() {
        let (mut one, mut other) = (RunResult::default(), RunResult::default());
        one.waf.bytes = Some(2.0);
        assert!(!SeedsResult::new(&[&one, &other]).spread.contains_key("waf_bytes"));
        other.waf.bytes = Some(3.0);
        let mean = SeedsResult::new(&[&one, &other]).spread["waf_bytes"].mean;
        assert!((mean - 2.5).abs() < f64::EPSILON);
    }
}
