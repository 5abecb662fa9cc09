//! An external sort: runs are written one behind the other, then merged level by level.

use super::super::common::SPAN;
use super::space::Space;
use super::{BS, FANIN, Load, MEMORY, TABLE, given};
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{ParamError, Params};

/// Most first runs.
const RUNS_MAX: u64 = 1 << 20;

pub(super) struct Sort {
    table: u64,
    /// Bytes of a first run.
    run: u64,
    /// Where the second half of the area begins.
    half: u64,
    fan_in: usize,
    /// Bytes of first runs written so far.
    written: u64,
    /// Where the runs of this level begin: in the first half or in the second.
    source: u64,
    /// Their ends, from there.
    runs: Vec<u64>,
    /// The same of the runs that the merges of this level have made.
    results: Vec<u64>,
    /// Runs of this level that are merged, or being merged.
    taken: usize,
    /// Of each run of this merge: its next byte, and its end.
    cursors: Vec<(u64, u64)>,
    /// Runs of this merge whose first block was read.
    primed: usize,
    /// Those of them that are not at their end.
    alive: Vec<u32>,
    /// Blocks that were read and not yet written.
    held: usize,
    /// Bytes written by the merges of this level.
    merged: u64,
}

impl Sort {
    pub(super) fn new(params: &Params, space: &Space) -> Result<Self, ParamError> {
        let (bs, half) = (space.bs, space.whole(space.usable / 2));
        let memory = params.get(MEMORY).unwrap_or(16 << 20);
        let most = (memory / bs).saturating_sub(1);
        if most < 2 {
            let expected = format!("a memory, {memory} B, of at least 3 blocks, {bs} B each");
            return Err(params.error(given(params, MEMORY, BS), expected));
        }
        let fan_in = params.get(FANIN).unwrap_or(most);
        if fan_in > most {
            let expected = format!("at most {most}: memory holds a block of each run and one of the result");
            return Err(params.error(FANIN, expected));
        }
        let table = space.whole(params.get(TABLE).unwrap_or(half));
        if table > half {
            return Err(params.error(TABLE, format!("at most half of the area, {half} B")));
        }
        let run = memory.next_multiple_of(space.grain);
        if table <= run {
            let expected = format!("more than one run of {run} B to sort (there are {table} B)");
            return Err(params.error(given(params, TABLE, SPAN), expected));
        }
        if table.div_ceil(run) > RUNS_MAX {
            let least = table.div_ceil(RUNS_MAX);
            let expected = format!("a memory of at least {least} B, for {RUNS_MAX} runs at most");
            return Err(params.error(given(params, MEMORY, SPAN), expected));
        }
        Ok(Self {
            table,
            run,
            half,
            fan_in: usize::try_from(fan_in).unwrap_or(usize::MAX),
            written: 0,
            source: 0,
            runs: Vec::new(),
            results: Vec::new(),
            taken: 0,
            cursors: Vec::new(),
            primed: 0,
            alive: Vec::new(),
            held: 0,
            merged: 0,
        })
    }

    /// Takes the next runs of this level.
    fn begin_merge(&mut self) {
        let until = self.taken.saturating_add(self.fan_in).min(self.runs.len());
        let mut start = self.merged;
        self.cursors.clear();
        for end in &self.runs[self.taken..until] {
            self.cursors.push((start, *end));
            start = *end;
        }
        (self.taken, self.primed) = (until, 0);
    }

    fn read(&mut self, run: usize, space: &mut Space) -> bool {
        let (next, end) = &mut self.cursors[run];
        space.read(self.source + *next);
        *next += space.bs;
        self.held += 1;
        next < end
    }

    /// One read or write of a merge. Whether it was the last of the sort.
    fn merge(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool {
        if self.primed < self.cursors.len() {
            let run = self.primed;
            self.primed += 1;
            if self.read(run, space) {
                self.alive.push(run as u32);
            }
            return false;
        }
        if self.held < self.cursors.len() && !self.alive.is_empty() {
            let drawn = below(rng, self.alive.len() as u64) as usize;
            if !self.read(self.alive[drawn] as usize, space) {
                self.alive.swap_remove(drawn);
            }
            return false;
        }
        let target = self.half - self.source;
        space.write(target + self.merged, space.bs);
        self.merged += space.bs;
        self.held -= 1;
        if self.held > 0 || !self.alive.is_empty() {
            return false;
        }
        // The runs that were merged end where their result does.
        let start = self.results.last().copied().unwrap_or(0);
        space.free(self.source + start, self.merged - start);
        self.results.push(self.merged);
        if self.taken < self.runs.len() {
            self.begin_merge();
            return false;
        }
        std::mem::swap(&mut self.runs, &mut self.results);
        self.results.clear();
        (self.source, self.taken, self.merged) = (target, 0, 0);
        if self.runs.len() > 1 {
            self.begin_merge();
            return false;
        }
        space.free(self.source, self.table);
        (self.source, self.written) = (0, 0);
        true
    }
}

impl Load for Sort {
    fn step(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool {
        if self.written == self.table {
            return self.merge(space, rng);
        }
        space.write(self.written, space.bs);
        self.written += space.bs;
        if self.written == self.table {
            self.runs.clear();
            let runs = self.table.div_ceil(self.run);
            self.runs.extend((1..=runs).map(|run| (run * self.run).min(self.table)));
            self.begin_merge();
        }
        false
    }
}
