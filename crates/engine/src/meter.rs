//! What the engine measures while it runs: cheap enough for every request, since a request takes a few
//! microseconds in all.

use nandscape_core::command::HostCounts;
use nandscape_core::{
    BlockCommand, Command, FlashError, FtlError, NamespaceError, ObjectCommand, Op, OpCounts, SimTime,
    StoreError,
};
use nandscape_sim::metrics::Latencies;
use std::collections::BTreeMap;
use std::time::Instant;

/// Kinds of requests whose latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    /// Discard and write zeroes; of objects what frees space.
    Trim,
    Flush,
    /// Questions and names of objects, which a store answers from memory: not told.
    Other,
}

/// How many [`Kind`]s there are.
pub(crate) const KINDS: usize = 5;

impl Kind {
    #[inline]
    pub const fn of(command: &Command) -> Self {
        match command {
            Command::Block(BlockCommand { op: Op::Read, .. }) => Self::Read,
            Command::Block(BlockCommand { op: Op::Trim | Op::WriteZeroes, .. }) => Self::Trim,
            Command::Block(BlockCommand { op: Op::Flush, .. }) => Self::Flush,
            Command::Object(command) => Self::of_object(command),
            // What changes something and is none of these, of whatever command set.
            _ => Self::Write,
        }
    }

    const fn of_object(command: &ObjectCommand) -> Self {
        match command {
            ObjectCommand::Read { .. } => Self::Read,
            ObjectCommand::Write { .. } => Self::Write,
            ObjectCommand::Delete { .. } | ObjectCommand::Truncate { .. } | ObjectCommand::Punch { .. } => {
                Self::Trim
            }
            ObjectCommand::Flush { .. } => Self::Flush,
            ObjectCommand::Create { .. }
            | ObjectCommand::Reserve { .. }
            | ObjectCommand::Hint { .. }
            | ObjectCommand::SetAttributes { .. }
            | ObjectCommand::GetAttributes { .. }
            | ObjectCommand::Allocation { .. }
            | ObjectCommand::List
            | ObjectCommand::Space => Self::Other,
        }
    }
}

/// A distribution of times. Percentiles are within 1 %, of times up to an hour; the other figures are exact.
pub(crate) type Times = Latencies<2, 3_600_000_000_000>;

/// Everything that is measured in a span of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// From issue to completion in the model, by kind.
    pub model: [Times; KINDS],
    /// From arrival at the engine to when the answer may be sent, by kind.
    pub real: [Times; KINDS],
    /// How long a batch waited for the stack.
    pub wait: Times,
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub at: Instant,
    pub model: SimTime,
    pub host: HostCounts,
    pub flash: OpCounts,
}

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
        NamespaceError::Zone(error) => error.name(),
        NamespaceError::Vector(error) => error.name(),
        NamespaceError::Object(error) => error.name(),
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::result::LatencySummary;

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
