//! One run of a case.

use super::faults::{Fault, Faults};
use super::load::{Act, acts};
use super::model::{Model, UNIT, Version, fill};
use super::{Access, Allowed, Subject};
use crate::shrink::{Outcome, guarded};
use nandscape_core::rng::seeded;
use nandscape_core::{Word as _, words};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Commands after the second start.
const AFTER: usize = 6;

/// Makes a subject over new stores, which ask these faults before every operation.
pub type Make<'a> = dyn Fn(&Faults) -> Box<dyn Subject> + Sync + 'a;

/// Something to be tried.
pub struct Case<'a> {
    /// For messages and `CAMPAIGN_CASE`.
    pub name: String,
    /// Makes the subject.
    pub make: Box<Make<'a>>,
    /// Commands of the first service.
    pub steps: usize,
}

/// How a service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In good order.
    Clean,
    /// The process is killed.
    Kill,
    /// The machine loses power: what was not synced is gone.
    PowerLoss,
}

words!(pub End: Clean = "clean", Kill = "kill", PowerLoss = "power-loss");

/// What goes wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The faults.
    pub faults: Vec<Fault>,
    /// How the first service ends.
    pub end: End,
    /// Whether the stores are mended before the next start.
    pub is_mended: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            write!(f, "{fault},")?;
        }
        let mended = if self.is_mended { "mended" } else { "not-mended" };
        write!(f, "{},{mended}", self.end.name())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Outcome<Self> {
        let mut plan = Self { faults: Vec::new(), end: End::Clean, is_mended: true };
        for part in text.split(',') {
            match (part, End::of_word(part)) {
                (_, Some(end)) => plan.end = end,
                ("mended", _) => plan.is_mended = true,
                ("not-mended", _) => plan.is_mended = false,
                _ => plan.faults.push(part.parse()?),
            }
        }
        Ok(plan)
    }
}

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Of the load.
    pub seed: u64,
    /// Of the run.
    pub plan: Plan,
    /// What is wrong.
    pub message: String,
    /// Every command and operation, where that was asked for.
    pub story: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// By store, the operations of the first start, the load and a clean end.
    pub operations: Vec<Vec<Access>>,
    /// A fault came.
    pub has_failed: bool,
    /// Commands that failed in service.
    pub errors: u64,
    /// Units that were errors after all stores were mended.
    pub lost: u64,
    /// The start after all stores were mended was refused.
    pub is_refused: bool,
}

struct Run<'a> {
    subject: Box<dyn Subject + 'a>,
    models: Vec<Model>,
    faults: Faults,
    next: Version,
    allowed: Allowed,
    is_mended: bool,
    seen: Seen,
}

/// Runs a case with a plan. `tells`: a failure has its story.
pub fn run(case: &Case<'_>, seed: u64, plan: &Plan, tells: bool) -> Result<Seen, Broken> {
    let faults = Faults::new(&plan.faults);
    if tells {
        faults.begin_story();
    }
    let outcome = guarded(|| Run::new(case, faults.clone()).all(case, seed, plan));
    outcome.map_err(|message| Broken { seed, plan: plan.clone(), message, story: faults.story() })
}

impl<'a> Run<'a> {
    fn new(case: &'a Case<'_>, faults: Faults) -> Self {
        let subject = (case.make)(&faults);
        let allowed = subject.allows(&faults.armed());
        let models = subject.volumes().into_iter().enumerate();
        let models = models.map(|(volume, units)| Model::new(volume, units, 1)).collect();
        Self { subject, models, faults, next: 1, allowed, is_mended: false, seen: Seen::default() }
    }

    fn all(mut self, case: &Case<'_>, seed: u64, plan: &Plan) -> Outcome<Seen> {
        let mut rng = seeded(seed);
        let volumes = self.subject.volumes();
        match self.subject.start() {
            Ok(()) => {
                for act in acts(&volumes, case.steps, &mut rng) {
                    self.act(&act)?;
                }
                self.finish(plan.end)?;
            }
            // A start may be refused because of any fault.
            Err(error) => {
                self.doubt(End::Kill);
                self.failed(!plan.faults.is_empty(), || format!("the first start: {error}"))?;
            }
        }
        self.seen.operations = self.faults.seen();
        self.seen.has_failed = self.faults.refused() > 0;
        if !plan.is_mended && self.restart()? {
            self.finish(End::Kill)?;
        }
        self.faults.tell(|| "the stores are mended".to_owned());
        self.faults.mend();
        self.is_mended = true;
        if !self.restart()? {
            self.seen.is_refused = true;
            return Ok(self.seen);
        }
        for act in acts(&volumes, AFTER, &mut rng) {
            self.act(&act)?;
        }
        self.finish(End::Clean)?;
        if self.restart()? {
            self.subject.kill(false);
        }
        Ok(self.seen)
    }

