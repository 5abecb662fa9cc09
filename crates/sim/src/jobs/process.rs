//! One job as a process: what it does next, and where it is in its life.
#![expect(clippy::inline_always, reason = "measured: the path of every request")]

use super::generator::Generator;
use super::measure::Measure;
use super::pace::Pace;
use super::planned::{JobPlan, PlanError};
use super::recorded::{Broken, Recorded, Turn};
use super::request::{Request, ZoneUse};
use super::zoned::{Step, Walker, ZoneSet};
use crate::trust::Stamped;
use nandscape_core::TraceReader;
use nandscape_core::rng::{below, seeded};
use nandscape_jobs::job::SyncWrites;
use nandscape_jobs::{Direction, Job};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting,
    Running,
    /// Issues no more, and waits for what is outstanding.
    Draining,
    LastFlush,
    Done,
}

/// Why a running job does not issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    No,
    /// Until its wake-up: think time, rate.
    Asleep,
    Flush,
    /// Until a zone is reset.
    Reset,
    /// Until nothing is outstanding; then it thinks.
    Quiesce,
}

/// Where requests come from.
enum Source {
    Plain(Box<Generator>),
    /// With a `zonemode`.
    Zoned(Box<Walker>),
    /// With a `read_iolog`.
    Recorded(Box<Recorded>),
}

/// What a job is allowed and asked to do, which stays.
struct Limits {
    depth: u32,
    runtime_ns: u64,
    ramp_ns: u64,
    total_bytes: u64,
    total_ios: u64,
    /// Whether it reads and writes.
    mixes: bool,
}

struct Flushes {
    writes: u64,
    /// Writes since the last flush of either kind.
    unflushed: [u64; 2],
    every: [u64; 2],
    /// One more when everything else is done.
    at_end: bool,
}

impl Flushes {
    #[inline]
    fn note_write(&mut self) {
        self.writes += 1;
        self.unflushed[0] += 1;
        self.unflushed[1] += 1;
    }

    /// Whether `fsync` or `fdatasync` is due; a flush is one for both.
    #[inline]
    fn take_due(&mut self) -> bool {
        let mut owes = false;
        for (count, every) in self.unflushed.iter_mut().zip(self.every) {
            if every > 0 && *count >= every {
                *count = 0;
                owes = true;
            }
        }
        owes
    }
}

pub(crate) struct Process {
    limits: Limits,
    flushes: Flushes,
    pub inflight: u32,
    pub phase: Phase,
    pub blocked: Blocked,
    /// When it wakes, where it is asleep.
    pub wake_at: u64,
    pub start_at: u64,
    pub is_start_set: bool,
    pub deadline: u64,
    pub is_time_based: bool,
    /// Each write is followed by a flush, which ends its latency.
    pub sync_writes: bool,
    source: Source,
    pace: Pace,
    issued_bytes: u64,
    issued_ios: u64,
    /// Counting begins anew here; `u64::MAX` once it has.
    ramp_end: u64,
    /// The last request; before the first one, an empty one in the job's first namespace.
    pub last: Request,
    /// A request that its rate let wait.
    chosen: Option<Direction>,
    pub measure: Measure,
    pub life: Life,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Life {
    pub has_started: bool,
    pub counted_from: u64,
    pub ended: u64,
}

pub(crate) enum Next {
    /// Issue [`Process::last`].
    Request,
    Flush,
    /// Reset the zone that begins at a byte of a namespace.
    Reset {
        namespace: u32,
        zone: u64,
    },
    /// Until [`Process::wake_at`].
    Sleep,
    /// Wait for something else.
    Nothing,
    /// Its recording cannot go on.
    Broken(Broken),
    /// It has ended, or ends when this was dealt with.
    End,
}

impl Process {
    /// `reader` is its recording, if it has one.
    pub fn new(
        job: &Job,
        plan: &JobPlan,
        reader: Option<Box<dyn TraceReader>>,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let (from, to) = job.start_delay_ns;
        let mut rng = seeded(seed ^ 0x6465_6c61_7900 ^ u64::from(job.number) << 16);
        let source = match (&plan.walk, reader) {
            (_, Some(reader)) => {
                Source::Recorded(Box::new(Recorded::new(reader, job, plan.regions[0], seed)))
            }
            (None, None) => Source::Plain(Box::new(Generator::new(job, plan, seed))),
            (Some(walk), None) => Source::Zoned(Box::new(Walker::new(job, walk, seed)?)),
        };
        Ok(Self {
            limits: Limits {
                depth: if let Source::Recorded(recorded) = &source { recorded.depth() } else { job.depth },
                runtime_ns: job.runtime_ns.unwrap_or(u64::MAX),
                ramp_ns: job.ramp_ns,
                // A walker counts for itself.
                total_bytes: if plan.walk.is_some() { u64::MAX } else { plan.total_bytes },
                total_ios: job
                    .number_ios
                    .filter(|_| plan.walk.is_none())
                    .map_or(u64::MAX, |n| n.saturating_mul(job.loops)),
                mixes: job.pattern.reads && job.pattern.writes,
            },
            flushes: Flushes {
                writes: 0,
                unflushed: [0; 2],
                every: [job.fsync, job.fdatasync],
                at_end: job.end_fsync,
            },
            inflight: 0,
            phase: Phase::Waiting,
            blocked: Blocked::No,
            wake_at: 0,
            start_at: from + below(&mut rng, to - from + 1),
            is_start_set: false,
            deadline: u64::MAX,
            is_time_based: job.is_time_based,
            sync_writes: job.sync == SyncWrites::Each,
            source,
            pace: Pace::new(job, seed),
            issued_bytes: 0,
            issued_ios: 0,
            ramp_end: u64::MAX,
            last: Request::empty(plan.regions[0].namespace),
            chosen: None,
            measure: Measure::new(Direction::ALL.map(|d| job.does(d))),
            life: Life::default(),
        })
    }

