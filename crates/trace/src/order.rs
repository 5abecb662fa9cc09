//! Time stamps of public files that are not in order, or too coarse.

use crate::error::Result;
use crate::gate::TIME_MAX_NS;
use nandscape_core::{IoRecord, SimTime, TraceError, TraceReader, WorkloadInfo};
use std::collections::VecDeque;

/// Requests that are looked at ahead of the one that is passed on.
const SORT_WINDOW: usize = 8192;

/// Sorts by time within a window of 8192 requests (equal times keep file order), and makes times relative to
/// the first. What lies further back than the window is clamped. Every request that came after a later one
/// counts as a reversal.
pub(crate) struct SortWindow<R> {
    inner: R,
    /// In time order; new ones go to the back nearly always.
    ahead: VecDeque<IoRecord>,
    newest: u64,
    reversals: u64,
    origin: Option<u64>,
    last: u64,
    pending: Option<TraceError>,
    drained: bool,
}

impl<R: TraceReader> SortWindow<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            ahead: VecDeque::with_capacity(SORT_WINDOW),
            newest: 0,
            reversals: 0,
            origin: None,
            last: 0,
            pending: None,
            drained: false,
        }
    }

    fn fill(&mut self) {
        while !self.drained && self.ahead.len() < SORT_WINDOW {
            match self.inner.next() {
                Some(Ok(record)) => {
                    if record.at.as_ns() >= self.newest {
                        self.newest = record.at.as_ns();
                        self.ahead.push_back(record);
                    } else {
                        self.reversals += 1;
                        let place = self.ahead.partition_point(|other| other.at <= record.at);
                        self.ahead.insert(place, record);
                    }
                }
                Some(Err(error)) => {
                    self.pending = Some(error);
                    self.drained = true;
                }
                None => self.drained = true,
            }
        }
    }
}

impl<R: TraceReader> Iterator for SortWindow<R> {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fill();
        let Some(mut record) = self.ahead.pop_front() else {
            return self.pending.take().map(Err);
        };
        let at = record.at.as_ns();
        let origin = *self.origin.get_or_insert(at);
        // Later than the first by 100 years at most on each side of it, see Gate::arrival.
        let relative = at.saturating_sub(origin).min(TIME_MAX_NS);
        self.last = self.last.max(relative);
        record.at = SimTime(self.last);
        Some(Ok(record))
    }
}

impl<R: TraceReader> TraceReader for SortWindow<R> {
    fn info(&self) -> WorkloadInfo {
        let info = self.inner.info();
        let records = info.records - self.ahead.len() as u64;
        WorkloadInfo { records, time_reversals: self.reversals, ..info }
    }
}

/// Requests of one second that are held at once.
const SECOND_WINDOW: usize = 1 << 18;

/// For stamps in whole seconds: keeps file order, clamps stamps that go back (counted), and spreads the
/// requests of one second evenly over it. A second with more than 2^18 requests is spread in pieces, each
/// over half of what is left of it, so that memory stays bounded. Times become relative to the first.
pub(crate) struct SpreadSeconds<R> {
    inner: R,
    group: VecDeque<IoRecord>,
    step_ns: f64,
    index: u64,
    /// Start of the piece being passed on, inside its second.
    piece_ns: u64,
    piece_second: Option<SimTime>,
    next: Option<IoRecord>,
    origin: Option<u64>,
    /// The second of the requests read last, from the origin.
    second: u64,
    reversals: u64,
    pending: Option<TraceError>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl<R: TraceReader> SpreadSeconds<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            group: VecDeque::new(),
            step_ns: 0.0,
            index: 0,
            piece_ns: 0,
            piece_second: None,
            next: None,
            origin: None,
            second: 0,
            reversals: 0,
            pending: None,
        }
    }

    /// Where in its second the next request of the piece arrives.
    fn reached_ns(&self) -> u64 {
        self.piece_ns + (self.step_ns * self.index as f64) as u64
    }

    /// The next request with its clamped second (in nanoseconds, from the first).
    fn take(&mut self) -> Option<IoRecord> {
        if let Some(record) = self.next.take() {
            return Some(record);
        }
        match self.inner.next()? {
            Ok(mut record) => {
                let stamp = record.at.as_ns();
                let origin = *self.origin.get_or_insert(stamp);
                let relative = stamp.saturating_sub(origin);
                if stamp < origin || relative < self.second {
                    self.reversals += 1;
                }
                self.second = self.second.max(relative);
                record.at = SimTime(self.second);
                Some(record)
            }
            Err(error) => {
                self.pending = Some(error);
                None
            }
        }
    }

    /// Collects the next piece: the rest of a second, or as much of it as the window holds.
    fn collect(&mut self) {
        let mut whole = true;
        while let Some(record) = self.take() {
            let same = match self.group.front() {
                Some(first) => first.at == record.at,
                None => true,
            };
            if !same || self.group.len() == SECOND_WINDOW {
                whole = !same;
                self.next = Some(record);
                break;
            }
            self.group.push_back(record);
        }
        let Some(first) = self.group.front() else { return };
        self.piece_ns =
            if self.piece_second == Some(first.at) { self.reached_ns().min(SECOND_NS - 1) } else { 0 };
        self.piece_second = Some(first.at);
        let left = SECOND_NS - self.piece_ns;
        let share = if whole { left } else { left / 2 };
        self.step_ns = share as f64 / self.group.len() as f64;
        self.index = 0;
    }
}

