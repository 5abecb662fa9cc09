//! The block layer's merging of neighbouring requests [streams-article 2.6].
//!
//! Requests wait in a plug list. A new one is appended to the back or put to the front of a waiting one if
//! both do the same, touch, and carry the same hint; a hint travels with the request it was merged into. The
//! list goes to the driver, oldest first, when it is full, at a flush, and when time has moved on by more
//! than the plug's span, as a task that goes to sleep unplugs.

use nandscape_core::{IoRecord, Origin, TraceError, TraceOp, TraceReader, WorkloadInfo};
use std::collections::VecDeque;

/// When the plug list is let go, and how large a request may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// Requests that wait at most; 0 turns merging off.
    pub plug: u32,
    /// Largest request in bytes.
    pub largest_bytes: u64,
    /// Requests further apart in time are not merged, in nanoseconds.
    pub span_ns: u64,
}

/// A waiting request and where its data came from.
#[derive(Clone, Debug)]
struct Waiting {
    record: IoRecord,
    origin: OwnedOrigin,
}

/// An [`Origin`] that outlives its reader's next record.
#[derive(Clone, Debug, Default)]
struct OwnedOrigin {
    kind: nandscape_core::BlockKind,
    file: u32,
    path: Option<Box<str>>,
    writer: u32,
    volume: u32,
}

impl OwnedOrigin {
    fn of(origin: &Origin<'_>) -> Self {
        let Origin { kind, file, path, writer, volume } = *origin;
        Self { kind, file, path: path.map(Into::into), writer, volume }
    }
}

/// A workload after the block layer's merging.
#[derive(Debug)]
pub struct Merged<R> {
    inner: R,
    options: MergeOptions,
    waiting: VecDeque<Waiting>,
    /// What could not join the list, to be taken up once it is empty.
    held: Option<Waiting>,
    error: Option<TraceError>,
    draining: bool,
    origin: OwnedOrigin,
    merges: u64,
}

impl<R: TraceReader> Merged<R> {
    /// Merges what `inner` gives.
    pub fn new(inner: R, options: MergeOptions) -> Self {
        Self {
            inner,
            options,
            waiting: VecDeque::with_capacity(options.plug as usize),
            held: None,
            error: None,
            draining: false,
            origin: OwnedOrigin::default(),
            merges: 0,
        }
    }

    /// Requests that were merged into others.
    pub fn merges(&self) -> u64 {
        self.merges
    }

    /// Fills the list until something makes it go.
    fn plug(&mut self) {
        while self.held.is_none() && self.waiting.len() < self.options.plug.max(1) as usize {
            match self.inner.next() {
                Some(Ok(record)) => {
                    let next = Waiting { record, origin: OwnedOrigin::of(&self.inner.origin()) };
                    let stale = self.waiting.front().is_some_and(|first| {
                        record.at.as_ns() - first.record.at.as_ns() > self.options.span_ns
                    });
                    if stale || record.op == TraceOp::Flush && !self.waiting.is_empty() {
                        self.held = Some(next);
                    } else if !self.merge(&record) {
                        self.waiting.push_back(next);
                    }
                }
                Some(Err(error)) => {
                    self.error = Some(error);
                    break;
                }
                None => break,
            }
        }
        self.draining = true;
    }

    /// Puts a request into a waiting one, the youngest first, as the kernel looks.
    fn merge(&mut self, record: &IoRecord) -> bool {
        if !matches!(record.op, TraceOp::Read | TraceOp::Write) {
            return false;
        }
        for index in (0..self.waiting.len()).rev() {
            let other = &mut self.waiting[index].record;
            if try_merge(other, record, self.options.largest_bytes) {
                self.merges += 1;
                return true;
            }
            // A request must not pass an older one over the same bytes, or one that orders.
            let overlaps =
                record.offset < other.offset + other.len && other.offset < record.offset + record.len;
            if !matches!(other.op, TraceOp::Read | TraceOp::Write) || overlaps {
                return false;
            }
        }
        false
    }
}

/// Joins `record` to `into` if they may be one request.
pub fn try_merge(into: &mut IoRecord, record: &IoRecord, largest_bytes: u64) -> bool {
    let fits = into.len.checked_add(record.len).is_some_and(|len| len <= largest_bytes);
    if into.op != record.op || into.volume != record.volume || into.hint != record.hint || !fits {
        return false;
    }
    if into.offset + into.len != record.offset {
        if record.offset + record.len != into.offset {
            return false;
        }
        into.offset = record.offset;
    }
    into.len += record.len;
    true
}

