//! fio job files as workloads of `replay` and `compare`.

use crate::build::build_subsystem;
use crate::config::labels::labels;
use crate::config::{self, ConfigError, Result, StackConfig};
use crate::error::RunError;
use crate::logs::JobLogs;
use crate::options::{CompareOptions, RunOptions, finish, pool};
use crate::recordings::{HostOutcome, HostRecordings};
use crate::seeds::{joined, seeded};
use crate::state::{RunState, check_alone};
use nandscape_jobs::JobFile;
use nandscape_report::Run;
use nandscape_sim::jobs::row_of;
use nandscape_sim::{JobOptions, RequestLog, run_jobs};
use rayon::prelude::*;
use std::path::Path;
use std::time::Instant;

/// Name of the format, for `--format` where the file is not called `*.fio`.
pub const FORMAT: &str = "fio-job";

/// Whether a workload is a job file: by its name, or by `workload.format`.
pub fn is_job_file(config: &StackConfig, workload: &str) -> bool {
    match config.workload.get(config::FORMAT) {
        Some(format) => format == FORMAT,
        None => Path::new(workload).extension().is_some_and(|e| e.eq_ignore_ascii_case("fio")),
    }
}

/// Reads a job file, and runs it on the namespaces of a configuration. Writes the logs that its jobs ask for.
pub fn run_job_file(config: &StackConfig, path: &str, options: &RunOptions<'_>) -> Result<Run, RunError> {
    let file = JobFile::read(path)?;
    refuse_reading_keys(config, &file)?;
    let logs = JobLogs::create(&file)?;
    let run = run(config, &file, path, options, logs.as_ref().map(|logs| logs as &dyn RequestLog))?;
    logs.map_or(Ok(()), JobLogs::finish)?;
    Ok(run)
}

/// Runs jobs that were read already; `spec` names the workload in the result. Writes no logs.
pub fn run_parsed(
    config: &StackConfig,
    file: &JobFile,
    spec: &str,
    options: &RunOptions<'_>,
) -> Result<Run, RunError> {
    run(config, file, spec, options, None)
}

fn run(
    config: &StackConfig,
    file: &JobFile,
    spec: &str,
    options: &RunOptions<'_>,
    log: Option<&dyn RequestLog>,
) -> Result<Run, RunError> {
    if config.stores_objects() {
        return Err(RunError::Jobs(format!(
            "a job file on stack.kind = {}: jobs address bytes of a device, and a store of files has none; expected a \
             recording of file operations",
            config.stack.info.name
        )));
    }
    let state = RunState::new(config, options.state)?;
    let config = &*state.config;
    let mut subsystem = build_subsystem(config)?;
    state.check_can_save(&mut *subsystem)?;
    let label = config.label();
    let archiver = state.archiver();
    let recordings = HostRecordings::new(config);
    let job_options = JobOptions {
        precondition: &config.precondition,
        snapshot: state.snapshot(&archiver),
        seed: config.seed,
        with_series: options.with_series,
        interval_ns: options.interval_ns,
        with_detail: options.with_detail,
        stop: options.stop,
        log,
        recordings: Some(&recordings),
    };
    let mut started = Instant::now();
    let outcome = run_jobs(
        &mut *subsystem,
        file,
        spec,
        &job_options,
        &mut || started = Instant::now(),
        &mut |progress| (options.progress)(&label, progress),
    )?;
    let wall_s = started.elapsed().as_secs_f64();
    let mut result = outcome.result;
    let row_of = row_of(&file.jobs);
    for HostOutcome { job, policy, notes } in recordings.into_outcomes() {
        result.notes.extend(notes);
        match &mut result.jobs[row_of[job as usize] as usize].policy {
            Some(sum) => sum.add(&policy),
            none => *none = Some(policy),
        }
    }
    // Presets set a depth for traces, so it cannot be refused.
    if let Some(depth) = config.depth {
        result.notes.push(format!("workload.depth = {depth} is for traces: each job has its own iodepth"));
    }
    finish(config, wall_s, &mut result);
    state.tell(&mut result);
    Ok(Run { label, result, series: None, jobs: outcome.series })
}

