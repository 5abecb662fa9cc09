//! The event loop: every job a process with its own depth, pace and order, on one virtual clock.
//!
//! Requests are issued in nondecreasing virtual time. A request costs the time of one heap operation of its
//! job's completions, whatever the number of jobs; nothing is allocated per request.
#![expect(clippy::inline_always, reason = "measured: the path of every request")]

use super::log::{Log, Sample};
use super::measure::fold;
use super::plan::Plan;
use super::planned::{PlanError, Region};
use super::process::{Blocked, Next, Phase, Process};
use super::recorded::Broken;
use super::request::Request;
use super::request::ZoneUse;
use super::timeline::Timeline;
use super::zoned::ZoneSet;
use crate::replay::Progress;
use crate::sums;
use nandscape_core::command::{Payload, Reply};
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneFilter};
use nandscape_core::{
    BlockCommand, Command, Extent, Hint, NamespaceError, NamespaceResult, Op, Outstanding, SimTime,
    Subsystem, Token, TraceError, TraceReader,
};
use nandscape_jobs::{Direction, Job};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests between two looks at the stop flag and the progress callback.
const CHECK_EVERY: u64 = 4096;
/// So many completions at one instant mean that a job that ends by time never will.
const STANDSTILL: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Pending {
    job: u32,
    kind: Kind,
    bytes: u64,
    issued: u64,
    zone: Option<ZoneUse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Io(Direction),
    /// The flush of a synchronous write, whose latency it ends.
    SyncWrite,
    /// A flush that the job waits for.
    Flush,
    LastFlush,
    /// The reset of a zone that the job waits for.
    Reset,
    Layout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Request {
        number: u64,
        message: String,
    },
    /// A recording cannot be read.
    Recording(TraceError),
    /// Virtual time stands still.
    Standstill(String),
    /// A scheduler lost requests: a bug.
    Lost(u64),
}

/// What was issued and completed since the preconditioning.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub issued: u64,
    /// Of all of them, in order.
    pub hash: u64,
    pub last_completion: u64,
    /// Reads that took no time.
    pub instant_reads: u64,
}

pub(crate) struct Engine<'a> {
    pub subsystem: &'a mut dyn Subsystem,
    jobs: &'a [Job],
    pub processes: Vec<Process>,
    /// Zones of jobs with `zonemode=zbd`.
    zones: Vec<ZoneSet>,
    outstanding: Outstanding<Pending>,
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    now: u64,
    pub totals: Totals,
    unfinished: usize,
    /// Jobs that waited may start.
    has_ended_jobs: bool,
    completions_now: u64,
    pub timeline: Option<Timeline>,
    pub log: Option<Log<'a>>,
    stop: Option<&'a AtomicBool>,
    pub stopped: bool,
    progress: &'a mut dyn FnMut(Progress),
    preconditioning: bool,
}

impl<'a> Engine<'a> {
    pub fn new(
        subsystem: &'a mut dyn Subsystem,
        jobs: &'a [Job],
        plan: &Plan,
        readers: Vec<Option<Box<dyn TraceReader>>>,
        seed: u64,
        stop: Option<&'a AtomicBool>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Self, PlanError> {
        let process = |((job, plan), reader)| Process::new(job, plan, reader, seed);
        let processes: Vec<Process> =
            jobs.iter().zip(&plan.jobs).zip(readers).map(process).collect::<Result<_, _>>()?;
        Ok(Self {
            subsystem,
            jobs,
            unfinished: processes.len(),
            processes,
            zones: plan.zones.iter().copied().map(ZoneSet::new).collect(),
            outstanding: Outstanding::default(),
            wakes: BinaryHeap::new(),
            now: 0,
            totals: Totals { hash: 0x9e37_79b9_7f4a_7c15, ..Totals::default() },
            has_ended_jobs: false,
            completions_now: 0,
            timeline: None,
            log: None,
            stop,
            stopped: false,
            progress,
            preconditioning: false,
        })
    }

