//! Request scale: sizes, and how many requests come together.

use crate::stats::histogram::{Distribution, Histogram};
use nandscape_core::{IoRecord, TraceOp};
use serde::Serialize;
use std::collections::VecDeque;

/// A read or write of at least this many bytes is large: it spans several dies of common geometries.
pub const LARGE_BYTES: u64 = 128 << 10;
/// A read or write of at most this many bytes is small: one page of common devices.
pub const SMALL_BYTES: u64 = 16 << 10;
/// Requests that arrive within this time count as concurrent: about one read of a flash page.
const TOGETHER_NS: u64 = 100_000;
/// Arrivals that are remembered, and so the most that count as concurrent.
const REMEMBERED: usize = 1024;

/// How much work the device is given at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestScale {
    /// Reads and writes.
    pub requests: u64,
    /// Reads and writes of 128 KiB or more.
    pub large: u64,
    /// Reads and writes of 16 KiB or less.
    pub small: u64,
    /// For each read and write, how many arrived in the 100 us up to it, itself included; at most 1024. It
    /// stands for the queue depth, which a workload without completions does not have. Absent without real
    /// times.
    pub concurrency: Option<Distribution>,
    /// Reads and writes between two flushes, or before the first: what a barrier may order. Absent without
    /// flushes.
    pub between_flushes: Option<Distribution>,
}

#[derive(Default)]
pub(super) struct Scale {
    requests: u64,
    large: u64,
    small: u64,
    arrivals: VecDeque<u64>,
    concurrency: Histogram,
    since_flush: u64,
    between_flushes: Histogram,
}

impl Scale {
    pub(super) fn add(&mut self, record: &IoRecord) {
        match record.op {
            TraceOp::Flush => self.between_flushes.add(std::mem::take(&mut self.since_flush)),
            TraceOp::Read | TraceOp::Write => {
                self.requests += 1;
                self.since_flush += 1;
                self.large += u64::from(record.len >= LARGE_BYTES);
                self.small += u64::from(record.len <= SMALL_BYTES);
                let at = record.at.as_ns();
                while self.arrivals.front().is_some_and(|first| at.saturating_sub(*first) > TOGETHER_NS) {
                    self.arrivals.pop_front();
                }
                if self.arrivals.len() == REMEMBERED {
                    self.arrivals.pop_front();
                }
                self.arrivals.push_back(at);
                self.concurrency.add(self.arrivals.len() as u64);
            }
            _ => {}
        }
    }

    pub(super) fn finish(self, has_real_times: bool) -> RequestScale {
        let between = self.between_flushes.distribution();
        RequestScale {
            requests: self.requests,
            large: self.large,
            small: self.small,
            concurrency: has_real_times.then(|| self.concurrency.distribution()),
            between_flushes: (between.count > 0).then_some(between),
        }
    }
}