    const fn may_fail(&self) -> bool {
        if self.is_mended { self.allowed.after_mend } else { self.allowed.in_service }
    }

    /// Something failed that may or may not.
    fn failed(&mut self, is_allowed: bool, what: impl Fn() -> String) -> Outcome {
        self.seen.errors += 1;
        self.faults.tell(|| format!("    error: {}", what()));
        if is_allowed { Ok(()) } else { Err(format!("{}, which no rule allows", what())) }
    }

    fn act(&mut self, act: &Act) -> Outcome {
        self.faults.tell(|| format!("{act:?}, from version {}", self.next + 1));
        let (volume, done) = match act {
            Act::Read { volume, units } => {
                let mut bytes = vec![0xEE; units.len() * UNIT];
                let done = self.subject.read(*volume, units.clone(), &mut bytes);
                if done.is_ok() {
                    self.models[*volume].check(units.start, &bytes)?;
                }
                (*volume, done)
            }
            Act::Write { volume, units, is_durable } => {
                self.next += 1;
                let mut bytes = vec![0; units.len() * UNIT];
                for (unit, bytes) in units.clone().zip(bytes.chunks_exact_mut(UNIT)) {
                    fill(*volume, unit, self.next, bytes);
                }
                let done = self.subject.write(*volume, units.clone(), &bytes, *is_durable);
                let model = &mut self.models[*volume];
                model.written(units.clone(), self.next, done.is_ok());
                if *is_durable {
                    model.flushed(Some(units), done.is_ok());
                }
                (*volume, done)
            }
            Act::Trim { volume, units } => {
                let done = self.subject.trim(*volume, units.clone());
                self.models[*volume].written(units.clone(), 0, done.is_ok());
                (*volume, done)
            }
            Act::Flush { volume } => {
                let done = self.subject.flush(*volume);
                self.models[*volume].flushed(None, done.is_ok());
                (*volume, done)
            }
            Act::Idle => {
                self.subject.idle();
                return Ok(());
            }
        };
        match done {
            Ok(()) => Ok(()),
            Err(error) => {
                self.failed(self.may_fail(), || format!("{act:?} of volume {volume} failed: {error}"))
            }
        }
    }

    fn finish(&mut self, end: End) -> Outcome {
        self.faults.tell(|| format!("the end: {}", end.name()));
        if end != End::Clean {
            self.subject.kill(end == End::PowerLoss);
            self.doubt(end);
            return Ok(());
        }
        let done = self.subject.end();
        self.models.iter_mut().for_each(|model| model.flushed(None, done.is_ok()));
        match done {
            Ok(()) => Ok(()),
            Err(error) => {
                self.doubt(End::Kill);
                // It says that something is not as it should be, whatever that is.
                let is_allowed = self.may_fail() || !self.is_mended && !self.faults.armed().is_empty();
                self.failed(is_allowed, || format!("a clean end failed: {error}"))
            }
        }
    }

    /// After an end that was not clean.
    fn doubt(&mut self, end: End) {
        let Allowed { older_after_kill, older_after_power_loss, .. } = &self.allowed;
        let more = older_after_power_loss.iter().filter(|_| end == End::PowerLoss);
        for volume in older_after_kill.iter().chain(more) {
            self.models[*volume].doubt();
        }
    }

    /// Starts and compares; whether it has started.
    fn restart(&mut self) -> Outcome<bool> {
        self.faults.tell(|| "a start".to_owned());
        if let Err(error) = self.subject.start() {
            self.doubt(End::Kill);
            let may_refuse = !self.is_mended || self.allowed.refusal;
            self.failed(may_refuse, || format!("a start is refused: {error}"))?;
            return Ok(false);
        }
        for volume in 0..self.models.len() {
            let units = self.models[volume].len();
            if !self.compare(volume, 0..units)? {
                for unit in 0..units {
                    self.seen.lost += u64::from(!self.compare(volume, unit..unit + 1)? && self.is_mended);
                }
            }
        }
        Ok(true)
    }

    /// Compares units after a start; whether they could be read.
    fn compare(&mut self, volume: usize, units: Range<usize>) -> Outcome<bool> {
        let mut bytes = vec![0xEE; units.len() * UNIT];
        match self.subject.read(volume, units.clone(), &mut bytes) {
            Ok(()) => self.models[volume].observe(units.start, &bytes).map(|()| true),
            Err(error) => {
                self.failed(self.may_fail(), || format!("units {units:?} of volume {volume}: {error}"))?;
                Ok(false)
            }
        }
    }
}
