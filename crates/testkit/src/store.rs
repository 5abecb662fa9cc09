//! Any store against a plain array of bytes: random commands that are applied in one order and started in
//! another, and that overlap as the store likes.
//!
//! Checked all along: every byte read, that a command completes exactly once and not before its start, that
//! completions are reported in the order of time and no later than asked for, that nothing is left to happen
//! before the time that was reached, and the counters. A command past the end or between blocks is refused
//! and changes nothing.

use crate::commands::{Commands, byte, compare, zeroed};
use crate::shrink::{Outcome, run_or_shrink};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Applied, BlockCommand, Extent, Hint, Op, SimTime, Store, StoreError, Token};
use std::collections::BTreeMap;

/// Makes the store that is tried, anew for each run.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Store + Send>;

/// One step. Offsets are shares of the capacity.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Applies a command; `place` is in 2^-32 of the capacity.
    Apply { op: Op, place: u32, blocks: u64, salt: u32 },
    /// Starts one of those that were applied, so many nanoseconds later.
    Start { which: u32, later: u64 },
    /// Lets time go on, to the next event or by so many nanoseconds.
    Pass { by: Option<u64> },
}

/// What a run saw, so that a test can tell that it tested something, and that two runs are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When each command started and completed, in the order of their starts.
    pub times: Vec<(SimTime, SimTime)>,
    /// Commands whose completion was not known when they started.
    pub unknown: u64,
    /// Commands that completed after one that was started later.
    pub overtaken: u64,
}

fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = seeded(seed);
    let longest = [1, 8, 70][below(&mut rng, 3) as usize];
    // Between a queue that is always full and commands far apart.
    let gap = [10_000, 300_000, 20_000_000][below(&mut rng, 3) as usize];
    let is_hot = below(&mut rng, 2) == 0;
    let step = |salt: usize| match below(&mut rng, 20) {
        0..9 => {
            let ops =
                [Op::Read, Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Trim, Op::WriteZeroes];
            let op = if below(&mut rng, 30) == 0 { Op::Flush } else { ops[below(&mut rng, 8) as usize] };
            let anywhere = below(&mut rng, 1 << 32) as u32;
            let place = if is_hot && below(&mut rng, 3) > 0 { anywhere / 64 } else { anywhere };
            Step::Apply { op, place, blocks: 1 + below(&mut rng, longest), salt: salt as u32 }
        }
        9..18 => {
            let later = if below(&mut rng, 3) == 0 { 0 } else { below(&mut rng, gap) };
            Step::Start { which: below(&mut rng, 1 << 16) as u32, later }
        }
        18 => Step::Pass { by: None },
        _ => Step::Pass { by: Some(below(&mut rng, 10 * gap)) },
    };
    (0..count).map(step).collect()
}

/// Runs a store through so many steps. The failure of a shortened list of them is what comes back.
///
/// # Errors
/// What was wrong, and after which steps.
pub fn run(make: Make<'_>, seed: u64, count: usize) -> Outcome<Seen> {
    let all = steps(seed, count);
    let outcome = run_or_shrink(&all, 300, |steps| Run::new(make()).all(steps));
    outcome.map_err(|error| format!("seed {seed}: {error}"))
}

struct Run {
    store: Box<dyn Store + Send>,
    block: u64,
    /// What every byte must be; empty where the store keeps none.
    model: Vec<u8>,
    applied: Vec<(BlockCommand, Applied)>,
    /// Those that were started.
    commands: Commands,
    counts: HostCounts,
}

impl Run {
    fn new(store: Box<dyn Store + Send>) -> Self {
        let len = if store.stores_bytes() { store.capacity_bytes() as usize } else { 0 };
        Self {
            block: u64::from(store.block_bytes()),
            store,
            model: vec![0; len],
            applied: Vec::new(),
            commands: Commands::default(),
            counts: HostCounts::default(),
        }
    }

    fn all(mut self, steps: &[Step]) -> Outcome<Seen> {
        if self.block == 0 || !self.store.capacity_bytes().is_multiple_of(self.block) {
            return Err(format!("{} bytes in blocks of {}", self.store.capacity_bytes(), self.block));
        }
        for (number, step) in steps.iter().enumerate() {
            self.step(*step).map_err(|error| format!("step {number} ({step:?}): {error}"))?;
        }
        while !self.applied.is_empty() {
            self.start(0, 0)?;
        }
        self.drain()?;
        self.check_counts()?;
        self.check_all()?;
        self.check_refusals()?;
        self.check_end()?;
        let (times, overtaken) = self.commands.finished();
        Ok(Seen { times, unknown: self.commands.unknown, overtaken })
    }

    fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Apply { op, place, blocks, salt } => self.apply(op, place, blocks, salt),
            Step::Start { .. } if self.applied.is_empty() => Ok(()),
            Step::Start { which, later } => self.start(which as usize % self.applied.len(), later),
            Step::Pass { by } => {
                let next = self.store.next_event();
                let until = match by {
                    Some(by) => self.commands.now + by,
                    None => next.unwrap_or(self.commands.now).max(self.commands.now),
                };
                self.commands.advance(&mut *self.store, until)
            }
        }
    }

    fn apply(&mut self, op: Op, place: u32, blocks: u64, salt: u32) -> Outcome {
        let capacity = self.store.capacity_bytes() / self.block;
        let first = ((u128::from(place) * u128::from(capacity)) >> 32) as u64;
        let mut extent = Extent::new(first * self.block, blocks.min(capacity - first) * self.block);
        if op == Op::Flush {
            extent = Extent::new(0, 0);
        }
        let command = BlockCommand::new(op, extent, Hint::default());
        self.counts.count(command, self.store.block_bytes());
        let range = extent.offset as usize..extent.end() as usize;
        let applied = if self.model.is_empty() {
            self.store.apply(command, Payload::None).map_err(|error| error.to_string())?
        } else {
            match op {
                Op::Read => {
                    let mut data = vec![0xA5; range.len()];
                    let applied = self.store.apply(command, Payload::Read(&mut data));
                    let applied = applied.map_err(|error| error.to_string())?;
                    compare(extent.offset, &data, &self.model)?;
                    applied
                }
                Op::Write => {
                    let data: Vec<u8> = (extent.offset..extent.end()).map(|at| byte(salt, at)).collect();
                    self.model[range].copy_from_slice(&data);
                    self.store.apply(command, Payload::Write(&data)).map_err(|error| error.to_string())?
                }
                Op::Trim | Op::WriteZeroes | Op::Flush => {
                    let applied = self.store.apply(command, Payload::None);
                    let applied = applied.map_err(|error| error.to_string())?;
                    self.zeroed(op, extent)?;
                    applied
                }
            }
        };
        self.applied.push((command, applied));
        Ok(())
    }

    /// What was trimmed reads as zeroes, or as before where the store's own blocks are larger.
    fn zeroed(&mut self, op: Op, extent: Extent) -> Outcome {
        let range = extent.offset as usize..extent.end() as usize;
        if op == Op::WriteZeroes {
            self.model[range.clone()].fill(0);
        }
        if range.is_empty() {
            return Ok(());
        }
        let command = BlockCommand::new(Op::Read, extent, Hint::default());
        self.counts.count(command, self.store.block_bytes());
        let mut data = vec![0xA5; range.len()];
        let applied =
            self.store.apply(command, Payload::Read(&mut data)).map_err(|error| error.to_string())?;
        self.applied.push((command, applied));
        zeroed(extent, &data, &mut self.model, self.block as usize)
    }

    fn start(&mut self, which: usize, later: u64) -> Outcome {
        self.commands.now += later;
        let (command, applied) = self.applied.remove(which);
        let token =
            self.store.start(command, applied, self.commands.now).map_err(|error| error.to_string())?;
        self.started(token)
    }

    fn started(&mut self, token: Token) -> Outcome {
        let (now, done) = (self.now(), self.commands.known(&*self.store, token));
        if let Some(done) = done.filter(|done| *done < now) {
            return Err(format!("completes at {done}, before its start at {now}"));
        }
        self.commands.start(&mut *self.store, token, done);
        Ok(())
    }

    fn now(&self) -> SimTime {
        self.commands.now
    }

    fn drain(&mut self) -> Outcome {
        self.commands.drain(&mut *self.store)?;
        // What a write cache still has to write is part of it.
        let idle_from = self.store.idle_from();
        if idle_from > self.now() {
            self.commands.advance(&mut *self.store, idle_from)?;
        }
        Ok(())
    }

    fn check_counts(&self) -> Outcome {
        // Pages are the store's own.
        let same = |counts: HostCounts| HostCounts { read_pages: 0, write_pages: 0, ..counts };
        let (got, want) = (same(self.store.counts()), same(self.counts));
        if got == want { Ok(()) } else { Err(format!("counted {got:?}, was asked for {want:?}")) }
    }

    fn read_all(&mut self) -> Outcome<Vec<u8>> {
        let mut data = vec![0xA5; self.model.len()];
        let extent = Extent::new(0, self.store.capacity_bytes());
        let command = BlockCommand::new(Op::Read, extent, Hint::default());
        let payload = if data.is_empty() { Payload::None } else { Payload::Read(&mut data) };
        let token =
            self.store.submit(command, payload, self.commands.now).map_err(|error| error.to_string())?;
        self.started(token)?;
        self.drain()?;
        Ok(data)
    }

    fn check_all(&mut self) -> Outcome {
        let data = self.read_all()?;
        compare(0, &data, &self.model)
    }

    fn check_refusals(&mut self) -> Outcome {
        let (capacity, block) = (self.store.capacity_bytes(), self.block);
        let past = [Extent::new(capacity, block), Extent::new(capacity - block, 2 * block)];
        let uneven = [Extent::new(1, block), Extent::new(0, block - 1), Extent::new(block / 2, block)];
        for op in [Op::Read, Op::Write, Op::Trim, Op::WriteZeroes] {
            for (extent, is_past) in past.iter().map(|e| (e, true)).chain(uneven.iter().map(|e| (e, false))) {
                let mut data = vec![0xA5; extent.len as usize];
                let payload = match op {
                    Op::Read if !self.model.is_empty() => Payload::Read(&mut data),
                    Op::Write if !self.model.is_empty() => Payload::Write(&data),
                    _ => Payload::None,
                };
                let command = BlockCommand::new(op, *extent, Hint::default());
                let outcome = self.store.apply(command, payload);
                let is_right = match &outcome {
                    Err(StoreError::OutOfRange { .. }) => is_past,
                    Err(StoreError::Unaligned { .. }) => !is_past,
                    _ => false,
                };
                if !is_right {
                    return Err(format!("{op:?} of {extent} on {capacity} bytes gives {outcome:?}"));
                }
            }
        }
        self.check_all()
    }

    /// Counters that begin anew, and the end.
    fn check_end(&mut self) -> Outcome {
        self.store.reset_counters(self.commands.now);
        if self.store.counts() != HostCounts::default() || self.store.idle_from() > self.commands.now {
            let (counts, idle) = (self.store.counts(), self.store.idle_from());
            return Err(format!(
                "after a reset at {} there are {counts:?}, and it is idle from {idle}",
                self.commands.now
            ));
        }
        let times = self.commands.times.len();
        let token = self.store.shutdown(self.commands.now).map_err(|error| error.to_string())?;
        self.started(token)?;
        self.drain()?;
        self.check_all()?;
        self.commands.times.truncate(times);
        Ok(())
    }
}

/// A store that keeps bytes and one that keeps none, of the same make, take the same time for the same
/// commands.
///
/// # Errors
/// What was wrong in either run, or the first command that differs.
pub fn same_times(with: Make<'_>, without: Make<'_>, seed: u64, count: usize) -> Outcome {
    // Trims are followed by a read where there are bytes, so that there are none here.
    let plain: BTreeMap<bool, Vec<(SimTime, SimTime)>> = [(true, with), (false, without)]
        .into_iter()
        .map(|(keeps, make)| {
            let steps = steps(seed, count)
                .into_iter()
                .filter(|step| !matches!(step, Step::Apply { op: Op::Trim | Op::WriteZeroes, .. }));
            Ok((keeps, Run::new(make()).all(&steps.collect::<Vec<_>>())?.times))
        })
        .collect::<Outcome<_>>()?;
    let differs = plain[&true].iter().zip(&plain[&false]).position(|(a, b)| a != b);
    match differs {
        None => Ok(()),
        Some(at) => Err(format!(
            "seed {seed}: command {at} takes {:?} with bytes and {:?} without",
            plain[&true][at], plain[&false][at]
        )),
    }
}