    pub fn start(&mut self, now: u64) {
        self.phase = Phase::Running;
        self.life.has_started = true;
        self.life.counted_from = now;
        let counted = now.saturating_add(self.limits.ramp_ns);
        self.deadline = counted.saturating_add(self.limits.runtime_ns);
        if self.limits.ramp_ns > 0 {
            self.ramp_end = counted;
        }
        self.measure.restart(now);
        self.pace.start(now);
    }

    const fn is_exhausted(&self) -> bool {
        !self.is_time_based
            && (self.issued_bytes >= self.limits.total_bytes || self.issued_ios >= self.limits.total_ios)
    }

    #[inline]
    pub fn next(&mut self, now: u64, sets: &mut [ZoneSet]) -> Next {
        if self.phase == Phase::Running && (now >= self.deadline || self.is_exhausted()) {
            self.phase = Phase::Draining;
        }
        match self.phase {
            Phase::Running => {}
            Phase::Draining if self.inflight == 0 => return Next::End,
            _ => return Next::Nothing,
        }
        match self.blocked {
            Blocked::No => {}
            Blocked::Quiesce if self.inflight == 0 => return self.think(now),
            _ => return Next::Nothing,
        }
        if self.inflight >= self.limits.depth {
            return Next::Nothing;
        }
        if self.pace.wants_to_think(self.inflight, now) {
            if self.inflight == 0 {
                return self.think(now);
            }
            self.blocked = Blocked::Quiesce;
            return Next::Nothing;
        }
        if self.flushes.take_due() {
            self.blocked = Blocked::Flush;
            return Next::Flush;
        }
        self.choose(now, sets)
    }

    #[inline]
    fn choose(&mut self, now: u64, sets: &mut [ZoneSet]) -> Next {
        if self.pace.has_limits {
            return self.choose_due(now, sets);
        }
        let Source::Plain(generator) = &mut self.source else { return self.choose_other(now, sets) };
        match generator.next() {
            Some(request) => self.issue(request),
            None => self.drain(),
        }
    }

    /// The next request of a job with rate limits, which may change its direction. Not inlined into the path
    /// of jobs without.
    #[inline(never)]
    fn choose_due(&mut self, now: u64, sets: &mut [ZoneSet]) -> Next {
        if let Source::Zoned(walker) = &self.source
            && walker.has_pending()
        {
            return self.walk(None, sets);
        }
        let wanted = match (self.chosen.take(), &mut self.source) {
            (Some(direction), _) => direction,
            (None, Source::Plain(generator)) => generator.direction(),
            (None, Source::Zoned(walker)) => walker.direction(),
            (None, Source::Recorded(_)) => return self.follow(now),
        };
        let other = match wanted {
            Direction::Read if self.limits.mixes => Some(Direction::Write),
            Direction::Write if self.limits.mixes => Some(Direction::Read),
            _ => None,
        };
        let (due, at) = self.pace.due(wanted, other, now);
        if at > now {
            self.chosen = Some(due);
            return self.sleep(at);
        }
        let Source::Plain(generator) = &mut self.source else { return self.walk(Some(due), sets) };
        match generator.request(due) {
            Some(request) => self.issue(request),
            None => self.drain(),
        }
    }

    /// The request after the last one, where it is known already.
    #[inline]
    pub fn ahead(&self) -> Option<Request> {
        match &self.source {
            Source::Plain(generator) => generator.ahead(),
            Source::Zoned(_) | Source::Recorded(_) => None,
        }
    }

    #[inline(never)]
    fn choose_other(&mut self, now: u64, sets: &mut [ZoneSet]) -> Next {
        match &self.source {
            Source::Recorded(_) => self.follow(now),
            _ => self.walk(None, sets),
        }
    }