/// Runs every job file on every configuration. Runs come in the order job file by job file.
///
/// Shares of a namespace (`size=10%`) are of what each layer offers, which differs with its
/// over-provisioning.
pub(crate) fn compare_job_files(
    configs: &[StackConfig],
    workloads: &[String],
    compare: CompareOptions<'_>,
    options: &RunOptions<'_>,
) -> Result<Vec<Run>, RunError> {
    let mut files = Vec::new();
    for path in workloads {
        files.push((path, JobFile::read(path)?));
    }
    let own;
    let names = labels(&configs.iter().collect::<Vec<_>>());
    let configs = if compare.seeds.is_empty() {
        configs
    } else {
        own = seeded(&configs.iter().collect::<Vec<_>>(), compare.seeds)?;
        &own[..]
    };
    check_alone(configs, options.state)?;
    // Runs of several seeds come one after the other, and have one name.
    let reads = compare.seeds.len().max(1);
    let name_of = names.iter().flat_map(|name| std::iter::repeat_n(name, reads));
    let points: Vec<(&StackConfig, &String, &String, &JobFile)> = files
        .iter()
        .flat_map(|(path, file)| {
            configs.iter().zip(name_of.clone()).map(move |(config, label)| (config, label, *path, file))
        })
        .collect();
    let run = |(config, label, path, file): &(&StackConfig, &String, &String, &JobFile)| {
        refuse_reading_keys(config, file)?;
        let run = run_parsed(config, file, path, options)?;
        let label = if workloads.len() > 1 { format!("{label} | {path}") } else { (*label).clone() };
        Ok(Run { label, ..run })
    };
    let outcomes: Vec<Result<Run, RunError>> =
        pool(compare.jobs)?.install(|| points.par_iter().map(run).collect());
    let mut runs = Vec::new();
    let mut left_out = Vec::new();
    for outcome in outcomes {
        match outcome {
            Err(RunError::Config(error @ ConfigError::Unsuited(_))) if compare.skip_unsuited => {
                left_out.push(error);
            }
            outcome => runs.push(outcome?),
        }
    }
    if runs.is_empty()
        && let Some(error) = left_out.pop()
    {
        return Err(error.into());
    }
    let mut runs = joined(runs, reads);
    let mut notes: Vec<String> = left_out.iter().map(|error| format!("left out: {error}")).collect();
    notes.dedup();
    for run in &mut runs {
        run.result.notes.extend(notes.iter().cloned());
    }
    Ok(runs)
}

/// Keys that say how a trace is read mean nothing for a job file without recordings, and whoever sets one
/// expects something of it.
fn refuse_reading_keys(config: &StackConfig, file: &JobFile) -> Result<()> {
    let has_recordings = file.jobs.iter().any(|job| job.recording_file().is_some());
    // The policy that a stack brings along is for other loads.
    let preset = config.stack.preset_table();
    let of_stack = preset.get("host").and_then(|host| host.get("policy")).and_then(toml::Value::as_str);
    let is_of_stack = of_stack == Some(config.host.policy());
    if !config.host.is_plain() && !is_of_stack && !has_recordings {
        return Err(ConfigError::Unsuited(format!(
            "host.policy = {} chooses streams for traces and generators: jobs of a job file without read_iolog name their \
             own, and are not merged",
            config.host.policy()
        )));
    }
    let keys = &config.workload;
    // For recordings these say what they say for a trace.
    let of_recordings = [
        ("columns", keys.get(config::COLUMNS).is_some(), ""),
        ("volumes", keys.get(config::VOLUMES).is_some(), "filename"),
        ("remap", keys.get(config::REMAP) != "none", "offset and size"),
    ];
    let of_traces = [
        ("repeat", keys.get(config::REPEAT) != 1, "loops"),
        (
            "time_scale",
            (keys.get(config::TIME_SCALE) - 1.0).abs() > 0.0,
            if has_recordings { "replay_time_scale" } else { "thinktime and rate" },
        ),
        ("until", keys.get(config::UNTIL).is_some(), "ramp_time"),
        ("limit", keys.get(config::LIMIT).is_some(), "number_ios"),
    ];
    let of_recordings = of_recordings.into_iter().filter(|_| !has_recordings);
    match of_recordings.chain(of_traces).find(|(_, is_set, _)| *is_set) {
        None => Ok(()),
        Some((key, _, "")) => {
            Err(ConfigError::Unsuited(format!("workload.{key} belongs to traces: a job file has no columns")))
        }
        Some((key, _, option)) => Err(ConfigError::Unsuited(format!(
            "workload.{key} belongs to traces: expected {option} in the job file instead"
        ))),
    }
}
