//! Job files in virtual time: every job a process with its own depth, think time, rate and order, all on the
//! namespaces of one subsystem.
//!
//! * `plan`, `zones_plan`, `planned`: names, percentages, files and zones become regions of namespaces.
//! * `generator`, `places`: the next request of a job; `zoned`: the same with a `zonemode`.
//! * `recorded`: the same from a recording (`read_iolog`): several hosts with traces run side by side.
//! * `pace`: when a job may issue.
//! * `engine`: the event loop; `measure`, [`timeline`]: measurements; `document`: the result.
//!
//! Submitting costs the host nothing, so fio's submission latency is 0 and completion latency is total
//! latency.

mod axmap;
mod document;
mod engine;
mod generator;
mod hints;
mod log;
mod measure;
mod pace;
mod permutation;
mod places;
mod plan;
mod planned;
mod process;
mod recorded;
mod request;
#[cfg(test)]
mod tests;
pub mod timeline;
mod zoned;
mod zones_plan;

pub use log::{Logged, RequestLog, Sample};
pub use plan::is_file;
pub use planned::{PlanError, unreadable};
pub use recorded::{Recordings, Room};
pub use timeline::JobSeries;

use crate::precondition::{Precondition, Snapshot};
use crate::replay::Progress;
use crate::result::{RunError, RunResult};
use crate::sums;
use engine::{Engine, Failure};
use log::Log;
use nandscape_core::{Extent, NamespaceInfo, StateError, Subsystem, TraceError, TraceReader};
use nandscape_jobs::{Job, JobFile};
use std::sync::atomic::AtomicBool;
use timeline::Timeline;

/// What a run of a job file is asked for beside the file and the device.
#[derive(Debug)]
pub struct JobOptions<'a> {
    /// Writes before the counted part, to every namespace that a job uses.
    pub precondition: &'a Precondition,
    /// The state after them, and after the files that will be read have been written.
    pub snapshot: Snapshot<'a>,
    /// Seed of the jobs and the preconditioning.
    pub seed: u64,
    /// Collect what happened when.
    pub with_series: bool,
    /// Interval of that; `None` begins at 0.1 ms and doubles as the run gets longer.
    pub interval_ns: Option<u64>,
    /// Give the erase count of every block in the result.
    pub with_detail: bool,
    /// Set from outside to stop early; the result is then marked partial.
    pub stop: Option<&'a AtomicBool>,
    /// Hears of the requests of jobs that have a log.
    pub log: Option<&'a dyn RequestLog>,
    /// Opens the recordings of jobs with `read_iolog`.
    pub recordings: Option<&'a dyn Recordings>,
}

/// A run's result document and, if asked for, what happened when.
#[derive(Debug)]
pub struct JobsOutcome {
    /// The document, without version, hashes of the configuration and wall time, which the caller knows.
    pub result: RunResult,
    /// Over time.
    pub series: Option<JobSeries>,
}

/// A job file that could not run at all (a failing request is not that: see [`RunResult::error`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum JobsError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Recording(#[from] TraceError),
    /// A scheduler lost a request: a bug.
    #[error("{lost} requests were never answered: a bug in the scheduler")]
    Lost { lost: u64 },
}

/// Requests outstanding while preconditioning.
const PRECONDITION_DEPTH: usize = 64;

