//! What the engine measures while it runs: cheap enough for every request, since a request takes a few
//! microseconds in all.

use hdrhistogram::Histogram;
use nandscape_core::{FlashError, FtlError, NamespaceError, Op, StoreError};
use nandscape_sim::result::LatencySummary;
use std::collections::BTreeMap;

/// Kinds of requests whose latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    /// Discard and write zeroes.
    Trim,
    Flush,
}

/// How many [`Kind`]s there are.
pub(crate) const KINDS: usize = 4;

impl Kind {
    #[inline]
    pub const fn of(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Trim | Op::WriteZeroes => Self::Trim,
            Op::Flush => Self::Flush,
        }
    }
}

/// An hour; longer times count as this, while the exact maximum is kept beside.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A distribution of times. Percentiles are within 1 %, the other figures exact.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Times {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("bounds and precision are valid");
        Self { histogram, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Times {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns, count);
        self.sum += u128::from(ns) * u128::from(count);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.histogram.reset();
            (self.sum, self.min, self.max) = (0, u64::MAX, 0);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub fn at(&self, quantile: f64) -> u64 {
        if self.is_empty() { 0 } else { self.histogram.value_at_quantile(quantile).clamp(self.min, self.max) }
    }

    pub fn summary(&self) -> LatencySummary {
        if self.is_empty() {
            return LatencySummary::default();
        }
        LatencySummary {
            count: self.count(),
            mean: self.sum as f64 / self.count() as f64,
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

/// Everything that is measured in a span of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// From issue to completion in the model, by kind.
    pub model: [Times; KINDS],
    /// From arrival at the engine to when the answer may be sent, by kind.
    pub real: [Times; KINDS],
    /// How long a batch waited for the stack.
    pub wait: Times,
    /// Batches.
    pub batches: u64,
    /// Failed requests by kind of error.
    pub errors: BTreeMap<&'static str, u64>,
}

impl Meter {
    #[inline]
    pub fn model(&mut self, kind: Kind, ns: u64) {
        self.model[kind as usize].record(ns);
    }

    #[cold]
    pub fn failed(&mut self, error: &NamespaceError) {
        *self.errors.entry(name_of(error)).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.each_mut().into_iter().zip(other.each()) {
            mine.merge(theirs);
        }
        self.batches += other.batches;
        for (error, count) in &other.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }

    pub fn clear(&mut self) {
        for times in self.each_mut() {
            times.clear();
        }
        self.batches = 0;
        self.errors.clear();
    }

    fn each(&self) -> impl Iterator<Item = &Times> {
        self.model.iter().chain(&self.real).chain([&self.wait])
    }

    fn each_mut(&mut self) -> impl IntoIterator<Item = &mut Times> {
        self.model.iter_mut().chain(&mut self.real).chain([&mut self.wait])
    }
}

/// The name under which an error is counted.
pub(crate) const fn name_of(error: &NamespaceError) -> &'static str {
    match error {
        NamespaceError::Ftl(FtlError::DeviceFull { .. }) => "device-full",
        NamespaceError::Ftl(FtlError::OutOfRange { .. }) => "out-of-range",
        NamespaceError::Ftl(FtlError::ReadOnly { .. } | FtlError::Flash(FlashError::ReadOnly { .. }))
        | NamespaceError::Store { source: StoreError::ReadOnly { .. }, .. } => "read-only",
        NamespaceError::Ftl(FtlError::Flash(error)) => match error {
            FlashError::Uncorrectable { .. } => "uncorrectable",
            FlashError::ProgramFailed { .. } => "program-failed",
            FlashError::EraseFailed { .. } => "erase-failed",
            FlashError::WornOut { .. } => "worn-out",
            FlashError::BadBlock { .. } => "bad-block",
            _ => "flash",
        },
        NamespaceError::Store { source: StoreError::Io { .. }, .. } => "io",
        NamespaceError::Store { source: StoreError::Gone { .. }, .. } => "device-gone",
        NamespaceError::Lost { .. } => "lost",
        NamespaceError::Refused { .. } => "refused",
        NamespaceError::NotSupported { .. } => "not-supported",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_hundredth_and_extremes_exact() {
        let mut times = Times::default();
        for ns in 1..=100_000u64 {
            times.record(ns * 17);
        }
        let summary = times.summary();
        assert_eq!((summary.count, summary.min, summary.max), (100_000, 17, 1_700_000));
        for (got, exact) in [(summary.p50, 850_000.0), (summary.p99, 1_683_000.0)] {
            assert!((got as f64 / exact - 1.0).abs() < 0.01, "{got} for {exact}");
        }
        assert!((summary.mean - 850_008.5).abs() < 1e-6);
    }

    #[test]
    fn halves_merged_are_the_whole_and_a_cleared_meter_is_new() {
        let (mut whole, mut first, mut second) = (Times::default(), Times::default(), Times::default());
        for ns in 0..1000 {
            whole.record(ns);
            if ns < 300 { &mut first } else { &mut second }.record(ns);
        }
        first.merge(&second);
        first.merge(&Times::default());
        assert_eq!(first.summary(), whole.summary());
        first.clear();
        assert_eq!(first.summary(), LatencySummary::default());
        first.record(5);
        assert_eq!((first.summary().min, first.summary().max), (5, 5));
    }
}
