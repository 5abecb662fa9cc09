//! The result document of a run of jobs.

use super::JobOptions;
use super::engine::Engine;
use super::measure::{Measure, Spread};
use super::plan::Plan;
use super::process::Process;
use crate::result::{
    JobResult, LatencyLevel, LatencyResult, PercentilesOf, RunError, RunResult, SetResult, SyncResult,
    WorkloadResult,
};
use crate::sums::{self, Measured};
use crate::trust::{self, Facts};
use nandscape_core::Subsystem;
use nandscape_jobs::{Direction, Job, JobFile};
use std::collections::BTreeMap;

/// Rows of the result: a job each, or all jobs of a group that asks for `group_reporting`.
pub(crate) struct Rows {
    pub names: Vec<String>,
    pub row_of: Vec<u32>,
}

/// Which jobs are reported together.
pub(crate) fn rows(jobs: &[Job]) -> Rows {
    let mut rows = Rows { names: Vec::new(), row_of: Vec::new() };
    let mut of_group: BTreeMap<u32, u32> = BTreeMap::new();
    for job in jobs {
        let next = rows.names.len() as u32;
        let row = if job.group_reporting { *of_group.entry(job.group).or_insert(next) } else { next };
        if row == next {
            rows.names.push(job.name.clone());
        }
        rows.row_of.push(row);
    }
    rows
}

/// What a document is made from beside the engine.
pub(crate) struct Finished<'a> {
    pub file: &'a JobFile,
    pub spec: &'a str,
    pub rows: &'a Rows,
    pub plan: &'a Plan,
    pub erases_before: &'a [Vec<u32>],
    pub error: Option<RunError>,
    pub options: &'a JobOptions<'a>,
}

/// Upper limits of fio's latency classes, in nanoseconds: these times 1, a thousand and a million, and two
/// seconds.
const LEVELS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

pub(crate) fn document(engine: &mut Engine<'_>, finished: &Finished<'_>) -> RunResult {
    let mut end = engine.totals.last_completion;
    if finished.error.is_some() {
        // What the failing request had the flash do took time, too.
        end = end.max(engine.subsystem.idle_from().0);
    }
    let latency_ns = latencies(&engine.processes);
    let jobs = job_results(&engine.processes, finished, engine.subsystem, end);
    let subsystem: &dyn Subsystem = engine.subsystem;
    let mut notes = finished.file.notes.clone();
    notes.extend(finished.plan.notes.iter().cloned());
    if engine.totals.instant_reads > 0 {
        notes.push(format!(
            "{} reads took no time: they were of places never written (see --precondition and ftl.unmapped_read)",
            engine.totals.instant_reads
        ));
    }
    let layers = subsystem.inspect().layers;
    let measured = Measured {
        seed: finished.options.seed,
        workload_hash: engine.totals.hash,
        workload: WorkloadResult {
            spec: finished.spec.to_owned(),
            format: "fio job file".to_owned(),
            requests: engine.totals.issued,
            ..WorkloadResult::default()
        },
        simulated_ns: end,
        wear: sums::wear(layers, finished.erases_before, finished.options.with_detail),
        latency_ns,
    };
    let mut result = RunResult {
        partial: engine.stopped,
        error: finished.error.clone(),
        jobs,
        sets: set_results(subsystem, finished.erases_before),
        notes,
        ..sums::document(subsystem, layers, measured)
    };
    result.run.job_defaults = finished.file.global.iter().cloned().collect();
    let stamped: Vec<_> = engine.processes.iter().filter_map(Process::stamped).collect();
    let facts = Facts { result: &result, stamped: &stamped, rounds: None };
    result.trust = trust::judge(&facts);
    result
}

