//! When requests are issued and complete in the model's time.

use crate::clock::Clock;
use crate::due::Promise;
use crate::meter::{Kind, Meter};
use nandscape_core::{Clocked, NamespaceResult, Outstanding, SimTime, Subsystem, Token};
use std::time::{Duration, Instant};

/// Real time without a request after which the host counts as idle. Shorter gaps are the host's own work
/// between two requests.
pub const QUIET: Duration = Duration::from_millis(10);

/// The stack that is served, and what is measured of it.
pub(crate) struct Model {
    pub subsystem: Box<dyn Subsystem + Send>,
    /// What was measured since it was last taken.
    pub meter: Box<Meter>,
}

/// The model's time: never goes back, and never behind what an event-driven model has been advanced to.
pub(crate) struct Timeline {
    pub clock: Clock,
    /// When the model's time was 0, where it is the real one.
    start: Instant,
    now: SimTime,
    /// The end of the last batch, or of the quiet span that was accounted for last.
    last_end: Instant,
    /// On a free clock all that have not completed, at most its depth; else those of which the model did not
    /// know the completion at submission.
    outstanding: Outstanding<Waiting>,
    /// On a paced clock, what the answers to those wait for, by index, and which indices are free.
    promises: Vec<Option<Promise>>,
    free: Vec<usize>,
    last_done: SimTime,
}

/// What is known of a completion at submission.
pub(crate) enum Submitted {
    Completes(SimTime),
    /// Events tell: before the batch ends, or much later on a free clock.
    Watched,
    /// On a paced clock: events tell when it is time.
    Promised(Promise),
}

impl Timeline {
    pub fn new(clock: Clock, start: Instant) -> Self {
        Self {
            clock,
            start,
            now: SimTime::ZERO,
            last_end: start,
            outstanding: Outstanding::default(),
            promises: Vec::new(),
            free: Vec::new(),
            last_done: SimTime::ZERO,
        }
    }

    /// The last issue or quiet time that the model knows of.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// When something can be issued now: no earlier than the events that were run.
    pub fn present(&self) -> SimTime {
        self.now.max(self.outstanding.reached())
    }

    /// The last completion that is known.
    pub const fn last_done(&self) -> SimTime {
        self.last_done
    }

    /// A batch has arrived. Gives the host's idle time to the stack, if there was some, and says when the
    /// batch is issued.
    pub fn arrive(&mut self, arrival: Instant, model: &mut Model) -> NamespaceResult<()> {
        let outcome = self.quiet(arrival, model);
        if self.clock.is_real() {
            self.run_events(arrival, model);
            self.now = self.now.max(self.real(arrival)).max(self.outstanding.reached());
        }
        outcome
    }

    /// Runs an event-driven model up to real time, and keeps the promises of what completes. When the next
    /// event is due, if something waits for events.
    pub fn run_events(&mut self, until: Instant, model: &mut Model) -> Option<Instant> {
        let to = self.real(until);
        while let Some((done, waiting)) = self.outstanding.next_until(&mut *model.subsystem, to) {
            self.found(done, waiting, model);
        }
        self.outstanding.run_events(&mut *model.subsystem, to);
        let next = model.subsystem.next_event().filter(|_| self.outstanding.watched() > 0)?;
        Some(self.start + Duration::from_nanos(next.0))
    }

    /// Gives the host's idle time until `now` to the stack, if nothing was asked for in a while.
    pub fn quiet(&mut self, now: Instant, model: &mut Model) -> NamespaceResult<()> {
        if now.saturating_duration_since(self.last_end) >= QUIET {
            self.pass_quiet(now, model)
        } else {
            Ok(())
        }
    }

    /// The batch has been run.
    pub const fn leave(&mut self, end: Instant) {
        self.last_end = end;
    }

    /// Nothing was asked for since the last batch: lets the stack do in the background what it would have
    /// done until `until`.
    #[cold]
    fn pass_quiet(&mut self, until: Instant, model: &mut Model) -> NamespaceResult<()> {
        let gap = until.saturating_duration_since(self.last_end);
        self.last_end = self.last_end.max(until);
        let to = if self.clock.is_real() {
            self.run_events(until, model);
            self.real(until)
        } else {
            self.drain(model);
            SimTime(self.now.0 + gap.as_nanos() as u64)
        };
        // The model is then as far as the last event, so that background work can still start in the time
        // left.
        self.outstanding.run_events(&mut *model.subsystem, to);
        let from = model.subsystem.idle_from().max(self.outstanding.reached()).min(to);
        let outcome = if from < to { model.subsystem.idle(from, to) } else { Ok(()) };
        self.now = self.now.max(to);
        outcome
    }

