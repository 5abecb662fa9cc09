//! Replays: one configuration, or several compared.

use crate::build::{BuildOptions, build};
use crate::config::{ConfigError, StackConfig};
use crate::host::HostReader;
use crate::jobs::{compare_job_files, is_job_file, run_job_file};
use nandscape_core::{Subsystem, TraceError, TraceReader, units};
use nandscape_report::Run;
use nandscape_sim::{LifetimeResult, Progress, ReplayError, ReplayOptions, RunResult};
use nandscape_trace::{OpenOptions, Target, Workload};
use rayon::prelude::*;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A run that gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The workload is wrong.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The replay could not run.
    #[error("{label}: {error}")]
    Replay {
        /// Which run.
        label: String,
        /// Why.
        error: ReplayError,
    },
    /// The workload does not fit.
    #[error(
        "workload '{workload}' reaches byte {end} ({end_text}), but {ftl} offers only {capacity} bytes ({capacity_text}) on this device; \
         use a larger device, a lower ftl.op, or --remap dense"
    )]
    TooLarge {
        /// Which workload.
        workload: String,
        /// One past its last byte.
        end: u64,
        /// The same for people.
        end_text: String,
        /// Which translation layer.
        ftl: String,
        /// Its logical capacity.
        capacity: u64,
        /// The same for people.
        capacity_text: String,
    },
    /// The job file is wrong, or does not fit the device.
    #[error("{0}")]
    Jobs(String),
    /// Standard input can be read once.
    #[error("standard input ('-') is given as more than one workload: expected it once")]
    StdinTwice,
    /// Threads could not be started.
    #[error("cannot start {jobs} jobs: {message}")]
    Threads {
        /// How many.
        jobs: usize,
        /// Why.
        message: String,
    },
    /// A run of a published experiment ended with an error, so its counters are not those of the whole
    /// workload.
    #[error("{label}: {message}")]
    Failed {
        /// Which run.
        label: String,
        /// The error, with the failing request and the numbers.
        message: String,
    },
    /// Stopped from outside before there was a result.
    #[error("interrupted")]
    Interrupted,
}

/// What to keep of a run, and how to follow it. Nothing here changes what is counted.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Set from outside to stop early with a partial result.
    pub stop: Option<&'a AtomicBool>,
    /// Collect the series.
    pub with_series: bool,
    /// Interval of the series of a job file; `None` for one that grows with the run.
    pub interval_ns: Option<u64>,
    /// Erase count of every block in the result.
    pub with_detail: bool,
    /// Count programs per page where the device is small enough (16 Mi pages).
    pub count_programs: bool,
    /// Called now and then with the label of the run.
    pub progress: &'a (dyn Fn(&str, Progress) + Sync),
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        Self {
            stop: None,
            with_series: false,
            interval_ns: None,
            with_detail: false,
            count_programs: false,
            progress: &|_, _| {},
        }
    }
}

/// Above so many pages programs per page are not counted: the map of them could not be shown anyway.
pub const PROGRAM_COUNT_PAGES: u32 = 16 << 20;

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions {
    /// Runs at the same time; `None` for one per core.
    pub jobs: Option<usize>,
    /// Leave out layers that cannot run on the device at all, with a note in every result, instead of
    /// refusing the comparison.
    pub skip_unsuited: bool,
}

/// Replays one workload, a trace, a generator or a job file, on one configuration.
pub fn replay(config: &StackConfig, workload: &str, options: &RunOptions<'_>) -> Result<Run, RunError> {
    if is_job_file(config, workload) {
        return run_job_file(config, workload, options);
    }
    let build_options = build_options(config, options);
    let mut subsystem = build(config, build_options)?;
    let info = &subsystem.namespaces()[0];
    let target = Target { capacity_bytes: info.capacity_bytes, page_bytes: u64::from(info.page_bytes) };
    let open_options = open_options(config);
    let mut reader = if config.host.is_plain() {
        HostReader::Plain(nandscape_trace::open(workload, &open_options, target)?)
    } else {
        let source = Workload::new(workload, &open_options, target)?;
        config.host.wrap(config.policy_setup(target.capacity_bytes), &mut || source.open())?
    };
    replay_on(&mut *subsystem, config, workload, &mut reader, &config.label(), options)
}

