//! Replays: one configuration, or several compared.

use crate::build::{BuildOptions, build};
use crate::config::labels::labels;
use crate::config::{self, ConfigError, StackConfig};
use crate::error::RunError;
use crate::host::HostReader;
use crate::jobs::{compare_job_files, is_job_file, run_job_file};
use crate::options::{CompareOptions, PROGRAM_COUNT_PAGES, RunOptions, finish, open_options, pool, target};
use crate::seeds::{joined, seeded, with_spread};
use crate::state::{RunState, check_alone};
use crate::trust;
use nandscape_core::{Subsystem, TraceError, TraceReader, units};
use nandscape_report::Run;
use nandscape_sim::{ReplayError, ReplayOptions, UntilSteady};
use nandscape_trace::{OpenOptions, Target, Workload};
use rayon::prelude::*;
use std::time::Instant;

/// Replays one workload, a trace, a generator or a job file, on one configuration.
pub fn replay(config: &StackConfig, workload: &str, options: &RunOptions<'_>) -> Result<Run, RunError> {
    if is_job_file(config, workload) {
        return run_job_file(config, workload, options);
    }
    let build_options = build_options(config, options);
    let mut subsystem = build(config, build_options)?;
    let info = &subsystem.namespaces()[0];
    let target = target(config, info.capacity_bytes, info.page_bytes);
    let open_options = open_options(config);
    if config.host.is_plain() && !is_repeated(config) {
        // Once: standard input need not be kept.
        let mut reader = HostReader::Plain(nandscape_trace::open(workload, &open_options, target)?);
        return replay_on(&mut *subsystem, config, workload, (&mut reader, None), &config.label(), options);
    }
    let source = Workload::new(workload, &open_options, target)?;
    let open = |n| config.host.wrap(config.policy_setup(target.capacity_bytes), &mut || source.open_again(n));
    replay_on(&mut *subsystem, config, workload, (&mut open(0)?, Some(&open)), &config.label(), options)
}

/// Replays a workload on one configuration with each of these seeds, several at a time. The run that it gives
/// is the one with the median write amplification, and has the spread of all.
///
/// # Errors
///
/// As [`replay`], and standard input with several seeds.
pub fn replay_seeds(
    config: &StackConfig,
    workload: &str,
    seeds: &[u64],
    options: &RunOptions<'_>,
) -> Result<Run, RunError> {
    if workload == "-" && seeds.len() > 1 {
        return Err(RunError::StdinTwice);
    }
    let name = |seed: &u64| format!("seed {seed}");
    for seed in seeds {
        options.tell(&name(seed), 0, None);
    }
    let one = |seed: &u64| -> Result<Run, RunError> {
        let name = name(seed);
        let progress = |_: &str, progress| (options.progress)(&name, progress);
        let own = RunOptions { progress: &progress, ..*options };
        let run = replay(&config.with_seed(*seed)?, workload, &own)?;
        let requests = run.result.workload.requests.max(1);
        options.tell(&name, requests, Some(requests));
        Ok(run)
    };
    let own: Vec<StackConfig> = seeds.iter().map(|seed| config.with_seed(*seed)).collect::<Result<_, _>>()?;
    check_alone(&own, options.state)?;
    let runs = pool(None)?.install(|| seeds.par_iter().map(one).collect::<Result<Vec<_>, _>>())?;
    Ok(with_spread(runs))
}

/// Whether the workload is read several times: it brings about a steady state before it is counted.
fn is_repeated(config: &StackConfig) -> bool {
    config.workload.get(config::UNTIL).is_some()
}

/// Opens a workload for the nth repetition; 0 is the counted one.
type Open<'a> = dyn Fn(u32) -> Result<HostReader, RunError> + 'a;

