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

/// The model's time: never goes back, and never behind what an event-driven model has been advanced to.
pub(crate) struct Timeline {
    clock: Clock,
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

    pub fn is_paced(&self) -> bool {
        self.clock == Clock::Paced
    }

    /// Whether the model's time is the real one.
    pub const fn is_real(&self) -> bool {
        self.clock.is_real()
    }

    /// The last issue or quiet time that the model knows of.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// The last completion that is known.
    pub const fn last_done(&self) -> SimTime {
        self.last_done
    }

    /// When an answer that completes at `done` is due, on a paced clock.
    pub fn due(&self, done: SimTime) -> Option<Instant> {
        self.clock.due(self.start, done)
    }

    /// A batch has arrived. Gives the host's idle time to the stack, if there was some, and says when the
    /// batch is issued.
    pub fn arrive(
        &mut self,
        arrival: Instant,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
    ) -> Result<(), NamespaceError> {
        let outcome = self.quiet(arrival, subsystem, meter);
        if self.is_real() {
            self.now = self.now.max(self.real(arrival)).max(self.advanced);
        }
        outcome
    }

    /// Gives the host's idle time until `now` to the stack, if nothing was asked for in a while.
    pub fn quiet(
        &mut self,
        now: Instant,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
    ) -> Result<(), NamespaceError> {
        if now.saturating_duration_since(self.last_end) >= QUIET {
            self.pass_quiet(now, subsystem, meter)
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
    fn pass_quiet(
        &mut self,
        until: Instant,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
    ) -> Result<(), NamespaceError> {
        let gap = until.saturating_duration_since(self.last_end);
        self.last_end = self.last_end.max(until);
        let to = if self.is_real() {
            self.real(until)
        } else {
            self.drain(subsystem, meter);
            SimTime(self.now.0 + gap.as_nanos() as u64)
        };
        self.settle(to, subsystem, meter);
        let from = subsystem.idle_from().max(self.advanced).min(to);
        let outcome = if from < to { subsystem.idle(from, to) } else { Ok(()) };
        self.now = self.now.max(to);
        outcome
    }

    /// When the next request is issued. Waits, in the model, for room in the closed loop, and before a flush
    /// for all that is outstanding.
    #[inline]
    pub fn issue(&mut self, kind: Kind, subsystem: &mut dyn Subsystem, meter: &mut Meter) -> SimTime {
        if let Clock::Free { depth } = self.clock {
            if kind == Kind::Flush {
                self.drain(subsystem, meter);
            } else if self.outstanding() >= depth as usize {
                self.wait_for_one(subsystem, meter);
            }
        }
        self.now
    }

    /// A request was submitted. Gives its completion, or its issue where that is not known yet.
    #[inline]
    pub fn submitted(
        &mut self,
        kind: Kind,
        at: SimTime,
        token: Token,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
    ) -> Submitted {
        match subsystem.completion(token) {
            Some(done) => {
                let done = done.max(at);
                meter.model(kind, done.since(at).0);
                self.last_done = self.last_done.max(done);
                if !self.is_real() {
                    if kind == Kind::Flush {
                        self.now = self.now.max(done);
                    } else {
                        self.known.push(Reverse(done));
                    }
                }
                Submitted::Done(done)
            }
            None => self.watch(kind, at, token, subsystem, meter),
        }
    }

    /// Runs an event-driven model, whose time is the real one, until everything that was submitted
    /// completes: its answers are due then, and have to be known now.
    #[cold]
    pub fn finish_batch(
        &mut self,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
        mut completed: impl FnMut(u64, SimTime),
    ) {
        while self.watched_count() > 0 {
            self.step(subsystem, meter, &mut completed);
        }
    }

    /// Starts anew at the present time, with nothing outstanding. For the reset of counters.
    pub fn reset(&mut self, subsystem: &mut dyn Subsystem, meter: &mut Meter) -> SimTime {
        self.drain(subsystem, meter);
        self.now = self.now.max(subsystem.idle_from());
        self.last_done = self.now;
        self.now
    }

    /// Waits for everything outstanding.
    pub fn drain(&mut self, subsystem: &mut dyn Subsystem, meter: &mut Meter) {
        if let Some(last) = self.known.drain().map(|Reverse(at)| at).max() {
            self.now = self.now.max(last);
        }
        if self.watched_count() > 0 {
            while self.watched_count() > 0 {
                self.step(subsystem, meter, &mut |_, _| {});
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
    fn wait_for_one(&mut self, subsystem: &mut dyn Subsystem, meter: &mut Meter) {
        let before = self.watched_count();
        while self.watched_count() == before {
            if let Some(Reverse(first)) = self.known.peek().copied()
                && (before == 0 || subsystem.next_event().is_none_or(|event| first < event))
            {
                self.known.pop();
                self.now = self.now.max(first);
                return;
            }
            self.step(subsystem, meter, &mut |_, _| {});
        }
        self.now = self.now.max(self.advanced);
    }

    #[cold]
    fn watch(
        &mut self,
        kind: Kind,
        at: SimTime,
        token: Token,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
    ) -> Submitted {
        let tag = self.free_tags.pop().unwrap_or_else(|| {
            self.watched.push(None);
            self.watched.len() as u32 - 1
        });
        self.watched[tag as usize] = Some((kind, at));
        subsystem.watch(token, u64::from(tag));
        if !self.is_real() && kind == Kind::Flush {
            self.drain(subsystem, meter);
        }
        Submitted::Watched { tag: u64::from(tag) }
    }

    /// Runs the next event of an event-driven model.
    fn step(
        &mut self,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
        completed: &mut dyn FnMut(u64, SimTime),
    ) {
        let Some(next) = subsystem.next_event() else {
            unreachable!("a watched token completes with some event");
        };
        self.advance(next, subsystem, meter, completed);
    }

    /// Runs the events of an event-driven model up to a time. The model is then as far as the last of them,
    /// so that background work can still start in the time that is left.
    fn settle(&mut self, until: SimTime, subsystem: &mut dyn Subsystem, meter: &mut Meter) {
        while let Some(next) = subsystem.next_event().filter(|next| *next <= until) {
            self.advance(next, subsystem, meter, &mut |_, _| {});
        }
    }

    fn advance(
        &mut self,
        until: SimTime,
        subsystem: &mut dyn Subsystem,
        meter: &mut Meter,
        completed: &mut dyn FnMut(u64, SimTime),
    ) {
        self.completions.clear();
        subsystem.advance(until, &mut self.completions);
        self.advanced = self.advanced.max(until);
        for completion in &self.completions {
            let Some((kind, at)) = self.watched.get_mut(completion.tag as usize).and_then(Option::take)
            else {
                unreachable!("only requests that were submitted are watched");
            };
            self.free_tags.push(completion.tag as u32);
            // What costs the flash nothing completes with the beginning of time.
            let done = completion.at.max(at);
            meter.model(kind, done.since(at).0);
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