    /// Writes regions in order, `depth` requests outstanding, before anything is counted.
    pub fn lay_out(&mut self, regions: &[Region]) -> Result<(), Failure> {
        const CHUNK: u64 = 1 << 20;
        const DEPTH: usize = 64;
        self.preconditioning = true;
        let mut done = 0;
        for region in regions {
            let mut at = 0;
            while at < region.len {
                let len = CHUNK.min(region.len - at);
                self.write_uncounted(region.namespace, Extent::new(region.start + at, len), DEPTH, done)?;
                if self.stopped {
                    return Ok(());
                }
                at += len;
                done += 1;
            }
        }
        self.settle()
    }

    pub fn write_uncounted(
        &mut self,
        namespace: u32,
        extent: Extent,
        depth: usize,
        done: u64,
    ) -> Result<(), Failure> {
        self.preconditioning = true;
        if done.is_multiple_of(CHECK_EVERY) {
            self.look_up(done);
        }
        while self.outstanding.count() >= depth {
            self.step()?;
        }
        let command = BlockCommand::new(Op::Write, extent, Hint(0));
        let pending = Pending { job: 0, kind: Kind::Layout, bytes: extent.len, issued: self.now, zone: None };
        self.submit(namespace, command.into(), pending).map_err(|error| Failure::Request {
            number: 0,
            message: format!("precondition write (offset {} len {}): {error}", extent.offset, extent.len),
        })
    }

    /// Reads the state of the zones that jobs with `zonemode=zbd` work on. Open zones beyond the limits are
    /// reset, as in fio.
    pub fn adopt_zones(&mut self) -> Result<(), Failure> {
        for set in self.zones.iter_mut().filter(|set| set.plan.is_device) {
            let report =
                ZoneCommand::Report { from: 0, filter: ZoneFilter::All, room: u64::from(set.plan.count) };
            let namespace = set.plan.namespace;
            let at = SimTime(self.now);
            let answer = self.subsystem.submit(namespace, Command::Zone(report), Payload::None, at);
            let failed = |error: NamespaceError| Failure::Request {
                number: 0,
                message: format!("report of the zones of namespace {namespace}: {error}"),
            };
            let answer = answer.map_err(failed)?;
            if let Reply::Zones(report) = answer.reply {
                set.adopt(&report.zones);
            }
        }
        for job in 0..self.processes.len() {
            let Some(walker) = self.processes[job].walker() else { continue };
            for (namespace, zone) in walker.adopt_open(&mut self.zones) {
                let pending =
                    Pending { job: job as u32, kind: Kind::Layout, bytes: 0, issued: self.now, zone: None };
                self.submit_reset(namespace, zone, pending)?;
            }
        }
        self.settle()
    }

    fn submit_reset(&mut self, namespace: u32, zone: u64, pending: Pending) -> Result<(), Failure> {
        self.reset_zone(namespace, zone, pending).map_err(|error| Failure::Request {
            number: self.totals.issued,
            message: format!(
                "reset of the zone at offset {zone} by job '{}': {error}",
                self.jobs[pending.job as usize].name
            ),
        })
    }

    pub fn settle(&mut self) -> Result<(), Failure> {
        while self.outstanding.count() > 0 {
            self.step()?;
        }
        Ok(())
    }

    /// Preconditioning is over: counting and time begin at 0.
    pub fn begin(&mut self) {
        self.subsystem.reset_counters(SimTime::ZERO);
        self.outstanding = Outstanding::default();
        (self.now, self.totals.last_completion, self.completions_now) = (0, 0, 0);
        self.preconditioning = false;
    }

    pub fn run(&mut self) -> Result<(), Failure> {
        self.start_jobs()?;
        while self.unfinished > 0 && !self.stopped {
            self.step()?;
        }
        // What a stopped run has under way still completes, so that its counts and times agree.
        for process in &mut self.processes {
            if process.phase == Phase::Running {
                process.phase = Phase::Draining;
            }
        }
        self.settle()?;
        self.look_up(self.totals.issued);
        Ok(())
    }

    fn look_up(&mut self, requests: u64) {
        (self.progress)(Progress { preconditioning: self.preconditioning, requests, expected: None });
        self.stopped |= self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    }

