//! A recorded run, and the states that a loss of power may leave of it.

use super::device::{Buffer, CrashDevice};
use super::order::{OpSet, Operation};
use super::subject::{Site, Subject, Sure};
use crate::shrink::Outcome;
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{Oob, OutOfBand};
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use std::fmt;

/// Builds a layer on a device that is new or was cut off, or says why not.
pub type Open<'a, L, O = Oob> = dyn Fn(CrashDevice<O>) -> Outcome<L> + Sync + 'a;

/// How a run is cut before operation N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All before is done, N is not.
    Lost,
    /// All before is done, N is half done.
    Torn,
    /// Of what the host does not know to be on the flash, some is and some is not, and some is half done.
    Scattered(u32),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("l"),
            Self::Torn => f.write_str("t"),
            Self::Scattered(number) => write!(f, "s{number}"),
        }
    }
}

/// A run from a state of the flash, with what was done and promised in it.
pub struct Recorded<P, O: OutOfBand> {
    start: Nand<O>,
    buffer: Buffer,
    pub operations: Vec<Operation<O>>,
    sure: Sure,
    pub promises: P,
}

impl<P, O: OutOfBand> Recorded<P, O> {
    /// Starts a layer, reads everything, does the steps, and shuts down if told to.
    pub fn new<S: Subject<Promises = P, Oob = O>>(
        open: &Open<'_, S::Layer, O>,
        start: Nand<O>,
        medium: (Buffer, Buffer, &FaultPlan),
        promises: Option<P>,
        steps: &[S::Step],
        shuts_down: bool,
    ) -> Outcome<Self> {
        let (buffer, promised, plan) = medium;
        let (device, handle) = CrashDevice::new(start.clone(), buffer, plan, true);
        let layer = open(device).map_err(|error| format!("open: {error}"))?;
        let site = Site { handle: handle.clone(), buffer: promised, may_end_read_only: !plan.is_empty() };
        let mut host = S::new(layer, site, promises);
        host.observe(0)?;
        for step in steps {
            host.step(step)?;
        }
        host.check_invariants();
        if shuts_down {
            host.shutdown()?;
        }
        let (promises, sure) = host.into_promises();
        Ok(Self { start, buffer, operations: handle.take_operations(), sure, promises })
    }
}

/// The states that cuts of a run leave, made one after the other: what the host knows to be there is done
/// once and for all.
pub struct States<'a, P, O: OutOfBand> {
    run: &'a Recorded<P, O>,
    cut: usize,
    events: usize,
    sure: OpSet,
    base: Nand<O>,
}

impl<'a, P, O: OutOfBand> States<'a, P, O> {
    pub fn new(run: &'a Recorded<P, O>) -> Self {
        Self { run, cut: 0, events: 0, sure: OpSet::default(), base: run.start.clone() }
    }

    /// Goes on to the cut before operation `cut`. Never back.
    pub fn advance(&mut self, cut: usize) {
        assert!(cut >= self.cut, "cuts come in order");
        let mut sure = self.sure.clone();
        for (_, set) in self.run.sure[self.events..].iter().take_while(|(at, _)| *at <= cut) {
            sure.unite(set);
            self.events += 1;
        }
        if self.run.buffer == Buffer::Protected {
            (self.cut..cut).for_each(|op| sure.insert(op));
        }
        for (number, operation) in self.run.operations[..cut].iter().enumerate() {
            if sure.contains(number) && !self.sure.contains(number) {
                operation.apply(&mut self.base);
            }
        }
        self.sure = sure;
        self.cut = cut;
    }

    /// The kinds of cuts that make a difference here.
    pub fn kinds(&self, scattered: u32) -> impl Iterator<Item = Cut> {
        let is_last = self.cut == self.run.operations.len();
        let is_pending = (0..self.cut).any(|op| !self.sure.contains(op));
        let scattered = if is_pending { scattered } else { 0 };
        let torn = (!is_last).then_some(Cut::Torn);
        std::iter::once(Cut::Lost).chain(torn).chain((0..scattered).map(Cut::Scattered))
    }

    /// What a cut leaves of each operation: `=` is there for sure, `+` is there, `-` is not, `~` is half
    /// there.
    pub fn story(&self, kind: Cut, rng: &mut Xoshiro256PlusPlus) -> String {
        let mut marks = vec!['-'; self.run.operations.len()];
        self.make(kind, rng, |number, mark| marks[number] = mark);
        let lines = marks.iter().zip(&self.run.operations).enumerate().map(|(number, (mark, operation))| {
            let mark = if self.sure.contains(number) { '=' } else { *mark };
            format!("  {mark} {number:4} {operation}\n")
        });
        lines.collect()
    }

    pub fn state(&self, kind: Cut, rng: &mut Xoshiro256PlusPlus) -> Nand<O> {
        self.make(kind, rng, |_, _| {})
    }

    fn make(&self, kind: Cut, rng: &mut Xoshiro256PlusPlus, mut note: impl FnMut(usize, char)) -> Nand<O> {
        let mut nand = self.base.clone();
        let operations = &self.run.operations;
        // Shares of what may be there that is there.
        let likely = match kind {
            Cut::Scattered(_) => [0, 20, 50, 80, 95][below(rng, 5) as usize],
            Cut::Lost | Cut::Torn => 100,
        };
        let mut done = self.sure.clone();
        let mut missing = Vec::new();
        for (number, operation) in operations[..self.cut].iter().enumerate() {
            if done.contains(number) {
                continue;
            }
            if operation.needs.is_subset(&done) && below(rng, 100) < likely {
                operation.apply(&mut nand);
                done.insert(number);
                note(number, '+');
            } else {
                missing.push(number);
            }
        }
        match kind {
            Cut::Lost => {}
            Cut::Torn => {
                operations[self.cut].tear(&mut nand);
                note(self.cut, '~');
            }
            Cut::Scattered(_) => {
                for number in missing {
                    // Its block is then as it was when the operation began.
                    if operations[number].needs.is_subset(&done) && below(rng, 2) == 0 {
                        operations[number].tear(&mut nand);
                        note(number, '~');
                    }
                }
            }
        }
        nand
    }
}
