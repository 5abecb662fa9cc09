//! The result document of a run of jobs.

use super::engine::Engine;
use super::measure::{Measure, Spread};
use super::plan::Plan;
use super::process::Process;
use super::{JobOptions, erase_counts};
use crate::result::{
    CacheResult, JobResult, LatencyLevel, LatencyResult, PercentilesOf, RunError, RunResult, SCHEMA,
    SetResult, SyncResult, ThroughputResult, TimeResult, WearResult, WorkloadResult, placement_of_logs,
    ratio,
};
use crate::sums;
use nandscape_core::{BlockId, OpCounts, Subsystem};
use nandscape_jobs::{Direction, Job, JobFile};
use std::collections::BTreeMap;

/// Rows of the result: a job each, or all jobs of a group that asks for `group_reporting`.
pub(crate) struct Rows {
    /// Name of each row.
    pub names: Vec<String>,
    /// Row of each job.
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
    pub wear_before: &'a [Vec<u32>],
    pub error: Option<RunError>,
    pub options: &'a JobOptions<'a>,
}

/// Upper limits of fio's latency classes, in nanoseconds.
const LEVELS_NS: [u64; 31] = [
    2,
    4,
    10,
    20,
    50,
    100,
    250,
    500,
    750,
    1_000,
    2_000,
    4_000,
    10_000,
    20_000,
    50_000,
    100_000,
    250_000,
    500_000,
    750_000,
    1_000_000,
    2_000_000,
    4_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_000_000_000,
];

/// The document.
pub(crate) fn document(engine: &mut Engine<'_>, finished: &Finished<'_>) -> RunResult {
    let mut end = engine.totals.last_completion;
    let partial = engine.stopped;
    if finished.error.is_some() {
        // What the failing request had the flash do took time, too.
        end = end.max(engine.subsystem().idle_from().0);
    }
    let latency_ns = latencies(&engine.processes);
    let jobs = job_results(&engine.processes, finished, engine.subsystem, end);
    let subsystem: &dyn Subsystem = engine.subsystem;
    let sets = set_results(subsystem, finished.wear_before);
    let mut notes = finished.file.notes.clone();
    notes.extend(finished.plan.notes.iter().cloned());
    if engine.totals.instant_reads > 0 {
        notes.push(format!(
            "{} reads took no time: they were of places never written (see --precondition and ftl.unmapped_read)",
            engine.totals.instant_reads
        ));
    }
    let host = sums::hosts(subsystem, None);
    let (stats, cost) = sums::layers(subsystem);
    let (map, gc, merges) = RunResult::map_gc_merges(&stats, &cost);
    let totals: OpCounts = (0..subsystem.inspect().sets()).fold(OpCounts::default(), |mut sum, set| {
        sum.add(subsystem.inspect().device(set).tally().totals);
        sum
    });
    let has_flash = subsystem.inspect().sets() > 0;
    let is_paged = has_flash
        && subsystem
            .namespaces()
            .iter()
            .all(|info| info.page_bytes == subsystem.inspect().device(0).geometry().page_bytes);
    let page_bytes =
        if has_flash { u64::from(subsystem.inspect().device(0).geometry().page_bytes) } else { 0 };
    RunResult {
        schema: SCHEMA,
        version: String::new(),
        config_hash: String::new(),
        workload_hash: format!("{:016x}", engine.totals.hash),
        seed: finished.options.seed,
        config: serde_json::Value::Null,
        workload: WorkloadResult {
            spec: finished.spec.to_owned(),
            format: "fio job file".to_owned(),
            requests: engine.totals.issued,
            has_real_times: false,
            time_reversals: 0,
            skipped: 0,
        },
        partial,
        error: finished.error.clone(),
        cache: subsystem.inspect().cache().map(|report| {
            CacheResult::new(report, host.write_bytes, has_flash.then_some(totals.programs * page_bytes))
        }),
        policy: None,
        waf: if is_paged { ratio(totals.programs, host.write_pages) } else { None },
        waf_bytes: if has_flash { ratio(totals.programs * page_bytes, host.write_bytes) } else { None },
        flash: sums::flash(subsystem, totals),
        map,
        gc,
        merges,
        wear: wear(subsystem, finished),
        time: TimeResult { simulated_ns: end, ..TimeResult::default() },
        throughput: ThroughputResult::new(&host, end),
        latency_ns,
        cost: cost.into(),
        lifetime: crate::LifetimeResult::default(),
        jobs,
        sets,
        job_defaults: finished.file.global.iter().cloned().collect(),
        placement: subsystem.inspect().placement().or_else(|| {
            let of = |set| {
                (0..subsystem.inspect().logs(set))
                    .map(|log| subsystem.inspect().layer(set).log_status(log))
                    .collect()
            };
            placement_of_logs((0..subsystem.inspect().sets()).map(|set| (set, of(set))))
        }),
        notes,
        host,
    }
}

/// All reads, all writes, and both, over all jobs.
fn latencies(processes: &[Process]) -> LatencyResult {
    let mut sums = [Spread::default(), Spread::default()];
    for process in processes {
        sums[0].merge(process.measure.spread(Direction::Read));
        sums[1].merge(process.measure.spread(Direction::Write));
    }
    let mut all = sums[0].clone();
    all.merge(&sums[1]);
    LatencyResult { read: sums[0].summary(), write: sums[1].summary(), all: all.summary() }
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
        options: job.options.iter().cloned().collect(),
    }
}

fn levels(measure: &Measure) -> Vec<LatencyLevel> {
    let total = measure.requests();
    let mut before = 0;
    let mut out = Vec::with_capacity(LEVELS_NS.len() + 1);
    for up_to_ns in LEVELS_NS.into_iter().chain([u64::MAX]) {
        let count = measure.up_to(up_to_ns);
        let percent = if total == 0 { 0.0 } else { (count - before) as f64 * 100.0 / total as f64 };
        out.push(LatencyLevel { up_to_ns, percent });
        before = count;
    }
    out
}

/// Erases of the good blocks of a set since the counted part began, and of all its blocks.
fn set_wear(subsystem: &dyn Subsystem, set: u16, before: &[u32], now: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let device = subsystem.inspect().device(set);
    let all: Vec<u32> = now.iter().zip(before).map(|(now, before)| now - before).collect();
    let good =
        all.iter().enumerate().filter(|(b, _)| !device.is_bad(BlockId(*b as u32))).map(|(_, n)| *n).collect();
    (good, all)
}

/// Over the blocks of all sets.
fn wear(subsystem: &dyn Subsystem, finished: &Finished<'_>) -> WearResult {
    let (mut good, mut all) = (Vec::new(), Vec::new());
    for (set, now) in erase_counts(subsystem).iter().enumerate() {
        let (set_good, set_all) = set_wear(subsystem, set as u16, &finished.wear_before[set], now);
        good.extend(set_good);
        all.extend(set_all);
    }
    let mut wear = WearResult::new(good.into_iter());
    if finished.options.with_detail {
        wear.per_block = Some(all);
    }
    wear
}

fn set_results(subsystem: &dyn Subsystem, wear_before: &[Vec<u32>]) -> Vec<SetResult> {
    let now = erase_counts(subsystem);
    (0..subsystem.inspect().sets())
        .map(|set| {
            let (good, _) = set_wear(subsystem, set, &wear_before[usize::from(set)], &now[usize::from(set)]);
            sums::set(subsystem, set, WearResult::new(good.into_iter()))
        })
        .collect()
}
