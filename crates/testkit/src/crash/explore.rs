//! Cuts a run at every operation, in every way, and looks at what comes back.

use super::device::{Buffer, CrashDevice, Handle};
use super::host::Host;
use super::order::Operation;
use super::states::{Cut, Open, Recorded, States};
use super::subject::{Promises as _, Site, Subject};
use crate::shrink::{Outcome, guarded, listed, shrink};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockState, Oob};
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use std::fmt;
use std::io::Write as _;

/// Damages pages; the number decides which.
pub type Damage<O = Oob> = fn(&mut Nand<O>, u64);

/// How much is tried at each cut.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Requests of a run.
    pub steps: usize,
    /// Scattered cuts before each operation.
    pub scattered: u32,
    /// One of so many cuts is recovered, used, shut down and opened again; the others are recovered and
    /// read.
    pub deep_every: u64,
    /// During the recovery after one of so many cuts, power is cut again at each operation.
    pub again_every: u64,
    /// After one of so many cuts, power is cut ten times in a row, and then the device is overwritten.
    pub row_every: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { steps: 60, scattered: 3, deep_every: 6, again_every: 60, row_every: 200 }
    }
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// States after a cut that were recovered and compared.
    pub points: u64,
    /// Of these, after a cut during or soon after another recovery.
    pub again: u64,
    /// Rows of ten cuts.
    pub rows: u64,
    /// Operations that were cut at.
    pub operations: u64,
    /// Erases among them.
    pub erases: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.points += other.points;
        self.again += other.again;
        self.rows += other.rows;
        self.operations += other.operations;
        self.erases += other.erases;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cut points ({} of them again after a recovery, {} rows of ten) at {} operations ({} erases)",
            self.points, self.again, self.rows, self.operations, self.erases
        )
    }
}

/// A broken promise, and where.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The cut, as `CRASH_CUT` takes it.
    pub cut: String,
    /// What is wrong.
    pub message: String,
}

/// One run to be cut.
pub struct Case<'a, S: Subject = Host> {
    /// The wholly erased device.
    pub nand: &'a Nand<S::Oob>,
    /// What stands between a program and the flash.
    pub buffer: Buffer,
    /// What goes wrong besides: programs and erases that fail.
    pub plan: &'a FaultPlan,
    /// Decides everything else.
    pub seed: u64,
    /// The layer.
    pub open: &'a Open<'a, S::Layer, S::Oob>,
    /// Answered writes are durable with a flush alone.
    pub needs_flush: bool,
    /// What happens to the flash while the power is off, after a cut of the first run.
    pub damage: Option<Damage<S::Oob>>,
    /// How much is tried.
    pub effort: Effort,
    /// Only this cut of the first run, such as `317t`.
    pub only: Option<&'a str>,
}

/// A number that a cut decides.
fn mix(seed: u64, depth: u64, cut: usize, kind: Cut) -> u64 {
    let kind = match kind {
        Cut::Lost => 0,
        Cut::Torn => 1,
        Cut::Scattered(number) => 2 + u64::from(number),
    };
    let mixed = (seed ^ (depth << 60) ^ ((cut as u64) << 8) ^ kind).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 8
}

/// The state that a run begins with, and what was promised before.
type Begun<S> = (Nand<<S as Subject>::Oob>, Option<<S as Subject>::Promises>);

struct Walk<'a, S: Subject> {
    case: &'a Case<'a, S>,
    tally: Tally,
}

