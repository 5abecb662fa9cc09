//! The load over its requests, in windows whose number stays bounded while the length of the workload is not
//! known.
//!
//! Sums of neighbouring windows can be added, distinct pages cannot. So distinct pages are counted at every
//! power of two of the window length at once: each page remembers the base window of its last use, and counts
//! as new at every length at which that window is another one than the present.

use crate::pages::GRANULE;
use nandscape_core::{IoRecord, TraceOp};
use serde::Serialize;
use std::collections::BTreeMap;

const BASE: u64 = 256;
const MOST: usize = 256;
const PIECE: u64 = 512;

/// Equally many requests in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Window {
    /// Number of its first request, from 0.
    pub first_request: u64,
    /// Arrival of its first request in nanoseconds.
    pub start_ns: u64,
    pub requests: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Distinct 4 KiB pages read or written in it: the working set.
    pub pages: u64,
    /// Distinct 4 KiB pages read or written from the start of the workload to the end of the window.
    pub pages_so_far: u64,
}

#[derive(Default)]
pub(super) struct Windows {
    /// For each page the base window of its last use plus 1; 0 is never.
    last_use: BTreeMap<(u32, u64), Box<[u32; PIECE as usize]>>,
    /// Distinct pages so far.
    pub(super) touched: u64,
    /// Sums, at window length `BASE << finest`.
    sums: Vec<Window>,
    finest: u32,
    /// Distinct pages at every length from `BASE << finest`: index `level - finest`, then window.
    distinct: Vec<Vec<u64>>,
}

impl Windows {
    pub(super) fn add(&mut self, request: u64, record: &IoRecord) {
        let base = request / BASE;
        let index = (base >> self.finest) as usize;
        if index >= self.sums.len() {
            if self.sums.len() == MOST {
                self.coarsen();
                return self.add(request, record);
            }
            self.sums.push(Window {
                first_request: request,
                start_ns: record.at.as_ns(),
                ..Window::default()
            });
        }
        let window = &mut self.sums[index];
        window.requests += 1;
        match record.op {
            TraceOp::Read => window.read_bytes += record.len,
            TraceOp::Write => window.write_bytes += record.len,
            _ => {}
        }
        if matches!(record.op, TraceOp::Read | TraceOp::Write) && record.len > 0 {
            let first = record.offset / GRANULE;
            let last = (record.offset + (record.len - 1)) / GRANULE;
            self.touch(record.volume, first, last, base);
        }
        self.sums[index].pages_so_far = self.touched;
    }

    fn touch(&mut self, volume: u32, first: u64, last: u64, base: u64) {
        // Base windows beyond 2^32 would be 10^12 requests; they share one number.
        let now = u32::try_from(base + 1).unwrap_or(u32::MAX);
        for piece in first / PIECE..=last / PIECE {
            let pages = self.last_use.entry((volume, piece)).or_insert_with(|| Box::new([0; PIECE as usize]));
            let low = first.max(piece * PIECE) % PIECE;
            let high = last.min(piece * PIECE + PIECE - 1) % PIECE;
            for page in &mut pages[low as usize..=high as usize] {
                let before = std::mem::replace(page, now);
                if before == now {
                    continue;
                }
                self.touched += u64::from(before == 0);
                count_new(&mut self.distinct, self.finest, before, u64::from(now - 1));
            }
        }
    }

    fn coarsen(&mut self) {
        self.finest += 1;
        if !self.distinct.is_empty() {
            self.distinct.remove(0);
        }
        let merged = self.sums.chunks(2).map(|pair| {
            let mut window = pair[0];
            if let Some(second) = pair.get(1) {
                window.requests += second.requests;
                window.read_bytes += second.read_bytes;
                window.write_bytes += second.write_bytes;
                window.pages_so_far = second.pages_so_far;
            }
            window
        });
        self.sums = merged.collect();
    }

    pub(super) fn finish(mut self) -> Vec<Window> {
        if let Some(finest) = self.distinct.first() {
            for (window, pages) in self.sums.iter_mut().zip(finest) {
                window.pages = *pages;
            }
        }
        self.sums
    }
}

/// Counts a page at every length at which its last use (plus 1, 0 never) was in another window than the
/// present one.
fn count_new(distinct: &mut Vec<Vec<u64>>, finest: u32, before: u32, base: u64) {
    // Longer windows than these would hold the whole workload.
    const LEVELS: u32 = 40;
    for level in finest..LEVELS {
        if before > 0 && u64::from(before - 1) >> level == base >> level {
            return;
        }
        let slot = (level - finest) as usize;
        if distinct.len() <= slot {
            distinct.push(Vec::new());
        }
        let window = (base >> level) as usize;
        let counts = &mut distinct[slot];
        if counts.len() <= window {
            counts.resize(window + 1, 0);
        }
        counts[window] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::SimTime;
    use std::collections::BTreeSet;

    #[test]
    fn distinct_pages_are_exact_at_whatever_length_comes_out() {
        let mut rng = nandscape_core::rng::seeded(11);
        for total in [1, 255, 257, 70_000, 200_000] {
            let mut windows = Windows::default();
            let mut records = Vec::new();
            for request in 0..total {
                let offset = nandscape_core::rng::below(&mut rng, 3000) * 3000;
                let op = if offset.is_multiple_of(7) { TraceOp::Trim } else { TraceOp::Write };
                let record = IoRecord { at: SimTime(request), offset, len: 6000, volume: 0, hint: 0, op };
                windows.add(request, &record);
                records.push(record);
            }
            let got = windows.finish();
            assert!(got.len() <= MOST);
            assert_eq!(got.iter().map(|w| w.requests).sum::<u64>(), total);
            let mut so_far = BTreeSet::new();
            for window in got {
                let from = window.first_request as usize;
                let mut pages = BTreeSet::new();
                for record in &records[from..from + window.requests as usize] {
                    if record.op == TraceOp::Write {
                        pages.extend(record.offset / GRANULE..=(record.offset + 5999) / GRANULE);
                    }
                }
                so_far.extend(pages.iter().copied());
                assert_eq!((window.pages, window.pages_so_far), (pages.len() as u64, so_far.len() as u64));
                assert_eq!(window.start_ns, window.first_request);
            }
        }
    }
}