impl<R: TraceReader> Iterator for Merged<R> {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.options.plug == 0 {
            let next = self.inner.next();
            self.origin = OwnedOrigin::of(&self.inner.origin());
            return next;
        }
        if self.waiting.is_empty() {
            self.draining = false;
            if let Some(held) = self.held.take() {
                self.waiting.push_back(held);
            }
        }
        if !self.draining && self.error.is_none() {
            self.plug();
        }
        match self.waiting.pop_front() {
            Some(waiting) => {
                self.origin = waiting.origin;
                Some(Ok(waiting.record))
            }
            None => self.error.take().map(Err),
        }
    }
}

impl<R: TraceReader> TraceReader for Merged<R> {
    fn info(&self) -> WorkloadInfo {
        let info = self.inner.info();
        // Those that wait are not passed on yet, and merged ones never are.
        let waiting = self.waiting.len() as u64 + u64::from(self.held.is_some());
        WorkloadInfo { records: info.records.saturating_sub(waiting + self.merges), ..info }
    }

    fn origin(&self) -> Origin<'_> {
        let OwnedOrigin { kind, file, ref path, writer, volume } = self.origin;
        Origin { kind, file, path: path.as_deref(), writer, volume }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assign::testing::{List, io};

    const OPTIONS: MergeOptions = MergeOptions { plug: 16, largest_bytes: 1 << 20, span_ns: 1_000_000 };

    fn merged(records: Vec<IoRecord>, options: MergeOptions) -> (Vec<IoRecord>, u64) {
        let mut reader = Merged::new(List::new(records), options);
        let out = reader.by_ref().map(Result::unwrap).collect();
        (out, reader.merges())
    }

    fn run(hint: impl Fn(u64) -> u16) -> (Vec<IoRecord>, u64) {
        let records =
            (0..64).map(|i| IoRecord { hint: hint(i), ..io(i, TraceOp::Write, i * 4096, 4096) }).collect();
        merged(records, OPTIONS)
    }

    #[test]
    fn alternating_hints_give_no_merge_at_all() {
        let (out, merges) = run(|i| 2 + (i % 2) as u16);
        assert_eq!((out.len(), merges), (64, 0));
        // And nothing was moved.
        assert!(out.is_sorted_by_key(|record| record.at));
    }

    #[test]
    fn one_hint_gives_as_few_requests_as_the_size_allows() {
        let (out, merges) = run(|_| 2);
        assert_eq!((out.len(), merges), (1, 63));
        assert_eq!((out[0].offset, out[0].len, out[0].hint), (0, 64 * 4096, 2));
        let small = MergeOptions { plug: 64, largest_bytes: 16 << 10, ..OPTIONS };
        let records = (0..64).map(|i| io(i, TraceOp::Write, i * 4096, 4096)).collect();
        let (out, _) = merged(records, small);
        assert!(out.iter().all(|record| record.len == 16 << 10));
    }

    #[test]
    fn two_interleaved_runs_of_different_hints_merge_each_with_its_own() {
        let records = (0..8)
            .flat_map(|i| {
                let short = IoRecord { hint: 2, ..io(i, TraceOp::Write, i * 4096, 4096) };
                [short, IoRecord { hint: 4, offset: (1 << 30) + i * 4096, ..short }]
            })
            .collect();
        let (out, merges) = merged(records, OPTIONS);
        assert_eq!((out.len(), merges), (2, 14));
        assert_eq!(
            out.iter().map(|record| (record.hint, record.len)).collect::<Vec<_>>(),
            [(2, 32768), (4, 32768)]
        );
    }

    #[test]
    fn flushes_gaps_in_time_and_overlaps_keep_order() {
        let records = vec![
            io(0, TraceOp::Write, 0, 4096),
            io(0, TraceOp::Flush, 0, 0),
            io(0, TraceOp::Write, 4096, 4096),
            io(5_000_000, TraceOp::Write, 8192, 4096),
            io(5_000_000, TraceOp::Write, 40960, 4096),
            io(5_000_000, TraceOp::Write, 0, 12288),
            io(5_000_000, TraceOp::Write, 12288, 4096),
        ];
        let (out, merges) = merged(records.clone(), OPTIONS);
        // Only the last touches one that it need not pass; the write at 4096 is behind a flush, that at 8192
        // too late.
        assert_eq!(merges, 1);
        assert_eq!(out[..5], records[..5]);
        assert_eq!((out[5].offset, out[5].len), (0, 16384));
    }

    #[test]
    fn without_a_plug_nothing_changes() {
        let records: Vec<_> = (0..9).map(|i| io(i, TraceOp::Write, i * 4096, 4096)).collect();
        assert_eq!(merged(records.clone(), MergeOptions { plug: 0, ..OPTIONS }).0, records);
    }
}