impl<S: Subject> Case<'_, S> {
    /// Tries everything. A failure says what a shortened run fails with, where one was found.
    pub fn explore(&self) -> Result<Tally, Failure> {
        let steps = S::steps(self.seed, self.effort.steps, self.nand.geometry().page_bytes);
        let failure = match self.run(&steps) {
            Ok(tally) => return Ok(tally),
            Err(failure) => failure,
        };
        if self.only.is_some() {
            return Err(failure);
        }
        let shortened = shrink(&steps, 40, |steps| self.run(steps).map(|_| ()));
        Err(match shortened {
            Some((kept, short)) if kept.len() < steps.len() => {
                let message = format!(
                    "{}\n  Shortened to {} step(s), cut {} gives: {}\n{}",
                    failure.message,
                    kept.len(),
                    short.cut,
                    short.message,
                    listed(&kept)
                );
                Failure { message, ..failure }
            }
            _ => failure,
        })
    }

    /// Like [`Case::explore`], without shortening.
    pub fn first_failure(&self) -> Result<Tally, Failure> {
        self.run(&S::steps(self.seed, self.effort.steps, self.nand.geometry().page_bytes))
    }

    /// One run from a device that is new, filled and shut down, or filled and cut off.
    fn run(&self, steps: &[S::Step]) -> Result<Tally, Failure> {
        let mut walk = Walk { case: self, tally: Tally::default() };
        let recorded = guarded(|| {
            let (start, promises) = self.start()?;
            self.record(start, 0, promises, steps, self.seed.is_multiple_of(2))
        });
        let recorded = recorded.map_err(|message| Failure {
            cut: "-".to_owned(),
            message: format!("without a cut: {message}"),
        })?;
        walk.all(&recorded)?;
        Ok(walk.tally)
    }

    /// A run from a state of the flash, with what goes wrong after the cut that a number stands for.
    fn record(
        &self,
        start: Nand<S::Oob>,
        salt: u64,
        promises: Option<S::Promises>,
        steps: &[S::Step],
        shuts_down: bool,
    ) -> Outcome<Recorded<S::Promises, S::Oob>> {
        let medium = (self.buffer, self.promised(), &self.plan(salt));
        Recorded::new::<S>(self.open, start, medium, promises, steps, shuts_down)
    }

    /// The buffer that answers promise as much as.
    fn promised(&self) -> Buffer {
        if self.needs_flush { Buffer::Volatile } else { self.buffer }
    }

    /// What goes wrong after the cut that a number stands for.
    fn plan(&self, salt: u64) -> FaultPlan {
        FaultPlan { seed: self.seed ^ (salt << 32), ..self.plan.clone() }
    }

    /// A host on a layer that starts from a state of the flash.
    fn host(
        &self,
        nand: Nand<S::Oob>,
        plan: &FaultPlan,
        promises: Option<S::Promises>,
    ) -> Outcome<(S, Handle<S::Oob>)> {
        let (device, handle) = CrashDevice::new(nand, self.buffer, plan, false);
        let layer = (self.open)(device).map_err(|error| format!("open: {error}"))?;
        let buffer = self.promised();
        let site = Site { handle: handle.clone(), buffer, may_end_read_only: !self.plan.is_empty() };
        Ok((S::new(layer, site, promises), handle))
    }

    fn start(&self) -> Outcome<Begun<S>> {
        let kind = self.seed % 3;
        if kind == 0 {
            return Ok((self.nand.clone(), None));
        }
        let (mut host, handle) = self.host(self.nand.clone(), &FaultPlan::default(), None)?;
        for step in host.fill(self.seed) {
            host.step(&step)?;
        }
        if kind == 1 {
            host.shutdown()?;
        }
        Ok((handle.nand(), Some(host.promises().after_cut(usize::MAX))))
    }
}