    /// Goes to the next thing that happens, and lets jobs react.
    #[inline]
    fn step(&mut self) -> Result<(), Failure> {
        let wake = self.wakes.peek().map(|Reverse(next)| *next);
        let wake_at = SimTime(wake.map_or(u64::MAX, |(at, _)| at));
        if let Some((at, pending)) = self.outstanding.next_until(&mut *self.subsystem, wake_at) {
            self.set_clock(at.0.max(self.now))?;
            self.complete(pending)?;
        } else if let Some((at, job)) = wake {
            self.wakes.pop();
            self.wake(at, job)?;
        } else {
            return Err(Failure::Lost(u64::from(self.outstanding.watched())));
        }
        if self.has_ended_jobs {
            self.start_jobs()?;
        }
        Ok(())
    }

    fn set_clock(&mut self, at: u64) -> Result<(), Failure> {
        if at > self.now {
            (self.now, self.completions_now) = (at, 0);
            return Ok(());
        }
        self.completions_now += 1;
        if self.completions_now < STANDSTILL {
            return Ok(());
        }
        let waits = |p: &Process| p.phase == Phase::Running && p.is_time_based;
        match self.processes.iter().position(waits) {
            Some(job) => Err(Failure::Standstill(format!(
                "job '{}' runs by time, but its requests take none: reads of what was never written cost nothing; \
                 use --precondition fill, or ftl.unmapped_read=flash",
                self.jobs[job].name
            ))),
            None => Ok(()),
        }
    }

    fn wake(&mut self, at: u64, job: u32) -> Result<(), Failure> {
        // What nobody waits for happens, too: a program that ends leaves the buffer.
        if self.outstanding.watched() > 0 || self.subsystem.next_event().is_some() {
            self.outstanding.advance(&mut *self.subsystem, SimTime(at));
        }
        if self.outstanding.count() == 0 {
            let from = self.subsystem.idle_from().max(SimTime(self.now));
            if from.0 < at {
                let failed = |error: NamespaceError| Failure::Request {
                    number: self.totals.issued,
                    message: error.to_string(),
                };
                if sums::slc(self.subsystem.inspect().layers).is_some() {
                    sums::fold_until(&mut *self.subsystem, &mut self.outstanding, SimTime(at))
                        .map_err(failed)?;
                } else {
                    self.subsystem.idle(from, SimTime(at)).map_err(failed)?;
                }
            }
        }
        self.now = self.now.max(at);
        let process = &mut self.processes[job as usize];
        if process.phase == Phase::Waiting {
            return self.start_jobs();
        }
        if process.blocked == Blocked::Asleep && at >= process.wake_at {
            process.blocked = Blocked::No;
        }
        self.pump(job)
    }

    fn start_jobs(&mut self) -> Result<(), Failure> {
        self.has_ended_jobs = false;
        let mut all_before_ended = true;
        for job in 0..self.processes.len() {
            let process = &self.processes[job];
            if process.phase == Phase::Waiting {
                if self.jobs[job].waits_for_previous && !all_before_ended {
                    return Ok(());
                }
                let start_at = process.start_at;
                if self.is_awaited_running(job) {
                    // Looked at again when a job ends.
                } else if start_at > self.now {
                    if !std::mem::replace(&mut self.processes[job].is_start_set, true) {
                        self.wakes.push(Reverse((start_at, job as u32)));
                    }
                } else {
                    self.processes[job].start(self.now);
                    self.pump(job as u32)?;
                }
            }
            all_before_ended &= self.processes[job].phase == Phase::Done;
        }
        Ok(())
    }

    fn is_awaited_running(&self, job: usize) -> bool {
        let Some(name) = &self.jobs[job].wait_for else { return false };
        (0..job).any(|other| self.jobs[other].name == *name && self.processes[other].phase != Phase::Done)
    }

    /// A job does all that it can do now.
    #[inline]
    fn pump(&mut self, job: u32) -> Result<(), Failure> {
        self.go_on(job)?;
        if !self.zones.is_empty() {
            self.wake_zoned();
        }
        Ok(())
    }