    /// What the recording asks for next.
    fn follow(&mut self, now: u64) -> Next {
        let Source::Recorded(recorded) = &mut self.source else { return Next::Nothing };
        match recorded.next(now, self.inflight) {
            Turn::Request(request) => self.issue(request),
            Turn::Flush => Next::Flush,
            Turn::Wait(until) => self.sleep(until),
            Turn::End => self.drain(),
            Turn::Broken(broken) => Next::Broken(broken),
        }
    }

    /// How the requests of its recording arrived, where they follow its times.
    pub fn stamped(&self) -> Option<Stamped> {
        match &self.source {
            Source::Recorded(recorded) => recorded.stamped(),
            _ => None,
        }
    }

    /// The next request of a job with a `zonemode`, whose zones may choose another direction. Not inlined
    /// into the path of jobs without.
    #[inline(never)]
    fn walk(&mut self, wanted: Option<Direction>, sets: &mut [ZoneSet]) -> Next {
        let Source::Zoned(walker) = &mut self.source else { return Next::Nothing };
        match walker.step(wanted, self.inflight, sets) {
            Step::Request(request) => self.issue(request),
            Step::Reset { namespace, zone } => {
                self.inflight += 1;
                self.blocked = Blocked::Reset;
                Next::Reset { namespace, zone }
            }
            Step::Wait => Next::Nothing,
            Step::End => self.drain(),
        }
    }

    const fn drain(&mut self) -> Next {
        self.phase = Phase::Draining;
        if self.inflight == 0 { Next::End } else { Next::Nothing }
    }

    #[inline(always)]
    fn issue(&mut self, request: Request) -> Next {
        let direction = request.direction;
        self.inflight += 1;
        self.issued_ios += 1;
        self.issued_bytes += request.extent.len;
        self.last = request;
        if direction == Direction::Write {
            self.flushes.note_write();
        }
        self.pace.issue(direction, request.extent.len);
        self.measure.issue(self.inflight);
        Next::Request
    }

    /// The walker of a job with a `zonemode`.
    pub fn walker(&mut self) -> Option<&mut Walker> {
        match &mut self.source {
            Source::Zoned(walker) => Some(walker),
            Source::Plain(_) | Source::Recorded(_) => None,
        }
    }

    /// A zone was reset.
    pub fn was_reset(&mut self, sets: &mut [ZoneSet]) {
        self.inflight -= 1;
        self.blocked = Blocked::No;
        if let Some(walker) = self.walker() {
            walker.was_reset(sets);
        }
    }

    /// A request is done that kept others out of a zone.
    #[inline(never)]
    pub fn leave_zone(&mut self, used: ZoneUse, sets: &mut [ZoneSet]) {
        if let Some(walker) = self.walker() {
            walker.completed(used, sets);
        }
    }

    /// It has ended, and needs no zone any more.
    pub fn leave_zones(&mut self, sets: &mut [ZoneSet]) {
        if let Some(walker) = self.walker() {
            walker.abandon(sets);
        }
    }

    /// Whether a flush is to be issued before it is done.
    pub fn take_last_flush(&mut self) -> bool {
        let is_due = self.phase == Phase::Draining && self.flushes.at_end && self.flushes.writes > 0;
        if is_due {
            self.phase = Phase::LastFlush;
        }
        is_due
    }

    /// A flush is done; `is_last` if it was the one at the end.
    pub fn flushed(&mut self, is_last: bool, latency_ns: u64) {
        self.inflight -= 1;
        // The flush of a recording is one that nothing waits for.
        if self.blocked == Blocked::Flush {
            self.blocked = Blocked::No;
        }
        if is_last {
            self.phase = Phase::Draining;
            self.flushes.at_end = false;
        } else {
            self.measure.flush(latency_ns);
        }
    }

    fn think(&mut self, now: u64) -> Next {
        let until = self.pace.think(now);
        self.sleep(until)
    }

    fn sleep(&mut self, until: u64) -> Next {
        self.blocked = Blocked::Asleep;
        self.wake_at = until.min(self.deadline);
        Next::Sleep
    }

    /// Whether what completes now is counted: its `ramp_time` is over.
    pub const fn is_counted(&self) -> bool {
        self.ramp_end == u64::MAX
    }

    #[inline]
    pub fn complete(&mut self, direction: Direction, bytes: u64, latency_ns: u64, now: u64) {
        if now >= self.ramp_end {
            self.life.counted_from = self.ramp_end;
            self.measure.restart(self.ramp_end);
            self.ramp_end = u64::MAX;
        }
        self.inflight -= 1;
        self.pace.complete();
        self.measure.complete(direction, bytes, latency_ns, now);
    }
}
