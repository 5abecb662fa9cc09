//! A policy around a workload: sets the stream of every write, and counts per stream.

use crate::policy::{PolicySetup, StreamPolicy, WriteFacts};
use nandscape_core::{IoRecord, Origin, TraceError, TraceOp, TraceReader, WorkloadInfo};

/// What was written with one stream id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    pub writes: u64,
    pub bytes: u64,
}

impl StreamCounts {
    /// Begun sectors of 512 B, the unit of the Linux driver's counters [streams-article 2.7].
    pub fn sectors(&self) -> u64 {
        self.bytes.div_ceil(512)
    }
}

/// A workload whose writes carry the streams that a policy chose. All else passes unchanged and in order.
pub struct Assigned<R> {
    inner: R,
    policy: Box<dyn StreamPolicy>,
    /// By stream; 0 is unstreamed.
    counts: Vec<StreamCounts>,
    setup: PolicySetup,
}

impl<R: TraceReader> Assigned<R> {
    /// Lets a policy choose among the streams of `setup`. One that needs to know the future must have seen it
    /// already.
    pub fn new(inner: R, policy: Box<dyn StreamPolicy>, setup: &PolicySetup) -> Self {
        let counts = vec![StreamCounts::default(); usize::from(setup.streams) + 1];
        Self { inner, policy, counts, setup: *setup }
    }

    /// What was written so far, by stream from 0 (unstreamed).
    pub fn counts(&self) -> &[StreamCounts] {
        &self.counts
    }

    /// The workload below.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// What the policy wants to be known.
    pub fn warnings(&self) -> Vec<String> {
        self.policy.warnings()
    }
}

impl<R: TraceReader> Iterator for Assigned<R> {
    type Item = Result<IoRecord, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut record = match self.inner.next()? {
            Ok(record) => record,
            Err(error) => return Some(Err(error)),
        };
        match record.op {
            TraceOp::Write | TraceOp::Append => {
                let facts = WriteFacts {
                    at: record.at,
                    offset: record.offset,
                    len: record.len,
                    hint: record.hint,
                    origin: self.inner.origin(),
                };
                let stream = self.policy.assign(&facts);
                let most = self.counts.len() - 1;
                assert!(usize::from(stream) <= most, "stream {stream} of {most}");
                let counts = &mut self.counts[usize::from(stream)];
                counts.writes += 1;
                counts.bytes += record.len;
                record.hint = self.setup.id(stream);
            }
            TraceOp::Trim | TraceOp::WriteZeroes => {
                self.policy.trimmed(record.offset, record.len);
                record.hint = 0;
            }
            _ => record.hint = 0,
        }
        Some(Ok(record))
    }
}

impl<R: TraceReader> TraceReader for Assigned<R> {
    fn info(&self) -> WorkloadInfo {
        self.inner.info()
    }

    fn origin(&self) -> Origin<'_> {
        self.inner.origin()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use nandscape_core::SimTime;

    /// A reader over a list.
    #[derive(Debug)]
    pub(crate) struct List(std::vec::IntoIter<IoRecord>, u64);

    impl List {
        pub(crate) fn new(records: Vec<IoRecord>) -> Self {
            Self(records.into_iter(), 0)
        }
    }

    impl Iterator for List {
        type Item = Result<IoRecord, TraceError>;
        fn next(&mut self) -> Option<Self::Item> {
            let record = self.0.next()?;
            self.1 += 1;
            Some(Ok(record))
        }
    }

    impl TraceReader for List {
        fn info(&self) -> WorkloadInfo {
            WorkloadInfo { records: self.1, ..WorkloadInfo::default() }
        }
    }

    pub(crate) fn io(at: u64, op: TraceOp, offset: u64, len: u64) -> IoRecord {
        IoRecord { at: SimTime(at), offset, len, volume: 0, hint: 0, op }
    }
}