    /// What a job left of zones others may use.
    #[inline(never)]
    fn wake_zoned(&mut self) {
        for set in &mut self.zones {
            self.wakes.extend(set.woken.drain(..).map(|job| Reverse((self.now, job))));
        }
    }

    #[inline]
    fn go_on(&mut self, job: u32) -> Result<(), Failure> {
        loop {
            match self.processes[job as usize].next(self.now, &mut self.zones) {
                Next::Request => self.issue(job)?,
                Next::Flush => self.issue_flush(job, Kind::Flush)?,
                Next::Reset { namespace, zone } => {
                    let pending = Pending { job, kind: Kind::Reset, bytes: 0, issued: self.now, zone: None };
                    self.submit_reset(namespace, zone, pending)?;
                }
                Next::Sleep => {
                    self.wakes.push(Reverse((self.processes[job as usize].wake_at, job)));
                    return Ok(());
                }
                Next::Nothing => return Ok(()),
                Next::Broken(broken) => return Err(self.broken(job, broken)),
                Next::End => break,
            }
        }
        let process = &mut self.processes[job as usize];
        if process.take_last_flush() {
            return self.issue_flush(job, Kind::LastFlush);
        }
        if process.phase == Phase::Draining {
            self.end(job);
        }
        Ok(())
    }