impl<R: TraceReader> Iterator for SpreadSeconds<R> {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.group.is_empty() {
            self.collect();
        }
        let Some(mut record) = self.group.pop_front() else {
            return self.pending.take().map(Err);
        };
        record.at += self.reached_ns();
        self.index += 1;
        Some(Ok(record))
    }
}

impl<R: TraceReader> TraceReader for SpreadSeconds<R> {
    fn info(&self) -> WorkloadInfo {
        let info = self.inner.info();
        let held = self.group.len() as u64 + u64::from(self.next.is_some());
        WorkloadInfo {
            records: info.records - held,
            time_reversals: self.reversals,
            spreads_seconds: true,
            ..info
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::TraceOp;

    struct List(std::vec::IntoIter<u64>, u64);

    impl Iterator for List {
        type Item = Result<IoRecord, TraceError>;
        fn next(&mut self) -> Option<Self::Item> {
            let at = SimTime(self.0.next()?);
            self.1 += 1;
            Some(Ok(IoRecord { at, offset: self.1, len: 1, volume: 0, hint: 0, op: TraceOp::Read }))
        }
    }

    impl TraceReader for List {
        fn info(&self) -> WorkloadInfo {
            WorkloadInfo { records: self.1, ..WorkloadInfo::default() }
        }
    }

    fn times(reader: &mut impl TraceReader) -> Vec<(u64, u64)> {
        reader.map(|r| r.map(|r| (r.at.as_ns(), r.offset)).unwrap()).collect()
    }

    #[test]
    fn the_window_sorts_and_counts_what_came_late() {
        let mut sorted = SortWindow::new(List(vec![50, 20, 20, 70, 60].into_iter(), 0));
        assert_eq!(times(&mut sorted), [(0, 2), (0, 3), (30, 1), (40, 5), (50, 4)]);
        assert_eq!((sorted.info().time_reversals, sorted.info().records), (3, 5));
    }

    #[test]
    fn beyond_the_window_stamps_are_clamped() {
        let late: Vec<u64> = (0..SORT_WINDOW as u64 + 10).map(|i| 1000 + i).chain([5]).collect();
        let mut sorted = SortWindow::new(List(late.into_iter(), 0));
        let all = times(&mut sorted);
        assert!(all.is_sorted_by_key(|(at, _)| *at));
        assert_eq!(all.len(), SORT_WINDOW + 11);
        assert_eq!(sorted.info().time_reversals, 1);
    }

    #[test]
    fn a_second_is_spread_in_file_order() {
        let s = SECOND_NS;
        let mut spread = SpreadSeconds::new(List(vec![7 * s, 6 * s, 7 * s, 7 * s, 9 * s].into_iter(), 0));
        let quarter = s / 4;
        assert_eq!(
            times(&mut spread),
            [(0, 1), (quarter, 2), (2 * quarter, 3), (3 * quarter, 4), (2 * s, 5)]
        );
        assert_eq!(spread.info().time_reversals, 1);
    }

    #[test]
    fn an_overfull_second_stays_inside_itself_and_in_order() {
        let n = SECOND_WINDOW as u64 * 3 + 5;
        let mut spread = SpreadSeconds::new(List(vec![3 * SECOND_NS; n as usize].into_iter(), 0));
        let all = times(&mut spread);
        assert_eq!(all.len() as u64, n);
        assert!(all.is_sorted_by_key(|(at, _)| *at) && all.iter().all(|(at, _)| *at < SECOND_NS));
        assert_eq!(all[SECOND_WINDOW].0, SECOND_NS / 2);
    }
}