/// Runs a job file on a subsystem.
///
/// `on_counted` is called once, when preconditioning is over and the counted part begins. `progress` is
/// called now and then.
pub fn run_jobs(
    subsystem: &mut dyn Subsystem,
    file: &JobFile,
    spec: &str,
    options: &JobOptions<'_>,
    on_counted: &mut dyn FnMut(),
    progress: &mut dyn FnMut(Progress),
) -> Result<JobsOutcome, JobsError> {
    let recordings = options.recordings;
    let spans = spans(&file.jobs, subsystem.namespaces(), recordings)?;
    let plan = plan::plan(&file.jobs, &spans, subsystem.namespaces())?;
    let rows = document::rows(&file.jobs);
    let readers = open_recordings(&file.jobs, &plan, subsystem.namespaces(), recordings)?;
    let mut engine =
        Engine::new(subsystem, &file.jobs, &plan, readers, options.seed, options.stop, progress)?;
    let prepared = match options.snapshot {
        Snapshot::Load(_) => Ok(()),
        Snapshot::Unused | Snapshot::Save(_) => precondition(&mut engine, &plan, options),
    };
    let mut outcome = prepared.and_then(|()| engine.adopt_zones());
    engine.begin();
    match options.snapshot {
        Snapshot::Save(save) if outcome.is_ok() && !engine.stopped => {
            save(engine.subsystem, &plan.prepared())?;
        }
        Snapshot::Load(load) if outcome.is_ok() => load(engine.subsystem, &plan.prepared())?,
        _ => {}
    }
    let erases_before = sums::erases(engine.subsystem.inspect().layers);
    on_counted();
    engine.log = options.log.map(|log| Log::new(log, &file.jobs, &plan.areas));
    if options.with_series {
        let (names, row_of) = (rows.names.clone(), rows.row_of.clone());
        engine.timeline = Some(Timeline::new(names, row_of, options.interval_ns, engine.subsystem));
    }
    if outcome.is_ok() && !engine.stopped {
        outcome = engine.run();
    }
    let error = match outcome {
        Ok(()) => None,
        Err(Failure::Request { number, message }) => Some(RunError { request: number, message }),
        Err(Failure::Standstill(message)) => Some(RunError { request: engine.totals.issued, message }),
        Err(Failure::Recording(error)) => return Err(error.into()),
        Err(Failure::Lost(lost)) => return Err(JobsError::Lost { lost }),
    };
    let end = engine.totals.last_completion;
    let timeline = engine.timeline.take();
    let finished = document::Finished {
        file,
        spec,
        rows: &rows,
        plan: &plan,
        erases_before: &erases_before,
        error,
        options,
    };
    let mut result = document::document(&mut engine, &finished);
    let (series, history) = timeline.map(|timeline| timeline.finish(end, engine.subsystem)).unzip();
    if let Some(zones) = &mut result.between.zones {
        zones.history = history.flatten();
    }
    Ok(JobsOutcome { result, series })
}

/// What the recordings of jobs need that go to files as large as that; 0 for other jobs.
fn spans(
    jobs: &[Job],
    namespaces: &[NamespaceInfo],
    recordings: Option<&dyn Recordings>,
) -> Result<Vec<u64>, JobsError> {
    let has_file = |job: &Job| job.has_file_for_recording(|name| is_file(name, namespaces));
    let span = |job: &Job| match namespaces.first().filter(|_| has_file(job)) {
        None => Ok(0),
        Some(first) => {
            let room = Room { bytes: first.capacity_bytes, page_bytes: first.page_bytes };
            opener(job, recordings)?.span(job, room).map_err(|error| planned::unreadable(job, &error).into())
        }
    };
    jobs.iter().map(span).collect()
}

/// The recordings of the jobs that have one.
fn open_recordings(
    jobs: &[Job],
    plan: &plan::Plan,
    namespaces: &[NamespaceInfo],
    recordings: Option<&dyn Recordings>,
) -> Result<Vec<Option<Box<dyn TraceReader>>>, JobsError> {
    let open = |(job, plan): (&Job, &planned::JobPlan)| {
        if job.recording_file().is_none() {
            return Ok(None);
        }
        let region = plan.regions[0];
        let room = Room { bytes: region.len, page_bytes: namespaces[region.namespace as usize].page_bytes };
        let reader = opener(job, recordings)?.open(job, room);
        Ok(Some(reader.map_err(|error| planned::unreadable(job, &error))?))
    };
    jobs.iter().zip(&plan.jobs).map(open).collect()
}

fn opener<'a>(job: &Job, recordings: Option<&'a dyn Recordings>) -> Result<&'a dyn Recordings, PlanError> {
    recordings.ok_or_else(|| planned::error(job, "read_iolog: nothing opens recordings here".to_owned()))
}

/// The row of a result that each job is in: one of its own, or that of its report group.
pub fn row_of(jobs: &[Job]) -> Vec<u32> {
    document::rows(jobs).row_of
}

/// Preconditions every namespace that a job uses, then writes the files that will be read.
fn precondition(engine: &mut Engine<'_>, plan: &plan::Plan, options: &JobOptions<'_>) -> Result<(), Failure> {
    let mut done = 0;
    for namespace in plan.namespaces() {
        let info = &engine.subsystem.namespaces()[namespace as usize];
        for record in options.precondition.records(info, options.seed ^ u64::from(namespace) << 32) {
            let extent = Extent::new(record.offset, record.len);
            engine.write_uncounted(namespace, extent, PRECONDITION_DEPTH, done)?;
            if engine.stopped {
                break;
            }
            done += 1;
        }
    }
    engine.settle()?;
    engine.lay_out(&plan.layout)
}