    fn end(&mut self, job: u32) {
        let now = self.now;
        let process = &mut self.processes[job as usize];
        (process.phase, process.life.ended) = (Phase::Done, now);
        process.leave_zones(&mut self.zones);
        self.unfinished -= 1;
        self.has_ended_jobs = true;
        if !self.jobs[job as usize].ends_all {
            return;
        }
        for (other, process) in self.processes.iter_mut().enumerate() {
            match process.phase {
                Phase::Waiting => {
                    process.phase = Phase::Done;
                    self.unfinished -= 1;
                }
                Phase::Running => {
                    process.deadline = process.deadline.min(now);
                    // A job that sleeps hears of it at once.
                    self.wakes.push(Reverse((now, other as u32)));
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn issue(&mut self, job: u32) -> Result<(), Failure> {
        let request = self.processes[job as usize].last;
        self.totals.issued += 1;
        self.totals.hash = fold(self.totals.hash, &request, job);
        if self.totals.issued.is_multiple_of(CHECK_EVERY) {
            self.look_up(self.totals.issued);
        }
        let op = request.op();
        if let Some(log) = &self.log {
            log.request(job, SimTime(self.now), op, request.namespace, request.extent);
        }
        let pending = Pending {
            job,
            kind: Kind::Io(request.direction),
            bytes: request.extent.len,
            issued: self.now,
            zone: request.zone,
        };
        let submitted = if op == Op::Trim && self.is_reset(&request) {
            self.reset_zone(request.namespace, request.extent.offset, pending)
        } else {
            let command = BlockCommand::new(op, request.extent, Hint(request.hint));
            self.submit(request.namespace, Command::Block(command), pending)
        };
        if let Err(error) = submitted {
            return Err(self.refused(job, &error));
        }
        if let Some(next) = self.processes[job as usize].ahead() {
            self.subsystem.prepare(next.namespace, next.op(), next.extent);
        }
        Ok(())
    }

    /// Whether a trim is the reset of a zone.
    #[cold]
    fn is_reset(&self, trim: &Request) -> bool {
        trim.zone.is_some() && self.subsystem.namespaces()[trim.namespace as usize].zones.is_some()
    }

    #[cold]
    fn broken(&self, job: u32, broken: Broken) -> Failure {
        let (number, job) = (self.totals.issued + 1, &self.jobs[job as usize]);
        match broken {
            Broken::Unreadable(error) => Failure::Recording(error),
            Broken::Unfit(why) => Failure::Request {
                number,
                message: format!("request {number} of job '{}' ({}): {why}", job.name, job.place),
            },
        }
    }

    #[cold]
    fn refused(&self, job: u32, error: &NamespaceError) -> Failure {
        let Request { direction, extent, .. } = self.processes[job as usize].last;
        let message = format!(
            "request {} of job '{}' ({} offset {} len {}): {error}",
            self.totals.issued,
            self.jobs[job as usize].name,
            direction.name(),
            extent.offset,
            extent.len
        );
        Failure::Request { number: self.totals.issued, message }
    }

    fn issue_flush(&mut self, job: u32, kind: Kind) -> Result<(), Failure> {
        let process = &mut self.processes[job as usize];
        process.inflight += 1;
        let namespace = process.last.namespace;
        if let Some(log) = self.log.as_ref().filter(|_| kind == Kind::Flush) {
            log.request(job, SimTime(self.now), Op::Flush, namespace, Extent::new(0, 0));
        }
        self.flush_for(job, namespace, Pending { job, kind, bytes: 0, issued: self.now, zone: None })
    }

    fn flush_for(&mut self, job: u32, namespace: u32, pending: Pending) -> Result<(), Failure> {
        self.submit(namespace, Command::FLUSH, pending).map_err(|error| Failure::Request {
            number: self.totals.issued,
            message: format!("flush of job '{}': {error}", self.jobs[job as usize].name),
        })
    }

    #[cold]
    fn reset_zone(&mut self, namespace: u32, zone: u64, pending: Pending) -> NamespaceResult<()> {
        let command = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(zone) };
        self.submit(namespace, Command::Zone(command), pending)
    }

    #[inline(always)]
    fn submit(&mut self, namespace: u32, command: Command, pending: Pending) -> NamespaceResult<()> {
        let now = SimTime(self.now);
        let token = self.subsystem.submit(namespace, command, Payload::None, now)?.into_done();
        if token == Token::NONE {
            self.outstanding.completes_at(now, pending);
        } else {
            self.outstanding.submitted(&mut *self.subsystem, token, now, pending);
        }
        Ok(())
    }

    /// A command completed at the present time.
    #[inline]
    fn complete(&mut self, pending: Pending) -> Result<(), Failure> {
        let now = self.now;
        let direction = match pending.kind {
            Kind::Io(Direction::Write) if self.processes[pending.job as usize].sync_writes => {
                let namespace = self.processes[pending.job as usize].last.namespace;
                return self.flush_for(pending.job, namespace, Pending { kind: Kind::SyncWrite, ..pending });
            }
            Kind::Io(direction) => direction,
            Kind::SyncWrite => Direction::Write,
            Kind::Flush | Kind::LastFlush => return self.flushed(pending),
            Kind::Reset => return self.was_reset(pending.job),
            Kind::Layout => return Ok(()),
        };
        self.totals.last_completion = now;
        let latency = now - pending.issued;
        self.totals.instant_reads += u64::from(latency == 0 && direction == Direction::Read);
        if self.timeline.as_ref().is_some_and(|timeline| timeline.is_due(now)) {
            self.close_window();
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.complete(pending.job, direction, pending.bytes, latency);
        }
        let process = &mut self.processes[pending.job as usize];
        process.complete(direction, pending.bytes, latency, now);
        if let Some(log) = self.log.as_ref().filter(|_| process.is_counted()) {
            let (job, bytes, at_ns) = (pending.job, pending.bytes, now - process.life.counted_from);
            log.sample(Sample { job, at_ns, direction, bytes, latency_ns: latency });
        }
        if let Some(used) = pending.zone {
            process.leave_zone(used, &mut self.zones);
        }
        self.pump(pending.job)
    }

    fn was_reset(&mut self, job: u32) -> Result<(), Failure> {
        self.processes[job as usize].was_reset(&mut self.zones);
        self.pump(job)
    }

    fn flushed(&mut self, pending: Pending) -> Result<(), Failure> {
        self.totals.last_completion = self.now;
        let is_last = pending.kind == Kind::LastFlush;
        self.processes[pending.job as usize].flushed(is_last, self.now - pending.issued);
        self.pump(pending.job)
    }

    #[cold]
    fn close_window(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.close(self.now, self.subsystem);
        }
    }
}
