//! Job files in virtual time: every job a process with its own depth, think time, rate and order, all on the
//! namespaces of one subsystem.
//!
//! * `plan`, `zones_plan`, `planned`: names, percentages, files and zones become regions of namespaces.
//! * `generator`, `places`: the next request of a job; `zoned`: the same with a `zonemode`.
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
mod request;
#[cfg(test)]
mod tests;
pub mod timeline;
mod zoned;
mod zones_plan;

pub use log::{Logged, RequestLog, Sample};
pub use planned::PlanError;
pub use timeline::JobSeries;

use crate::precondition::{Precondition, Snapshot};
use crate::replay::Progress;
use crate::result::{RunError, RunResult};
use crate::sums;
use engine::{Engine, Failure};
use log::Log;
use nandscape_core::{Extent, StateError, Subsystem};
use nandscape_jobs::JobFile;
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
    let plan = plan::plan(&file.jobs, subsystem.namespaces())?;
    let rows = document::rows(&file.jobs);
    let mut engine = Engine::new(subsystem, &file.jobs, &plan, options.seed, options.stop, progress)?;
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
