//! What one thread at a time owns: the stack, its time, and what is measured of both.

use crate::clock::Clock;
use crate::meter::{KINDS, Kind, Meter};
use crate::record::Tap;
use crate::request::{Request, Served};
use crate::stat::Sample;
use crate::timeline::{Submitted, Timeline};
use nandscape_core::{NamespaceError, OpCounts, SimTime, Subsystem};
use nandscape_sim::sums;
use std::time::{Duration, Instant};

/// The stack.
pub(crate) struct Stack {
    subsystem: Box<dyn Subsystem + Send>,
    timeline: Timeline,
    /// What was measured since it was last taken.
    meter: Box<Meter>,
    tap: Option<Tap>,
    start: Instant,
    /// Of an event-driven model whose time is the real one: which request of the batch has which tag.
    tags: Vec<(u64, usize)>,
}

impl Stack {
    pub fn new(subsystem: Box<dyn Subsystem + Send>, clock: Clock, start: Instant) -> Self {
        Self {
            subsystem,
            timeline: Timeline::new(clock, start),
            meter: Box::default(),
            tap: None,
            start,
            tags: Vec::new(),
        }
    }

    pub fn subsystem(&self) -> &dyn Subsystem {
        &*self.subsystem
    }

    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub const fn tap(&mut self) -> &mut Option<Tap> {
        &mut self.tap
    }

    /// Runs a batch that arrived at `arrival` and got the stack at `entered`. When it had run.
    pub fn run(&mut self, batch: &mut [Request<'_>], arrival: Instant, entered: Instant) -> Instant {
        self.meter.batches += 1;
        self.meter.wait.record((entered - arrival).as_nanos() as u64);
        if let Err(error) = self.timeline.arrive(arrival, &mut *self.subsystem, &mut self.meter) {
            self.meter.failed(&error);
        }
        let mut kinds = [0; KINDS];
        for (index, request) in batch.iter_mut().enumerate() {
            kinds[Kind::of(request.op) as usize] += 1;
            request.outcome = self.execute(request, index);
            if let Some(tap) = &mut self.tap {
                tap.saw(request, arrival.saturating_duration_since(self.start));
            }
        }
        if !self.tags.is_empty() {
            self.finish_batch(batch);
        }
        let end = Instant::now();
        self.timeline.leave(end);
        self.answer(batch, kinds, end - arrival);
        end
    }

    fn execute(&mut self, request: &mut Request<'_>, index: usize) -> Result<Served, NamespaceError> {
        let (subsystem, meter) = (&mut *self.subsystem, &mut *self.meter);
        let (namespace, command, kind) = (request.namespace, request.command(), Kind::of(request.op));
        let at = self.timeline.issue(kind, subsystem, meter);
        let payload = request.payload.as_payload();
        let submitted = subsystem.submit(namespace, command, payload, at);
        let token = submitted.inspect_err(|error| meter.failed(error))?;
        Ok(match self.timeline.submitted(kind, at, token, subsystem, meter) {
            Submitted::Done(done) => Served { issued: at, done },
            Submitted::Watched { tag } => {
                if self.timeline.is_real() {
                    self.tags.push((tag, index));
                }
                Served { issued: at, done: at }
            }
        })
    }

    /// Finds out when the requests of an event-driven batch complete.
    #[cold]
    fn finish_batch(&mut self, batch: &mut [Request<'_>]) {
        let tags = std::mem::take(&mut self.tags);
        self.timeline.finish_batch(&mut *self.subsystem, &mut self.meter, |tag, at| {
            for (_, index) in tags.iter().filter(|(of, _)| *of == tag) {
                if let Ok(served) = &mut batch[*index].outcome {
                    served.done = at;
                }
            }
        });
        self.tags = tags;
        self.tags.clear();
    }

    /// Counts how long the host took, or will take where answers wait for the model.
    fn answer(&mut self, batch: &[Request<'_>], kinds: [u64; KINDS], took: Duration) {
        let took_ns = took.as_nanos() as u64;
        if !self.timeline.is_paced() {
            for (times, count) in self.meter.real.iter_mut().zip(kinds).filter(|(_, count)| *count > 0) {
                times.record_many(took_ns, count);
            }
            return;
        }
        for request in batch {
            let wait_ns = request.outcome.as_ref().map_or(0, |served| served.done.since(served.issued).0);
            self.meter.real[Kind::of(request.op) as usize].record(took_ns.max(wait_ns));
        }
    }

    /// Does something with nothing outstanding.
    pub fn between<R>(&mut self, now: Instant, action: impl FnOnce(&mut dyn Subsystem, SimTime) -> R) -> R {
        let subsystem = &mut *self.subsystem;
        if let Err(error) = self.timeline.arrive(now, subsystem, &mut self.meter) {
            self.meter.failed(&error);
        }
        self.timeline.drain(subsystem, &mut self.meter);
        let at = self.timeline.now();
        let result = action(subsystem, at);
        self.timeline.leave(Instant::now());
        result
    }

    /// Gives the stack the idle time since the last request, if there was some.
    pub fn idle(&mut self, now: Instant) {
        if let Err(error) = self.timeline.quiet(now, &mut *self.subsystem, &mut self.meter) {
            self.meter.failed(&error);
        }
    }

    /// Starts all counters anew.
    pub fn reset(&mut self) {
        let at = self.timeline.reset(&mut *self.subsystem, &mut self.meter);
        self.subsystem.reset_counters(at);
        self.meter.clear();
    }

    /// Takes what was measured, and leaves an empty meter in its place.
    pub fn swap_meter(&mut self, empty: &mut Box<Meter>) {
        std::mem::swap(&mut self.meter, empty);
    }

    /// The counters that intervals are made of.
    pub fn sample(&self, at: Instant) -> Sample {
        let subsystem = &*self.subsystem;
        let host = sums::hosts(subsystem, None);
        let mut flash = OpCounts::default();
        for set in 0..subsystem.inspect().sets() {
            flash.add(subsystem.inspect().device(set).tally().totals);
        }
        Sample { at, model: self.timeline.now().max(self.timeline.last_done()), host, flash }
    }
}
