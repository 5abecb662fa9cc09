//! How workloads are run, and what every result has.

use crate::config::{self, StackConfig};
use crate::error::RunError;
use crate::state::StateUse;
use crate::trust::{tell_few_blocks, tell_worn};
use nandscape_core::{SimTime, units};
use nandscape_ftl::page_map;
use nandscape_sim::{LifetimeResult, Progress, RunResult};
use nandscape_trace::{OpenOptions, Target};
use std::sync::atomic::AtomicBool;

/// What to keep of a run, and how to follow it. Nothing here changes what is counted.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Set from outside to stop early with a partial result.
    pub stop: Option<&'a AtomicBool>,
    /// Collect the series.
    pub with_series: bool,
    /// Time stamps of a trace or generator at which the series is to have points of their own.
    pub marks: &'a [SimTime],
    /// Interval of the series of a job file; `None` for one that grows with the run.
    pub interval_ns: Option<u64>,
    /// Erase count of every block in the result.
    pub with_detail: bool,
    /// Count programs per page where the device is small enough (16 Mi pages).
    pub count_programs: bool,
    /// What becomes of the state after the preconditioning.
    pub state: Option<StateUse<'a>>,
    /// Called now and then with the label of the run.
    pub progress: &'a (dyn Fn(&str, Progress) + Sync),
}

impl RunOptions<'_> {
    /// Tells how many requests of a run are done, and of how many.
    pub(crate) fn tell(&self, run: &str, requests: u64, expected: Option<u64>) {
        (self.progress)(run, Progress { preconditioning: false, requests, expected });
    }
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        Self {
            stop: None,
            with_series: false,
            marks: &[],
            interval_ns: None,
            with_detail: false,
            count_programs: false,
            state: None,
            progress: &|_, _| {},
        }
    }
}

/// Above so many pages programs per page are not counted: the map of them could not be shown anyway.
pub const PROGRAM_COUNT_PAGES: u32 = 16 << 20;

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions<'a> {
    /// Runs at the same time; `None` for one per core.
    pub jobs: Option<usize>,
    /// Seeds that every configuration runs with, as one run; none for the seeds of the configurations.
    pub seeds: &'a [u64],
    /// Leave out layers that cannot run on the device at all, with a note in every result, instead of
    /// refusing the comparison.
    pub skip_unsuited: bool,
}

/// Threads for so many runs at a time; `None` for one per core.
pub fn pool(jobs: Option<usize>) -> Result<rayon::ThreadPool, RunError> {
    let jobs = jobs.unwrap_or(0);
    rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| RunError::Threads { jobs, message: e.to_string() })
}

/// What only the configuration and the clock know of a result.
pub(crate) fn finish(config: &StackConfig, wall_s: f64, result: &mut RunResult) {
    env!("CARGO_PKG_VERSION").clone_into(&mut result.run.version);
    result.run.config_hash = config.hash();
    result.run.config = config.to_json();
    result.set_wall(wall_s);
    if let (Some(cache), Some(result)) = (&config.cache, &mut result.cache) {
        cache.describe(result);
    }
    result.notes.extend(partial_units(config, result));
    if result.cache.is_none() || !result.flash.by_cause.is_empty() {
        let page_bytes = config.seen_geometry().page_bytes;
        let age = config.partition.mean_age();
        result.lifetime = LifetimeResult::estimate(result, config.nand.endurance, age, page_bytes);
        tell_worn(config, result);
        tell_few_blocks(config, result);
    }
}

/// Writes that cover parts of mapping units cost whole ones; says so where they are most of a load.
fn partial_units(config: &StackConfig, result: &RunResult) -> Option<String> {
    let host = &result.host;
    let unit = u64::from(config.seen_geometry().page_bytes);
    let covered = host.write_pages.saturating_mul(unit);
    if config.ftl != page_map::INFO.name || host.writes == 0 || covered < 2 * host.write_bytes {
        return None;
    }
    Some(format!(
        "writes of {} on average rewrite mapping units of {}: {:.1} bytes are programmed for each byte even before collection; \
         ftl.unit sets a smaller unit",
        units::format_bytes(host.write_bytes / host.writes),
        units::format_bytes(unit),
        covered as f64 / host.write_bytes as f64
    ))
}

/// How a workload is read by the `[workload]` keys of a configuration.
pub fn open_options(config: &StackConfig) -> OpenOptions {
    let keys = &config.workload;
    OpenOptions {
        format: keys.get(config::FORMAT).map(str::to_owned),
        columns: keys.get(config::COLUMNS).map(str::to_owned),
        volumes: keys
            .get(config::VOLUMES)
            .map(|list| list.split(';').map(|v| v.trim().to_owned()).collect())
            .unwrap_or_default(),
        remap_dense: keys.get(config::REMAP) == "dense",
        repeat: keys.get(config::REPEAT),
        time_scale: keys.get(config::TIME_SCALE),
        limit: keys.get(config::LIMIT),
        seed: config.seed,
        ..OpenOptions::default()
    }
}

/// So many bytes that a workload has for itself.
pub fn target(config: &StackConfig, bytes: u64, page_bytes: u32) -> Target {
    Target {
        capacity_bytes: bytes,
        volume_bytes: bytes,
        page_bytes: u64::from(page_bytes),
        files: config.files(),
    }
}
