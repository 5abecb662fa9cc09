//! The replay loops.
//!
//! Closed loop: `depth` requests are outstanding; the next is issued the moment one completes. Open loop:
//! requests are issued at their time stamps (shifted so that the first is issued at 0). Either way commands
//! are submitted in nondecreasing virtual time. Schedulers that know completions at submission answer at
//! once; event-driven ones are advanced.

use crate::lookahead::Lookahead;
use crate::metrics::{Recorder, Series};
use crate::precondition::{Precondition, Snapshot};
use crate::result::{RunError, RunResult, WorkloadResult};
use crate::steady::{MOST_REPEATS, Settling, UntilSteady};
use crate::sums::{self, Measured};
use crate::trust::{Arrivals, Facts, Rounds, Stamped, judge, never_steady};
use nandscape_core::command::Payload;
use nandscape_core::{
    Command, Extent, IoRecord, NamespaceError, NamespaceResult, Outstanding, SimTime, StateError, Subsystem,
    Token, TraceError, TraceOp, TraceReader,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// So many are outstanding at any time.
    Closed {
        /// At least 1.
        depth: u32,
    },
    /// At their time stamps.
    Open,
}

/// What a replay is asked for beside workload and subsystem.
#[derive(Debug)]
pub struct ReplayOptions<'a> {
    /// When requests are issued.
    pub pacing: Pacing,
    /// Writes before the counted part.
    pub precondition: &'a Precondition,
    /// The state after them.
    pub snapshot: Snapshot<'a>,
    /// The workload itself, after them, until write amplification is steady.
    pub until_steady: Option<UntilSteady<'a>>,
    /// Seed of the preconditioning, and recorded in the result.
    pub seed: u64,
    /// Collect the series and single requests.
    pub with_series: bool,
    /// Time stamps of the workload, in their order: before the first request that is not before one of them,
    /// a point of its own is added to the series.
    pub marks: &'a [SimTime],
    /// Give the erase count of every block in the result.
    pub with_detail: bool,
    /// Set from outside to stop early; the result is then marked partial.
    pub stop: Option<&'a AtomicBool>,
}

/// How far a replay is; given to the progress callback now and then.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The device is being preconditioned; requests of the workload come after.
    pub preconditioning: bool,
    /// Requests issued so far in this part.
    pub requests: u64,
    /// Of so many, where that is known.
    pub expected: Option<u64>,
}

/// A replay that could not run at all (a failing request is not that: see [`RunResult::error`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReplayError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    State(#[from] StateError),
    /// A scheduler lost a request: a bug.
    #[error("{lost} requests were never answered: a bug in the scheduler")]
    Lost { lost: u64 },
}

/// What a replay gives, or why it ended.
type Result<T, E = ReplayError> = std::result::Result<T, E>;

/// A replay's result document and, if asked for, its series.
#[derive(Debug)]
pub struct ReplayOutcome {
    /// The document, without version, hashes of the configuration and wall time, which the caller knows.
    pub result: RunResult,
    /// The series.
    pub series: Option<Series>,
}

/// Writes under way before the counted part: deep enough to keep every die busy and shallow enough to keep
/// event queues short.
const DEPTH: u32 = 64;
/// What the state of a replay depends on besides the preconditioning.
const PREPARED: &str = "a trace or generator";
/// Requests between two looks at the stop flag and the progress callback.
const CHECK_EVERY: u64 = 4096;

