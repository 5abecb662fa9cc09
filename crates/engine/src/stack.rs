//! What one thread at a time owns: the stack, its time, and what is measured of both.

use crate::clock::Clock;
use crate::meter::{KINDS, Kind, Sample};
use crate::record::Tap;
use crate::request::{Request, Served};
use crate::timeline::{Model, Submitted, Timeline};
use nandscape_core::{Chores, NamespaceResult, OpCounts, SimTime, Subsystem};
use nandscape_sim::sums;
use std::time::{Duration, Instant};

pub(crate) struct Stack {
    pub model: Model,
    pub timeline: Timeline,
    pub tap: Option<Tap>,
    start: Instant,
    /// It leaves work for later.
    has_chores: bool,
    /// The last batch may have left some.
    owes_chores: bool,
}

impl Stack {
    pub fn new(mut subsystem: Box<dyn Subsystem + Send>, clock: Clock, start: Instant) -> Self {
        let has_chores = subsystem.control().chores.map(Chores::postpone).is_some();
        Self {
            model: Model { subsystem, meter: Box::default() },
            timeline: Timeline::new(clock, start),
            tap: None,
            start,
            has_chores,
            owes_chores: false,
        }
    }

    /// Runs a batch that arrived at `arrival` and got the stack at `entered`. When it had run.
    pub fn run(&mut self, batch: &mut [Request<'_>], arrival: Instant, entered: Instant) -> Instant {
        self.catch_up();
        self.model.meter.batches += 1;
        self.model.meter.wait.record((entered - arrival).as_nanos() as u64);
        if let Err(error) = self.timeline.arrive(arrival, &mut self.model) {
            self.model.meter.failed(&error);
        }
        let mut kinds = [0; KINDS];
        for (index, request) in batch.iter_mut().enumerate() {
            kinds[Kind::of(&request.command) as usize] += 1;
            request.outcome = self.execute(request, index);
            if let Some(tap) = &mut self.tap {
                tap.saw(request, arrival.saturating_duration_since(self.start));
            }
        }
        if self.timeline.clock == Clock::Real {
            self.timeline.finish_batch(&mut self.model, |index, at| {
                if let Ok(served) = &mut batch[index].outcome {
                    served.done = at;
                }
            });
        }
        let end = Instant::now();
        self.timeline.leave(end);
        self.answer(batch, kinds, end - arrival);
        self.owes_chores = self.has_chores;
        end
    }

    fn execute(&mut self, request: &mut Request<'_>, index: usize) -> NamespaceResult<Served> {
        let kind = Kind::of(&request.command);
        let at = self.timeline.issue(kind, &mut self.model);
        let (command, payload) = (request.command.clone(), request.payload.as_payload());
        let submitted = self.model.subsystem.submit(request.namespace, command, payload, at);
        let answer = submitted.inspect_err(|error| self.model.meter.failed(error))?;
        let (done, promise) = match self.timeline.submitted(kind, at, answer.done, index, &mut self.model) {
            Submitted::Completes(done) => (done, None),
            Submitted::Watched => (at, None),
            Submitted::Promised(promise) => (at, Some(promise)),
        };
        Ok(Served { issued: at, done, promise, reply: answer.reply })
    }

    /// Counts how long the host took, or will take where answers wait for the model.
    fn answer(&mut self, batch: &[Request<'_>], kinds: [u64; KINDS], took: Duration) {
        let took_ns = took.as_nanos() as u64;
        if self.timeline.clock != Clock::Paced {
            for (times, count) in self.model.meter.real.iter_mut().zip(kinds).filter(|(_, count)| *count > 0)
            {
                times.record_many(took_ns, count);
            }
            return;
        }
        for request in batch {
            let wait_ns = match &request.outcome {
                // Measured when it completes.
                Ok(served) if served.promise.is_some() => continue,
                Ok(served) => served.done.since(served.issued).0,
                Err(_) => 0,
            };
            self.model.meter.real[Kind::of(&request.command) as usize].record(took_ns.max(wait_ns));
        }
    }

    /// Does something with nothing outstanding.
    pub fn between<R>(&mut self, now: Instant, action: impl FnOnce(&mut dyn Subsystem, SimTime) -> R) -> R {
        self.catch_up();
        if let Err(error) = self.timeline.arrive(now, &mut self.model) {
            self.model.meter.failed(&error);
        }
        self.timeline.drain(&mut self.model);
        let result = action(&mut *self.model.subsystem, self.timeline.now());
        self.timeline.leave(Instant::now());
        result
    }

    /// Does what the last batch has left, if nobody has: the host is not idle meanwhile.
    pub fn do_chores(&mut self) {
        if self.owes_chores {
            self.catch_up();
            self.timeline.leave(Instant::now());
        }
    }

    /// Does what the last batch has left, once, before anything else happens: what the model says does not
    /// depend on who calls this, or when.
    fn catch_up(&mut self) {
        if !std::mem::take(&mut self.owes_chores) {
            return;
        }
        let at = self.timeline.present();
        let done = self.model.subsystem.control().chores.map_or(Ok(()), |chores| chores.chore(at));
        if let Err(error) = done {
            self.model.meter.failed(&error);
        }
    }

    /// Gives the stack the idle time since the last request, if there was some.
    pub fn idle(&mut self, now: Instant) {
        self.catch_up();
        if let Err(error) = self.timeline.quiet(now, &mut self.model) {
            self.model.meter.failed(&error);
        }
    }

    /// Starts all counters anew.
    pub fn reset(&mut self) {
        self.catch_up();
        let at = self.timeline.reset(&mut self.model);
        self.model.subsystem.reset_counters(at);
        self.model.meter.clear();
    }

    /// The counters that intervals are made of.
    pub fn sample(&self, at: Instant) -> Sample {
        let subsystem = &*self.model.subsystem;
        let host = sums::hosts(subsystem, None);
        let mut flash = OpCounts::default();
        for layer in subsystem.inspect().layers.iter() {
            flash.add(layer.device().tally().totals);
        }
        Sample { at, model: self.timeline.now().max(self.timeline.last_done()), host, flash }
    }
}
