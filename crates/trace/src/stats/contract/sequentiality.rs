//! Aligned sequentiality: where writes begin and end, and how far they go on.

use crate::stats::histogram::{Distribution, Histogram};
use serde::Serialize;

/// Sequential runs that may be open at once.
const OPEN: usize = 32;

/// How writes lie on pages and erase blocks, and what they make together. A run is writes of which each
/// starts where the run ended; at most 32 are open, and a write that continues none ends the one that grew
/// least recently.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AlignedSequentiality {
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Writes that start on the border of a page.
    pub starts_on_page: u64,
    /// Writes that end on the border of a page.
    pub ends_on_page: u64,
    /// Writes that start on the border of an erase block.
    pub starts_on_block: u64,
    /// Writes that end on the border of an erase block.
    pub ends_on_block: u64,
    /// Bytes of runs.
    pub run_bytes: Distribution,
    /// Runs that start on the border of an erase block.
    pub runs_on_block: u64,
    /// Bytes of erase blocks that one run writes from the first byte to the last: what a hybrid mapping takes
    /// as it is, without a merge.
    pub whole_block_bytes: u64,
}

pub(super) struct WriteRuns {
    page_bytes: u64,
    block_bytes: u64,
    /// Ends of the open runs; the largest number where none is.
    ends: [u64; OPEN],
    /// Volume, start, and the write that it grew by last.
    open: [(u32, u64, u64); OPEN],
    run_bytes: Histogram,
    result: AlignedSequentiality,
}

impl Default for WriteRuns {
    fn default() -> Self {
        Self::new(1, 1)
    }
}

impl WriteRuns {
    pub(super) fn new(page_bytes: u64, block_bytes: u64) -> Self {
        Self {
            page_bytes: page_bytes.max(1),
            block_bytes: block_bytes.max(1),
            ends: [u64::MAX; OPEN],
            open: [(0, 0, 0); OPEN],
            run_bytes: Histogram::default(),
            result: AlignedSequentiality::default(),
        }
    }

    pub(super) fn add(&mut self, volume: u32, offset: u64, len: u64) {
        let end = offset + len;
        let result = &mut self.result;
        result.writes += 1;
        result.write_bytes += len;
        result.starts_on_page += u64::from(offset.is_multiple_of(self.page_bytes));
        result.ends_on_page += u64::from(end.is_multiple_of(self.page_bytes));
        result.starts_on_block += u64::from(offset.is_multiple_of(self.block_bytes));
        result.ends_on_block += u64::from(end.is_multiple_of(self.block_bytes));
        let now = result.writes;
        // Without an early exit first, which would cost more than it saves.
        let may_continue = self.ends.iter().filter(|end| **end == offset).count() > 0;
        let is_it = |index: &usize| self.ends[*index] == offset && self.open[*index].0 == volume;
        if may_continue && let Some(index) = (0..OPEN).find(is_it) {
            self.ends[index] = end;
            self.open[index].2 = now;
            return;
        }
        let oldest = (0..OPEN).min_by_key(|index| self.open[*index].2).unwrap_or(0);
        self.close(oldest);
        self.ends[oldest] = end;
        self.open[oldest] = (volume, offset, now);
    }

    fn close(&mut self, index: usize) {
        let ((_, start, _), end) = (self.open[index], self.ends[index]);
        if end == u64::MAX {
            return;
        }
        self.run_bytes.add(end - start);
        self.result.runs_on_block += u64::from(start.is_multiple_of(self.block_bytes));
        let blocks = (end / self.block_bytes).saturating_sub(start.div_ceil(self.block_bytes));
        self.result.whole_block_bytes += blocks * self.block_bytes;
    }

    pub(super) fn finish(mut self) -> AlignedSequentiality {
        (0..OPEN).for_each(|index| self.close(index));
        AlignedSequentiality { run_bytes: self.run_bytes.distribution(), ..self.result }
    }
}