/// All reads, all writes, both, and all flushes, over all jobs.
fn latencies(processes: &[Process]) -> LatencyResult {
    let mut sums = [Spread::default(), Spread::default()];
    let mut flushes = Spread::default();
    for process in processes {
        sums[0].merge(process.measure.spread(Direction::Read));
        sums[1].merge(process.measure.spread(Direction::Write));
        flushes.merge(process.measure.flushes());
    }
    let mut all = sums[0].clone();
    all.merge(&sums[1]);
    LatencyResult {
        read: sums[0].summary(),
        write: sums[1].summary(),
        all: all.summary(),
        flush: Some(flushes.summary()).filter(|flush| flush.count > 0),
        zone: None,
    }
}

fn job_results(
    processes: &[Process],
    finished: &Finished<'_>,
    subsystem: &dyn Subsystem,
    end: u64,
) -> Vec<JobResult> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); finished.rows.names.len()];
    for (job, row) in finished.rows.row_of.iter().enumerate() {
        members[*row as usize].push(job);
    }
    members.iter().map(|members| job_result(members, processes, finished, subsystem, end)).collect()
}

fn job_result(
    members: &[usize],
    processes: &[Process],
    finished: &Finished<'_>,
    subsystem: &dyn Subsystem,
    end: u64,
) -> JobResult {
    let job = &finished.file.jobs[members[0]];
    let mut measure = Measure::default();
    let (mut from, mut to) = (u64::MAX, 0);
    let mut used: Vec<u32> = Vec::new();
    for member in members {
        let process = &processes[*member];
        measure.merge(&process.measure);
        if process.life.has_started {
            from = from.min(process.life.counted_from);
            // A run that ended early has jobs without an end of their own.
            to = to.max(if process.life.ended > 0 { process.life.ended } else { end });
        }
        used.extend(finished.plan.jobs[*member].regions.iter().map(|region| region.namespace));
    }
    used.sort_unstable();
    used.dedup();
    let start_ns = if from == u64::MAX { 0 } else { from };
    let runtime_ns = to.saturating_sub(start_ns);
    let direction = |d| measure.direction(d, runtime_ns, &job.percentiles);
    let (latency_ns, latency_stddev_ns, percentiles) = measure.sync(&job.percentiles);
    let issued: u64 = measure.depths.iter().sum();
    let percent = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 * 100.0 / of as f64 };
    JobResult {
        name: job.name.clone(),
        description: job.description.clone(),
        group: job.group,
        members: members.len() as u32,
        namespaces: used.iter().map(|n| subsystem.namespaces()[*n as usize].name.clone()).collect(),
        depth: job.depth,
        start_ns,
        runtime_ns,
        read: direction(Direction::Read),
        write: direction(Direction::Write),
        trim: direction(Direction::Trim),
        sync: SyncResult { latency_ns, latency_stddev_ns, percentiles },
        depth_levels: measure.depths.iter().map(|n| percent(*n, issued)).collect(),
        latency_levels: levels(&measure),
        percentiles_of: PercentilesOf { completion: job.clat_percentiles, total: job.lat_percentiles },
        policy: None,
        options: job.options.iter().cloned().collect(),
    }
}

fn levels(measure: &Measure) -> Vec<LatencyLevel> {
    let total = measure.requests();
    let mut before = 0;
    let mut out = Vec::new();
    let scaled = [1, 1_000, 1_000_000].into_iter().flat_map(|unit| LEVELS.map(|level| level * unit));
    for up_to_ns in scaled.chain([2_000_000_000, u64::MAX]) {
        let count = measure.up_to(up_to_ns);
        let percent = if total == 0 { 0.0 } else { (count - before) as f64 * 100.0 / total as f64 };
        out.push(LatencyLevel { up_to_ns, percent });
        before = count;
    }
    out
}

fn set_results(subsystem: &dyn Subsystem, erases_before: &[Vec<u32>]) -> Vec<SetResult> {
    let wear =
        |set: usize| sums::wear(subsystem.inspect().layers.only(set), &erases_before[set..=set], false);
    (0..subsystem.inspect().sets()).map(|set| sums::set(subsystem, set, wear(usize::from(set)))).collect()
}