/// Replays a workload on the only namespace of a subsystem.
///
/// `on_counted` is called once, when preconditioning is over and the counted part begins. `progress` is
/// called now and then.
pub fn replay(
    subsystem: &mut dyn Subsystem,
    workload: &mut dyn TraceReader,
    spec: &str,
    options: &ReplayOptions<'_>,
    on_counted: &mut dyn FnMut(),
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayOutcome> {
    assert_eq!(subsystem.namespaces().len(), 1, "namespaces of a replay");
    let mut runner = Runner::new(subsystem, options.stop, progress);
    let unprepared = runner.prepare(options)?;
    let mut settled = None;
    let unprepared = match (unprepared, options.until_steady) {
        (None, Some(until)) => {
            let (rounds, failure) = runner.settle(until, options.pacing)?;
            settled = rounds;
            failure
        }
        (failure, _) => failure,
    };
    let erases_before = sums::erases(sums::first(runner.subsystem));
    on_counted();
    let expected = workload.info().expected_records;
    let mut recorder = Recorder::new(options.with_series);
    let end = match unprepared {
        // Nothing was counted, and the document says why: in a comparison the other runs go on.
        Some(failure) => End { failure: Some(failure), ..End::default() },
        None => runner.run(workload, options, &mut recorder, expected)?,
    };
    let mut ended = recorder.last_completion();
    if end.failure.is_some() {
        // The request that failed never completes, but what it had the flash do (a collection that freed too
        // little) took time.
        ended = ended.max(runner.subsystem.idle_from());
    }
    let layers = sums::first(runner.subsystem);
    let spreads_seconds = workload.info().spreads_seconds;
    let measured = Measured {
        seed: options.seed,
        workload_hash: end.hash,
        workload: WorkloadResult { requests: end.issued, ..WorkloadResult::new(spec, &workload.info()) },
        simulated_ns: ended.since(end.start).0,
        wear: sums::wear(layers, &erases_before, options.with_detail),
        latency_ns: recorder.latencies(),
    };
    let result = sums::document(runner.subsystem, layers, measured);
    let mut result = RunResult { partial: end.stopped, error: end.failure, ..result };
    let stamped = end.arrivals.map(|arrivals| Stamped { job: None, arrivals, spreads_seconds });
    result.trust =
        judge(&Facts { result: &result, stamped: stamped.as_slice(), rounds: end.rounds.as_ref() });
    match settled {
        Some(rounds) if rounds.is_steady() => result.notes.push(rounds.describe()),
        Some(rounds) => result.trust.push(never_steady(rounds.describe())),
        None if options.until_steady.is_some() => {
            result.notes.push(
                "until steady: the workload writes nothing to flash before the counted part".to_owned(),
            );
        }
        None => {}
    }
    if let Some(zones) = &mut result.between.zones {
        zones.history = recorder.take_zones(subsystem, end.start);
    }
    let mut series = recorder.into_series(subsystem, end.start);
    if let Some(series) = &mut series {
        let wear = sums::wear(sums::first(subsystem), &erases_before, true);
        series.erase_counts = wear.per_block.unwrap_or_default();
    }
    Ok(ReplayOutcome { result, series })
}

struct End {
    issued: u64,
    hash: u64,
    start: SimTime,
    stopped: bool,
    failure: Option<RunError>,
    /// Where requests arrived at their time stamps.
    arrivals: Option<Arrivals>,
    /// Where there is flash.
    rounds: Option<Rounds>,
}

impl Default for End {
    fn default() -> Self {
        let (start, hash) = (SimTime::ZERO, HASH_SEED);
        Self { issued: 0, hash, start, stopped: false, failure: None, arrivals: None, rounds: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    op: TraceOp,
    bytes: u64,
    issued: SimTime,
}

struct Runner<'a> {
    subsystem: &'a mut dyn Subsystem,
    stop: Option<&'a AtomicBool>,
    progress: &'a mut dyn FnMut(Progress),
    outstanding: Outstanding<Pending>,
}

impl<'a> Runner<'a> {
    fn new(
        subsystem: &'a mut dyn Subsystem,
        stop: Option<&'a AtomicBool>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Self { subsystem, stop, progress, outstanding: Outstanding::default() }
    }

    /// Brings the state before the counted part about, or loads it; gives the write that failed, if one did.
    fn prepare(&mut self, options: &ReplayOptions<'_>) -> Result<Option<RunError>> {
        if let Snapshot::Load(load) = options.snapshot {
            // As at the end of a preconditioning.
            self.subsystem.reset_counters(SimTime::ZERO);
            load(self.subsystem, PREPARED)?;
            return Ok(None);
        }
        if options.precondition.steps.is_empty() {
            return Ok(None);
        }
        let failure = self.precondition(options.precondition, options.seed)?;
        if let Snapshot::Save(save) = options.snapshot
            && failure.is_none()
            && !self.is_stopped()
        {
            save(self.subsystem, PREPARED)?;
        }
        Ok(failure)
    }

    /// Writes what the preconditioning says and forgets its counts; gives the write that failed, if one did.
    fn precondition(&mut self, precondition: &Precondition, seed: u64) -> Result<Option<RunError>> {
        let info = &self.subsystem.namespaces()[0];
        if info.objects {
            let message =
                "precondition: a store of objects has no addresses to fill: expected none".to_owned();
            return Ok(Some(RunError { request: 0, message }));
        }
        let expected = Some(precondition.requests(info));
        let records = precondition.records(info, seed);
        let mut recorder = Recorder::new(false);
        let mut now = SimTime::ZERO;
        let mut ahead = Lookahead::new(records);
        let mut done = 0u64;
        let mut failure = None;
        while let Some(record) = ahead.next(|record| {
            prepare(self.subsystem, record);
        }) {
            if done.is_multiple_of(CHECK_EVERY) {
                (self.progress)(Progress { preconditioning: true, requests: done, expected });
                if self.is_stopped() {
                    break;
                }
            }
            now = self.wait_for_slot(now, DEPTH, &mut recorder)?;
            if let Err(error) = self.issue(&record, now, &mut recorder) {
                let message =
                    format!("precondition write (offset {} len {}): {error}", record.offset, record.len);
                failure = Some(RunError { request: 0, message });
                break;
            }
            done += 1;
        }
        self.forget(&mut recorder)?;
        Ok(failure)
    }

    /// Writes the workload again and again until a round is like those before it, and forgets the counts.
    /// Gives the rounds, where there is flash, and the request that failed, if one did.
    fn settle(
        &mut self,
        until: UntilSteady<'_>,
        pacing: Pacing,
    ) -> Result<(Option<Settling>, Option<RunError>)> {
        let Some(page_bytes) = sums::page_bytes(sums::first(self.subsystem)) else { return Ok((None, None)) };
        let depth = if let Pacing::Closed { depth } = pacing { depth.max(1) } else { DEPTH };
        let capacity = self.subsystem.namespaces()[0].capacity_bytes;
        let mut rounds = Settling::new(capacity, page_bytes, sums::programs(self.subsystem));
        let mut recorder = Recorder::new(false);
        let (mut now, mut done, mut failed) = (SimTime::ZERO, 0_u64, None);
        // A recording of files that ends in the middle leaves files that the next one makes.
        let (ends_whole, mut is_settled) = (self.subsystem.namespaces()[0].objects, false);
        'repeats: while rounds.repeats < MOST_REPEATS {
            rounds.repeats += 1;
            let before = rounds.written;
            for record in (until.0)(rounds.repeats)? {
                let record = record?;
                if record.op.is_read() {
                    continue;
                }
                if done.is_multiple_of(CHECK_EVERY) {
                    (self.progress)(Progress { preconditioning: true, requests: done, expected: None });
                    if self.is_stopped() {
                        break 'repeats;
                    }
                }
                done += 1;
                now = self.wait_for_slot(now, depth, &mut recorder)?;
                if let Err(error) = self.issue(&record, now, &mut recorder) {
                    let error = failure(done, &record, &error);
                    let message = format!("until steady, repetition {}: {}", rounds.repeats, error.message);
                    failed = Some(RunError { request: 0, message });
                    break 'repeats;
                }
                let is_round = record.op.is_write() && rounds.write(record.len);
                is_settled |= is_round && rounds.end_round(sums::programs(self.subsystem));
                if is_settled && !ends_whole {
                    break 'repeats;
                }
            }
            if is_settled || rounds.written == before {
                break;
            }
        }
        self.forget(&mut recorder)?;
        Ok(((rounds.written > 0).then_some(rounds), failed))
    }

    /// Ends what is under way and sets counters and time back.
    fn forget(&mut self, recorder: &mut Recorder) -> Result<()> {
        self.drain(recorder)?;
        self.subsystem.reset_counters(SimTime::ZERO);
        self.outstanding = Outstanding::default();
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn run(
        &mut self,
        workload: &mut dyn TraceReader,
        options: &ReplayOptions<'_>,
        recorder: &mut Recorder,
        expected: Option<u64>,
    ) -> Result<End> {
        let (pacing, mut marks) = (options.pacing, options.marks);
        let mut end = End::default();
        let mut now = SimTime::ZERO;
        let mut origin = None;
        let mut arrivals = Arrivals::default();
        let mut rounds = sums::page_bytes(sums::first(self.subsystem)).map(Rounds::new);
        let folds = sums::slc(sums::first(self.subsystem)).is_some();
        let mut ahead = Lookahead::new(&mut *workload);
        while let Some(record) = ahead.next(|record| {
            if let Ok(record) = record {
                prepare(self.subsystem, record);
            }
        }) {
            let record = record?;
            if end.issued.is_multiple_of(CHECK_EVERY) {
                (self.progress)(Progress { preconditioning: false, requests: end.issued, expected });
                if self.is_stopped() {
                    end.stopped = true;
                    break;
                }
            }
            end.issued += 1;
            end.hash = mix(end.hash, &record);
            match pacing {
                Pacing::Closed { depth } => now = self.wait_for_slot(now, depth.max(1), recorder)?,
                Pacing::Open => {
                    let at = record.at.since(*origin.get_or_insert(record.at));
                    let mut idled = Ok(());
                    if folds {
                        idled = sums::fold_until(&mut *self.subsystem, &mut self.outstanding, at);
                    }
                    self.wait_until(at, recorder);
                    arrivals.arrive(at.as_ns(), self.outstanding.count());
                    now = now.max(at);
                    let idle_from = self.subsystem.idle_from();
                    if !folds && idle_from < now {
                        idled = self.subsystem.idle(idle_from, now);
                    }
                    if let Err(error) = idled {
                        end.failure = Some(failure(end.issued, &record, &error));
                        break;
                    }
                }
            }
            // Before the next request, so that counters and time speak of the same requests where none is
            // outstanding.
            if recorder.wants_sample(end.start) {
                recorder.sample(self.subsystem, end.start);
            }
            while let Some((_, later)) = marks.split_first().filter(|(mark, _)| record.at >= **mark) {
                marks = later;
                recorder.mark(self.subsystem, end.start);
            }
            if let Err(error) = self.issue(&record, now, recorder) {
                end.failure = Some(failure(end.issued, &record, &error));
                break;
            }
            if let Some(rounds) = &mut rounds
                && record.op.is_write()
                && rounds.write(record.len)
            {
                rounds.add(sums::programs(self.subsystem));
            }
        }
        self.drain(recorder)?;
        if let Some(rounds) = &mut rounds {
            rounds.add(sums::programs(self.subsystem));
        }
        end.rounds = rounds;
        end.arrivals = (pacing == Pacing::Open).then_some(arrivals);
        (self.progress)(Progress { preconditioning: false, requests: end.issued, expected });
        Ok(end)
    }

    #[inline]
    fn issue(&mut self, record: &IoRecord, now: SimTime, recorder: &mut Recorder) -> NamespaceResult<()> {
        let token = self.subsystem.submit(0, Command::from(record), Payload::None, now)?.into_done();
        let pending = Pending { op: record.op, bytes: record.len, issued: now };
        if token == Token::NONE {
            recorder.complete(pending.op, pending.bytes, now, now);
            return Ok(());
        }
        self.outstanding.submitted(&mut *self.subsystem, token, now, pending);
        Ok(())
    }

    /// Waits for the next completion; gives its time, or `None` if nothing is outstanding.
    #[inline]
    fn finish_one(&mut self, recorder: &mut Recorder) -> Result<Option<SimTime>> {
        let Some((at, pending)) = self.outstanding.next(&mut *self.subsystem) else {
            let lost = self.outstanding.count() as u64;
            return if lost == 0 { Ok(None) } else { Err(ReplayError::Lost { lost }) };
        };
        recorder.complete(pending.op, pending.bytes, pending.issued, at);
        Ok(Some(at))
    }

    /// Waits until fewer than `depth` requests are outstanding; gives the time at which that is so.
    #[inline]
    fn wait_for_slot(&mut self, mut now: SimTime, depth: u32, recorder: &mut Recorder) -> Result<SimTime> {
        while self.outstanding.count() >= depth as usize {
            let Some(at) = self.finish_one(recorder)? else { break };
            now = now.max(at);
        }
        Ok(now)
    }

    /// Takes all completions up to `until`.
    fn wait_until(&mut self, until: SimTime, recorder: &mut Recorder) {
        if self.outstanding.watched() > 0 || self.subsystem.next_event().is_some() {
            self.outstanding.advance(&mut *self.subsystem, until);
        }
        while let Some((at, pending)) = self.outstanding.next_until(&mut *self.subsystem, until) {
            recorder.complete(pending.op, pending.bytes, pending.issued, at);
        }
    }

    fn drain(&mut self, recorder: &mut Recorder) -> Result<()> {
        while self.finish_one(recorder)?.is_some() {}
        Ok(())
    }
}

/// Announces a request of blocks; operations of zones need no preparation.
#[inline]
fn prepare(subsystem: &mut dyn Subsystem, record: &IoRecord) {
    if let Some(op) = record.op.block_op() {
        subsystem.prepare(0, op, Extent::new(record.offset, record.len));
    }
}

fn failure(request: u64, record: &IoRecord, error: &NamespaceError) -> RunError {
    let object = if record.op.is_object_op() { format!("object {} ", record.volume) } else { String::new() };
    let message = format!(
        "request {request} ({} {object}offset {} len {}): {error}",
        record.op.letter(),
        record.offset,
        record.len
    );
    RunError { request, message }
}

const HASH_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds a request into the hash of the workload. Not cryptographic: it tells two workloads apart, not an
/// adversary.
#[inline]
fn mix(hash: u64, record: &IoRecord) -> u64 {
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
    // Volumes are laid out by now; what is left are numbers of objects.
    let meta = u64::from(record.volume) << 24 | u64::from(record.hint) << 8 | record.op as u64;
    fold(fold(fold(fold(hash, record.offset), record.len), record.at.0), meta)
}