impl<S: Subject> Walk<'_, S> {
    /// Every cut of the first run.
    fn all(&mut self, run: &Recorded<S::Promises, S::Oob>) -> Result<(), Failure> {
        let effort = self.case.effort;
        let mut states = States::new(run);
        self.tally.operations += run.operations.len() as u64;
        self.tally.erases += run.operations.iter().filter(|operation| operation.is_erase()).count() as u64;
        for cut in 0..=run.operations.len() {
            states.advance(cut);
            for kind in states.kinds(effort.scattered) {
                let name = format!("{cut}{kind}");
                if self.case.only.is_some_and(|only| only != name) {
                    continue;
                }
                let mut rng = seeded(mix(self.case.seed, 0, cut, kind));
                if self.case.only.is_some() {
                    let story = states.story(kind, &mut rng.clone());
                    let _ = write!(std::io::stderr(), "what cut {name} leaves:\n{story}");
                }
                let fails = |message: String| {
                    let at =
                        run.operations.get(cut).map_or_else(|| "the end".to_owned(), ToString::to_string);
                    Failure { cut: name.clone(), message: format!("cut at operation {cut}, {at}: {message}") }
                };
                let mut nand = states.state(kind, &mut rng);
                if let Some(damage) = self.case.damage {
                    damage(&mut nand, mix(self.case.seed, 4, cut, kind));
                }
                let promises = run.promises.after_cut(cut);
                let is_only = self.case.only.is_some();
                let mut one_of = |every: u64| is_only || (every > 0 && below(&mut rng, every) == 0);
                let (is_deep, is_again, is_row) =
                    (one_of(effort.deep_every), one_of(effort.again_every), one_of(effort.row_every));
                self.tally.points += 1;
                guarded(|| self.check(nand.clone(), promises.clone(), cut as u64, is_deep)).map_err(fails)?;
                if is_again {
                    guarded(|| self.again(nand.clone(), promises.clone(), cut)).map_err(fails)?;
                }
                if is_row {
                    guarded(|| self.row(nand.clone(), promises.clone(), cut)).map_err(fails)?;
                }
            }
        }
        Ok(())
    }

    /// Recovers and reads; a deep check goes on working, shuts down and opens again.
    fn check(&self, nand: Nand<S::Oob>, promises: S::Promises, salt: u64, is_deep: bool) -> Outcome {
        let case = self.case;
        let (mut host, handle) = case.host(nand, &case.plan(salt), Some(promises))?;
        host.check_invariants();
        host.observe(0)?;
        if !is_deep {
            return Ok(());
        }
        for step in S::steps(case.seed ^ (salt << 20) ^ 1, 12, case.nand.geometry().page_bytes) {
            host.step(&step).map_err(|error| format!("after the recovery: {error}"))?;
        }
        host.verify().map_err(|error| format!("after the recovery: {error}"))?;
        host.check_invariants();
        let is_shut = host.shutdown()?;
        let is_read_only = !is_shut || host.is_read_only();
        let (promises, _) = host.into_promises();
        let (mut host, _) = case
            .host(handle.nand(), &case.plan(salt), Some(promises))
            .map_err(|error| format!("after a clean shutdown: {error}"))?;
        if !is_read_only {
            host.check_clean_start()?;
        }
        host.check_invariants();
        // A device that takes no writes cannot make the last ones durable.
        let found = if is_read_only { host.observe(0) } else { host.verify() };
        found.map_err(|error| format!("after a clean shutdown: {error}"))
    }

    /// Cuts at each operation of the recovery and of a few requests after it.
    fn again(&mut self, nand: Nand<S::Oob>, promises: S::Promises, salt: usize) -> Outcome {
        let case = self.case;
        let steps = S::steps(case.seed ^ ((salt as u64) << 24) ^ 2, 4, case.nand.geometry().page_bytes);
        let run = case
            .record(nand, salt as u64, Some(promises), &steps, false)
            .map_err(|error| format!("second start: {error}"))?;
        let mut states = States::new(&run);
        for cut in 0..=run.operations.len() {
            states.advance(cut);
            for kind in states.kinds(1) {
                let mut rng = seeded(mix(case.seed ^ salt as u64, 1, cut, kind));
                let story = case.only.map(|_| states.story(kind, &mut rng.clone()));
                let nand = states.state(kind, &mut rng);
                self.tally.points += 1;
                self.tally.again += 1;
                let is_deep = below(&mut rng, 8) == 0;
                self.check(nand, run.promises.after_cut(cut), cut as u64, is_deep).map_err(|error| {
                    let count = run.operations.len();
                    let story = story.map_or_else(String::new, |story| format!("\n{story}  {steps:?}"));
                    format!("and then cut {cut}{kind} of {count} in the second start: {error}{story}")
                })?;
            }
        }
        Ok(())
    }

    /// Ten cuts in a row, each during or soon after the recovery from the one before; then there is room for
    /// everything to be overwritten.
    fn row(&mut self, nand: Nand<S::Oob>, promises: S::Promises, salt: usize) -> Outcome {
        let case = self.case;
        let page_bytes = case.nand.geometry().page_bytes;
        let mut rng = seeded(mix(case.seed, 2, salt, Cut::Lost));
        let (mut nand, mut promises) = (nand, promises);
        for round in 0..10 {
            let salt = case.seed ^ ((salt as u64) << 24) ^ ((3 + round) << 56);
            let steps = S::steps(salt, (round % 4 + 1) as usize, page_bytes);
            let run = case
                .record(nand, salt, Some(promises), &steps, false)
                .map_err(|error| format!("start {round} in a row: {error}"))?;
            let mut states = States::new(&run);
            let mut cut = below(&mut rng, run.operations.len() as u64 + 1) as usize;
            // Where space is shortest: copies are made, their source is not erased.
            if below(&mut rng, 2) == 0 {
                cut = run.operations.iter().position(Operation::is_erase).unwrap_or(cut);
            }
            states.advance(cut);
            let kinds: Vec<Cut> = states.kinds(2).collect();
            nand = states.state(kinds[below(&mut rng, kinds.len() as u64) as usize], &mut rng);
            promises = run.promises.after_cut(cut);
            self.tally.points += 1;
            self.tally.again += 1;
        }
        self.tally.rows += 1;
        let (mut host, _) = case
            .host(nand, &FaultPlan::default(), Some(promises))
            .map_err(|error| format!("after ten cuts: {error}"))?;
        host.observe(0).map_err(|error| format!("after ten cuts: {error}"))?;
        for _ in 0..2 {
            for step in host.fill(below(&mut rng, 1 << 30)) {
                host.step(&step).map_err(|error| format!("overwriting after ten cuts: {error}"))?;
            }
        }
        host.verify().map_err(|error| format!("overwritten after ten cuts: {error}"))?;
        host.check_invariants();
        Ok(())
    }
}