    /// When the next request is issued. Waits, in the model, for room in the closed loop, and before a flush
    /// for all that is outstanding.
    #[inline]
    pub fn issue(&mut self, kind: Kind, model: &mut Model) -> SimTime {
        if let Clock::Free { depth } = self.clock {
            if kind == Kind::Flush {
                self.drain(model);
            } else if self.outstanding.count() >= depth as usize {
                self.wait_for_one(model);
            }
        }
        self.now
    }

    /// Request `index` of a batch was submitted.
    #[inline]
    pub fn submitted(
        &mut self,
        kind: Kind,
        at: SimTime,
        token: Token,
        index: usize,
        model: &mut Model,
    ) -> Submitted {
        let Some(done) = model.subsystem.completion(token) else {
            return self.watch(Waiting { kind, at, index, is_measured: false }, token, model);
        };
        let done = done.max(at);
        self.completed(kind, at, done, model);
        if !self.clock.is_real() {
            if kind == Kind::Flush {
                self.now = self.now.max(done);
            } else {
                self.outstanding.completes_at(done, Waiting { kind, at, index, is_measured: true });
            }
        }
        Submitted::Completes(done)
    }

    /// Runs an event-driven model whose answers are given at once until everything that was submitted
    /// completes. `completed` is told the index of each in the batch, and when it completes.
    pub fn finish_batch(&mut self, model: &mut Model, mut completed: impl FnMut(usize, SimTime)) {
        while self.outstanding.watched() > 0 {
            let (waiting, done) = self.next(model);
            completed(waiting.index, done);
        }
    }

    /// Starts anew at the present time, with nothing outstanding. For the reset of counters.
    pub fn reset(&mut self, model: &mut Model) -> SimTime {
        self.drain(model);
        self.now = self.now.max(model.subsystem.idle_from());
        self.last_done = self.now;
        self.now
    }

    /// Waits for everything outstanding.
    pub fn drain(&mut self, model: &mut Model) {
        while self.outstanding.count() > 0 {
            self.wait_for_one(model);
        }
    }

    #[inline]
    fn wait_for_one(&mut self, model: &mut Model) {
        let (waiting, done) = self.next(model);
        self.now = self.now.max(done);
        if !waiting.is_measured {
            self.now = self.now.max(self.outstanding.reached());
        }
    }

    #[cold]
    fn watch(&mut self, mut waiting: Waiting, token: Token, model: &mut Model) -> Submitted {
        if self.clock == Clock::Paced {
            waiting.index = self.free.pop().unwrap_or_else(|| {
                self.promises.push(None);
                self.promises.len() - 1
            });
            let promise = Promise::open();
            self.promises[waiting.index] = Some(promise.clone());
            self.outstanding.watch(&mut *model.subsystem, token, waiting);
            return Submitted::Promised(promise);
        }
        self.outstanding.watch(&mut *model.subsystem, token, waiting);
        if !self.clock.is_real() && waiting.kind == Kind::Flush {
            self.drain(model);
        }
        Submitted::Watched
    }

    #[inline]
    fn next(&mut self, model: &mut Model) -> (Waiting, SimTime) {
        let next = self.outstanding.next(&mut *model.subsystem);
        let (done, waiting) = next.expect("a watched token completes with some event");
        self.found(done, waiting, model)
    }

    /// A request has completed. Gives it and when it has.
    #[inline]
    fn found(&mut self, done: SimTime, waiting: Waiting, model: &mut Model) -> (Waiting, SimTime) {
        // What costs the flash nothing completes with the beginning of time.
        let done = done.max(waiting.at);
        if !waiting.is_measured {
            self.completed(waiting.kind, waiting.at, done, model);
        }
        if self.clock == Clock::Paced
            && let Some(promise) = self.promises[waiting.index].take()
        {
            self.free.push(waiting.index);
            promise.keep(done);
            model.meter.real[waiting.kind as usize].record(done.since(waiting.at).0);
        }
        (waiting, done)
    }

    #[inline]
    fn completed(&mut self, kind: Kind, at: SimTime, done: SimTime, model: &mut Model) {
        model.meter.model(kind, done.since(at).0);
        self.last_done = self.last_done.max(done);
    }

    fn real(&self, at: Instant) -> SimTime {
        SimTime(at.saturating_duration_since(self.start).as_nanos() as u64)
    }
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    kind: Kind,
    at: SimTime,
    /// In the batch, or on a paced clock in the list of promises.
    index: usize,
    /// Its completion was known at submission, and was measured then.
    is_measured: bool,
}