/// Replays every workload on every configuration. Runs come in the order workload by workload; those that
/// differ only in their seed are one.
///
/// All layers get the same requests: generators see the smallest capacity, and a trace that reaches past it
/// is refused by name. File systems of a model have all of their own device. Of a recording of file
/// operations, block devices get the requests of a file system, and stores of objects those of its page
/// cache.
pub fn compare(
    configs: &[StackConfig],
    workloads: &[String],
    compare: CompareOptions<'_>,
    options: &RunOptions<'_>,
) -> Result<Vec<Run>, RunError> {
    let reads = compare.seeds.len().max(1);
    if workloads.iter().filter(|workload| *workload == "-").count() * reads > 1 {
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
    let Some(&(_, capacity_bytes, page_bytes)) = smallest else { return Ok(Vec::new()) };
    // A store of files has no addresses, and says itself when it is full.
    let has_addresses = |(_, config): &(_, &&StackConfig)| !config.stores_objects();
    let of_blocks = capacities.iter().zip(&suited).filter(has_addresses).map(|(capacity, _)| capacity);
    let of_blocks = of_blocks.min_by_key(|(_, bytes, _)| *bytes);
    let target = Target { capacity_bytes, page_bytes: u64::from(page_bytes), ..Target::NONE };
    let own_seed = [configs[0].seed];
    let (seeds, seeded) = if compare.seeds.is_empty() {
        (&own_seed[..], suited.iter().copied().cloned().collect())
    } else {
        (compare.seeds, seeded(&suited, compare.seeds)?)
    };
    check_alone(&seeded, options.state)?;
    let mut points = Vec::new();
    for workload in workloads {
        // Every configuration reads the workload alike: the reading keys are not part of a translation layer.
        let sources = sources(&configs[0], workload, seeds, target)?;
        let end = sources.iter().map(|source| source.end).max().expect("there is a seed");
        if let Some((ftl, capacity, _)) = of_blocks.filter(|(_, capacity, _)| end > *capacity) {
            return Err(RunError::TooLarge {
                workload: workload.clone(),
                end,
                end_text: units::format_bytes(end),
                ftl: ftl.clone(),
                capacity: *capacity,
                capacity_text: units::format_bytes(*capacity),
            });
        }
        let own = capacities.iter().map(|(_, bytes, _)| *bytes);
        for ((configs, label), volume_bytes) in seeded.chunks(seeds.len()).zip(labels(&suited)).zip(own) {
            let label = if workloads.len() == 1 { label } else { format!("{label} | {workload}") };
            for (config, source) in configs.iter().zip(sources.iter().cycle()) {
                let requests = source.requests;
                let source =
                    source.workload.with_target(Target { files: config.files(), volume_bytes, ..target });
                // Runs that differ in their seed have one label, and each its progress.
                let name =
                    if seeds.len() > 1 { format!("{label}, seed {}", config.seed) } else { label.clone() };
                points.push((config, workload, source, label.clone(), name, requests));
            }
        }
    }
    // All runs are known before the first one begins.
    for (.., name, requests) in &points {
        options.tell(name, 0, *requests);
    }
    let runs: Vec<Run> = pool(compare.jobs)?.install(|| {
        points
            .par_iter()
            .map(|(config, workload, source, label, name, _)| {
                let mut subsystem = build(config, build_options(config, options))?;
                let setup = config.policy_setup(capacity_bytes);
                let open = |n| config.host.wrap(setup, &mut || source.open_again(n));
                let reader = (&mut open(0)?, Some(&open as &Open<'_>));
                let run = replay_on(&mut *subsystem, config, workload, reader, name, options)?;
                let requests = run.result.workload.requests.max(1);
                options.tell(name, requests, Some(requests));
                Ok(Run { label: label.clone(), ..run })
            })
            .collect::<Result<_, RunError>>()
    })?;
    let mut runs = joined(runs, seeds.len());
    trust::tell_alike(&mut runs);
    trust::tell_limit(&suited, &mut runs);
    for run in &mut runs {
        run.result.notes.extend(left_out.iter().map(|error| format!("left out: {error}")));
    }
    Ok(runs)
}

/// A workload as a seed reads it.
struct Source {
    workload: Workload,
    /// The largest end of any request, in bytes.
    end: u64,
    /// Requests, if they were counted.
    requests: Option<u64>,
}

/// A workload for each of these seeds. A trace is the same whatever the seed, and there once.
fn sources(
    config: &StackConfig,
    workload: &str,
    seeds: &[u64],
    target: Target,
) -> Result<Vec<Source>, RunError> {
    let mut all = Vec::new();
    for seed in seeds {
        let options = OpenOptions { seed: *seed, ..open_options(config) };
        let workload = Workload::new(workload, &options, target)?;
        let (end, requests) = workload.span()?;
        let depends_on_seed = workload.is_generated();
        all.push(Source { workload, end, requests });
        if !depends_on_seed {
            break;
        }
    }
    Ok(all)
}

fn build_options(config: &StackConfig, options: &RunOptions<'_>) -> BuildOptions {
    BuildOptions {
        count_programs: options.count_programs && config.seen_geometry().pages() <= PROGRAM_COUNT_PAGES,
    }
}

fn replay_on(
    subsystem: &mut dyn Subsystem,
    config: &StackConfig,
    workload: &str,
    (reader, open): (&mut HostReader, Option<&Open<'_>>),
    label: &str,
    options: &RunOptions<'_>,
) -> Result<Run, RunError> {
    let again = |repetition| -> Result<Box<dyn TraceReader>, TraceError> {
        let open = open.expect("what is repeated can be opened again");
        match open(repetition) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(RunError::Trace(error)) => Err(error),
            Err(error) => Err(TraceError::Spec { spec: workload.to_owned(), message: error.to_string() }),
        }
    };
    let state = RunState::new(config, options.state)?;
    let config = &*state.config;
    state.check_can_save(subsystem)?;
    let archiver = state.archiver();
    let replay_options = ReplayOptions {
        pacing: config.pacing(reader.info().has_real_times),
        precondition: &config.precondition,
        snapshot: state.snapshot(&archiver),
        until_steady: is_repeated(config).then_some(UntilSteady(&again)),
        seed: config.seed,
        with_series: options.with_series,
        marks: options.marks,
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
    if let Some((policy, notes)) = reader.outcome() {
        result.between.policy = Some(policy);
        result.notes.extend(notes);
    }
    finish(config, wall_s, &mut result);
    state.tell(&mut result);
    if result.error.is_some() && subsystem.namespaces()[0].zones.is_some() {
        result.notes.push(
            "raw zones are written in order, at their write pointers; --stack zone-map takes any load"
                .to_owned(),
        );
    }
    // Other errors say enough: it is full, or the power was cut.
    let is_other_load =
        |message: &str| ["by this namespace", "no addresses"].iter().any(|end| message.contains(end));
    let is_unknown = result.error.as_ref().is_some_and(|error| is_other_load(&error.message));
    if is_unknown && subsystem.namespaces()[0].objects {
        result.notes.push(
            "a store of files takes recordings of file operations (ops) and operations on objects (csv); --stack zone-map \
             takes any load"
                .to_owned(),
        );
    }
    if options.count_programs && config.seen_geometry().pages() > PROGRAM_COUNT_PAGES {
        result.notes.push(format!(
            "programs per page were not counted: the device has more than {PROGRAM_COUNT_PAGES} pages"
        ));
    }
    Ok(Run { label: label.to_owned(), result, series: outcome.series, jobs: None })
}
