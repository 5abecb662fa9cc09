//! Rollback segments: undo of transactions, appended to several segments, and reads of old versions.

use super::super::common::{SPAN, threshold};
use super::space::Space;
use super::{BS, EXTENT, Load, READS, RETAIN, SEGMENTS, UNDO, given};
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, below};
use nandscape_core::{ParamError, Params};

/// Share of reads if none is given.
pub(super) const READS_DEFAULT: f64 = 0.3;

pub(super) struct Rollback {
    /// Bytes of an extent, and of all extents of a segment.
    extent: u64,
    segment: u64,
    /// Extents that a segment keeps.
    kept: u64,
    /// Bytes written to each segment so far.
    written: Vec<u64>,
    /// The segment of the transaction, and its blocks that are still to be written.
    turn: usize,
    left: u64,
    /// Blocks of a transaction on average.
    undo: u64,
    /// Draws below it are reads.
    reads: u128,
    /// Bytes until all segments together were written once more.
    until_pass: u64,
}

impl Rollback {
    pub(super) fn new(params: &Params, space: &Space) -> Result<Self, ParamError> {
        let active = space.most_active();
        let segments = params.get(SEGMENTS).unwrap_or(8.min(active.unwrap_or(8)));
        if let Some(active) = active.filter(|active| segments > *active) {
            return Err(params
                .error(SEGMENTS, format!("at most active, {active}: a zone of each is written in part")));
        }
        let extent = if active.is_some() { space.grain } else { params.get(EXTENT).unwrap_or(1 << 20) };
        if !extent.is_multiple_of(space.bs) {
            return Err(params.error(
                given(params, EXTENT, BS),
                format!("an extent of {extent} B that is a multiple of bs, {} B", space.bs),
            ));
        }
        let extents = space.usable / segments / extent;
        if extents == 0 {
            let expected = format!("room for an extent of {extent} B in each of {segments} segments");
            return Err(params.error(given(params, SEGMENTS, SPAN), expected));
        }
        let reads = params.get(READS).unwrap_or(READS_DEFAULT);
        if reads >= 1.0 {
            return Err(params.error(READS, "less than 100%, since what is read must be written before"));
        }
        let retain = params.get(RETAIN).unwrap_or(0.75);
        Ok(Self {
            extent,
            segment: extents * extent,
            kept: ((extents as f64 * retain) as u64).clamp(1, extents),
            written: vec![0; segments as usize],
            turn: segments as usize - 1,
            left: 0,
            undo: params.get(UNDO).unwrap_or(4),
            reads: threshold(reads),
            until_pass: segments * extents * extent,
        })
    }

    /// Where a byte of a segment lies that was written when `written` bytes had been.
    fn place(&self, segment: usize, written: u64) -> u64 {
        segment as u64 * self.segment + written % self.segment
    }

    /// A block that some segment keeps; `None` if it has none yet.
    fn old_version(&self, bs: u64, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let segment = below(rng, self.written.len() as u64) as usize;
        let end = self.written[segment];
        let begun = end.div_ceil(self.extent);
        let first = begun.saturating_sub(self.kept) * self.extent;
        (end > first).then(|| self.place(segment, first + below(rng, (end - first) / bs) * bs))
    }
}

impl Load for Rollback {
    fn step(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool {
        if self.reads > 0
            && u128::from(rng.next_u64()) < self.reads
            && let Some(at) = self.old_version(space.bs, rng)
        {
            space.read(at);
            return false;
        }
        if self.left == 0 {
            self.turn = (self.turn + 1) % self.written.len();
            self.left = 1 + below(rng, 2 * self.undo - 1);
        }
        self.left -= 1;
        let written = self.written[self.turn];
        let begun = written / self.extent;
        if written.is_multiple_of(self.extent) && begun >= self.kept {
            space.free(self.place(self.turn, (begun - self.kept) * self.extent), self.extent);
        }
        space.write(self.place(self.turn, written), space.bs);
        self.written[self.turn] += space.bs;
        self.until_pass -= space.bs;
        let is_pass = self.until_pass == 0;
        if is_pass {
            self.until_pass = self.segment * self.written.len() as u64;
        }
        is_pass
    }
}