/// Replays every workload on every configuration. Runs come in the order workload by workload.
///
/// All layers get the same requests: generators see the smallest capacity, and a trace that reaches past it
/// is refused by name.
pub fn compare(
    configs: &[StackConfig],
    workloads: &[String],
    compare: CompareOptions,
    options: &RunOptions<'_>,
) -> Result<Vec<Run>, RunError> {
    if workloads.iter().filter(|workload| *workload == "-").count() > 1 {
        return Err(RunError::StdinTwice);
    }
    let job_files =
        workloads.iter().filter(|workload| configs.iter().any(|c| is_job_file(c, workload))).count();
    if job_files == workloads.len() {
        return compare_job_files(configs, workloads, compare, options);
    }
    if job_files > 0 {
        return Err(RunError::Jobs(
            "job files and traces in one comparison: expected either (compare them one after the other)"
                .to_owned(),
        ));
    }
    let mut capacities = Vec::new();
    let mut suited = Vec::new();
    let mut left_out = Vec::new();
    for config in configs {
        // Only the capacity is wanted; maps of large devices are given back at once.
        match build(config, BuildOptions::default()) {
            Ok(subsystem) => {
                let info = &subsystem.namespaces()[0];
                capacities.push((config.label(), info.capacity_bytes, info.page_bytes));
                suited.push(config);
            }
            Err(error @ ConfigError::Unsuited(_)) if compare.skip_unsuited => left_out.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    if suited.is_empty()
        && let Some(error) = left_out.pop()
    {
        return Err(error.into());
    }
    let smallest = capacities.iter().min_by_key(|(_, bytes, _)| *bytes);
    let Some(&(ref ftl, capacity_bytes, page_bytes)) = smallest else { return Ok(Vec::new()) };
    let target = Target { capacity_bytes, page_bytes: u64::from(page_bytes) };
    let mut points = Vec::new();
    for workload in workloads {
        // Every configuration reads the workload alike: the reading keys are not part of a translation layer.
        let source = Workload::new(workload, &open_options(&configs[0]), target)?;
        let end = source.span_bytes()?;
        if end > capacity_bytes {
            return Err(RunError::TooLarge {
                workload: workload.clone(),
                end,
                end_text: units::format_bytes(end),
                ftl: ftl.clone(),
                capacity: capacity_bytes,
                capacity_text: units::format_bytes(capacity_bytes),
            });
        }
        for config in suited.iter().copied() {
            let label = if workloads.len() == 1 {
                config.label()
            } else {
                format!("{} | {workload}", config.label())
            };
            points.push((config, workload, source.clone(), label));
        }
    }
    let mut runs: Vec<Run> = pool(compare.jobs)?.install(|| {
        points
            .par_iter()
            .map(|(config, workload, source, label)| {
                let mut subsystem = build(config, build_options(config, options))?;
                let mut reader =
                    config.host.wrap(config.policy_setup(capacity_bytes), &mut || source.open())?;
                replay_on(&mut *subsystem, config, workload, &mut reader, label, options)
            })
            .collect::<Result<_, RunError>>()
    })?;
    for run in &mut runs {
        run.result.notes.extend(left_out.iter().map(|error| format!("left out: {error}")));
    }
    Ok(runs)
}

/// Threads for so many runs at a time; `None` for one per core.
pub fn pool(jobs: Option<usize>) -> Result<rayon::ThreadPool, RunError> {
    let jobs = jobs.unwrap_or(0);
    rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| RunError::Threads { jobs, message: e.to_string() })
}

/// What only the configuration knows of a result.
pub(crate) fn finish(config: &StackConfig, result: &mut RunResult) {
    if let (Some(cache), Some(result)) = (&config.cache, &mut result.cache) {
        cache.describe(result);
    }
    if result.cache.is_none() || !result.flash.by_cause.is_empty() {
        let page_bytes = config.geometry.page_bytes;
        result.lifetime = LifetimeResult::estimate(result, config.nand.endurance, page_bytes);
    }
}

fn build_options(config: &StackConfig, options: &RunOptions<'_>) -> BuildOptions {
    BuildOptions { count_programs: options.count_programs && config.geometry.pages() <= PROGRAM_COUNT_PAGES }
}

/// How the configuration reads its workload.
pub fn open_options(config: &StackConfig) -> OpenOptions {
    let keys = &config.workload;
    OpenOptions {
        format: keys.get("format").map(str::to_owned),
        columns: keys.get("columns").map(str::to_owned),
        volumes: keys
            .get("volumes")
            .map(|list| list.split(';').map(|v| v.trim().to_owned()).collect())
            .unwrap_or_default(),
        remap_dense: keys.text("remap") == "dense",
        repeat: keys.int("repeat"),
        time_scale: keys.float("time_scale"),
        limit: keys.get("limit").map(|_| keys.count("limit")),
        seed: config.seed,
        ..OpenOptions::default()
    }
}

fn replay_on(
    subsystem: &mut dyn Subsystem,
    config: &StackConfig,
    workload: &str,
    reader: &mut HostReader,
    label: &str,
    options: &RunOptions<'_>,
) -> Result<Run, RunError> {
    let replay_options = ReplayOptions {
        pacing: config.pacing(reader.info().has_real_times),
        precondition: &config.precondition,
        seed: config.seed,
        with_series: options.with_series,
        with_detail: options.with_detail,
        stop: options.stop,
    };
    let mut started = Instant::now();
    let outcome = nandscape_sim::replay(
        subsystem,
        reader,
        workload,
        &replay_options,
        &mut || started = Instant::now(),
        &mut |progress| (options.progress)(label, progress),
    )
    .map_err(|error| match error {
        ReplayError::Trace(error) => RunError::Trace(error),
        error => RunError::Replay { label: label.to_owned(), error },
    })?;
    let wall_s = started.elapsed().as_secs_f64();
    let mut result = outcome.result;
    env!("CARGO_PKG_VERSION").clone_into(&mut result.run.version);
    result.run.config_hash = config.hash();
    result.run.config = config.to_json();
    result.set_wall(wall_s);
    if let Some((policy, notes)) = reader.outcome() {
        result.policy = Some(policy);
        result.notes.extend(notes);
    }
    finish(config, &mut result);
    if options.count_programs && config.geometry.pages() > PROGRAM_COUNT_PAGES {
        result.notes.push(format!(
            "programs per page were not counted: the device has more than {PROGRAM_COUNT_PAGES} pages"
        ));
    }
    Ok(Run { label: label.to_owned(), result, series: outcome.series, jobs: None })
}
