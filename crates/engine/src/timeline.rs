//! When requests are issued and complete in the model's time.

use crate::clock::Clock;
use crate::meter::{Kind, Meter};
use nandscape_core::{Completion, NamespaceError, SimTime, Subsystem, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
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
    /// The last issue.
    now: SimTime,
    /// The end of the last batch, or of the quiet span that was accounted for last.
    last_end: Instant,
    /// Completions that were known at submission, on a free clock: at most its depth.
    known: BinaryHeap<Reverse<SimTime>>,
    /// Requests of an event-driven model that have not completed, by tag.
    watched: Vec<Option<(Kind, SimTime)>>,
    free_tags: Vec<u32>,
    completions: Vec<Completion>,
    /// What an event-driven model has been advanced to.
    advanced: SimTime,
    /// The last completion known.
    last_done: SimTime,
}

impl Timeline {
    pub fn new(clock: Clock, start: Instant) -> Self {
        Self {
            clock,
            start,
            now: SimTime::ZERO,
            last_end: start,
            known: BinaryHeap::new(),
            watched: Vec::new(),
            free_tags: Vec::new(),
            completions: Vec::new(),
            advanced: SimTime::ZERO,
            last_done: SimTime::ZERO,
        }
    }

    /// The last issue or quiet time that the model knows of.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// The last completion that is known.
    pub const fn last_done(&self) -> SimTime {
        self.last_done
    }

    /// A batch has arrived. Gives the host's idle time to the stack, if there was some, and says when the
    /// batch is issued.
    pub fn arrive(&mut self, arrival: Instant, model: &mut Model) -> Result<(), NamespaceError> {
        let outcome = self.quiet(arrival, model);
        if self.clock.is_real() {
            self.now = self.now.max(self.real(arrival)).max(self.advanced);
        }
        outcome
    }

    /// Gives the host's idle time until `now` to the stack, if nothing was asked for in a while.
    pub fn quiet(&mut self, now: Instant, model: &mut Model) -> Result<(), NamespaceError> {
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
    fn pass_quiet(&mut self, until: Instant, model: &mut Model) -> Result<(), NamespaceError> {
        let gap = until.saturating_duration_since(self.last_end);
        self.last_end = self.last_end.max(until);
        let to = if self.clock.is_real() {
            self.real(until)
        } else {
            self.drain(model);
            SimTime(self.now.0 + gap.as_nanos() as u64)
        };
        self.settle(to, model);
        let from = model.subsystem.idle_from().max(self.advanced).min(to);
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
            } else if self.outstanding() >= depth as usize {
                self.wait_for_one(model);
            }
        }
        self.now
    }

    /// A request was submitted. Gives its completion, or its issue where that is not known yet.
    #[inline]
    pub fn submitted(&mut self, kind: Kind, at: SimTime, token: Token, model: &mut Model) -> Submitted {
        match model.subsystem.completion(token) {
            Some(done) => {
                let done = done.max(at);
                model.meter.model(kind, done.since(at).0);
                self.last_done = self.last_done.max(done);
                if !self.clock.is_real() {
                    if kind == Kind::Flush {
                        self.now = self.now.max(done);
                    } else {
                        self.known.push(Reverse(done));
                    }
                }
                Submitted::Done(done)
            }
            None => self.watch(kind, at, token, model),
        }
    }

    /// Runs an event-driven model, whose time is the real one, until everything that was submitted
    /// completes: its answers are due then, and have to be known now.
    #[cold]
    pub fn finish_batch(&mut self, model: &mut Model, mut completed: impl FnMut(u64, SimTime)) {
        while self.watched_count() > 0 {
            self.step(model, &mut completed);
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
        if let Some(last) = self.known.drain().map(|Reverse(at)| at).max() {
            self.now = self.now.max(last);
        }
        if self.watched_count() > 0 {
            while self.watched_count() > 0 {
                self.step(model, &mut |_, _| {});
            }
            self.now = self.now.max(self.advanced);
        }
    }

    fn outstanding(&self) -> usize {
        self.known.len() + self.watched_count()
    }

    const fn watched_count(&self) -> usize {
        self.watched.len() - self.free_tags.len()
    }

    #[inline]
    fn wait_for_one(&mut self, model: &mut Model) {
        let before = self.watched_count();
        while self.watched_count() == before {
            if let Some(Reverse(first)) = self.known.peek().copied()
                && (before == 0 || model.subsystem.next_event().is_none_or(|event| first < event))
            {
                self.known.pop();
                self.now = self.now.max(first);
                return;
            }
            self.step(model, &mut |_, _| {});
        }
        self.now = self.now.max(self.advanced);
    }

    #[cold]
    fn watch(&mut self, kind: Kind, at: SimTime, token: Token, model: &mut Model) -> Submitted {
        let tag = self.free_tags.pop().unwrap_or_else(|| {
            self.watched.push(None);
            self.watched.len() as u32 - 1
        });
        self.watched[tag as usize] = Some((kind, at));
        model.subsystem.watch(token, u64::from(tag));
        if !self.clock.is_real() && kind == Kind::Flush {
            self.drain(model);
        }
        Submitted::Watched { tag: u64::from(tag) }
    }

    /// Runs the next event of an event-driven model.
    fn step(&mut self, model: &mut Model, completed: &mut dyn FnMut(u64, SimTime)) {
        let Some(next) = model.subsystem.next_event() else {
            unreachable!("a watched token completes with some event");
        };
        self.advance(next, model, completed);
    }

    /// Runs the events of an event-driven model up to a time. The model is then as far as the last of them,
    /// so that background work can still start in the time that is left.
    fn settle(&mut self, until: SimTime, model: &mut Model) {
        while let Some(next) = model.subsystem.next_event().filter(|next| *next <= until) {
            self.advance(next, model, &mut |_, _| {});
        }
    }

    fn advance(&mut self, until: SimTime, model: &mut Model, completed: &mut dyn FnMut(u64, SimTime)) {
        self.completions.clear();
        model.subsystem.advance(until, &mut self.completions);
        self.advanced = self.advanced.max(until);
        for completion in &self.completions {
            let Some((kind, at)) = self.watched.get_mut(completion.tag as usize).and_then(Option::take)
            else {
                unreachable!("only requests that were submitted are watched");
            };
            self.free_tags.push(completion.tag as u32);
            // What costs the flash nothing completes with the beginning of time.
            let done = completion.at.max(at);
            model.meter.model(kind, done.since(at).0);
            self.last_done = self.last_done.max(done);
            completed(completion.tag, done);
        }
    }

    fn real(&self, at: Instant) -> SimTime {
        SimTime(at.saturating_duration_since(self.start).as_nanos() as u64)
    }
}

/// What is known of a request once it was submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Submitted {
    /// When it completes.
    Done(SimTime),
    /// An event-driven model will tell, with this tag.
    Watched {
        /// The tag.
        tag: u64,
    },
}
