//! Runs what a sweep has not yet run.

use super::error::SweepError;
use super::folder::Folder;
use super::plan::{Plan, RunId};
use nandscape_report::render_json_document;
use nandscape_stack::{RunError, RunOptions, pool, replay};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A part of the points of a sweep: those whose number leaves the remainder `number` when divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// All points.
    pub const ALL: Self = Self { number: 0, of: 1 };

    const fn has(self, point: usize) -> bool {
        point % self.of == self.number
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, of)) if number < of => Ok(Self { number, of }),
            _ => Err("expected K/N with K from 0 to N-1, such as 0/4".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// How a sweep is run.
pub struct SweepOptions<'a> {
    /// Runs at the same time; `None` for one per core.
    pub jobs: Option<usize>,
    /// Which points.
    pub shard: Shard,
    /// Folders that results are taken from, where they have some.
    pub from: &'a [Folder],
    /// Set from outside to stop; runs under way then leave nothing.
    pub stop: &'a AtomicBool,
    /// Called after each run with how many are done, and how many there are.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// Runs every run of the shard that the folder has no complete result of. A run that fails leaves its error.
/// Only as many runs as there are jobs are in memory at a time.
///
/// Gives how many runs were stopped before they ended, or not begun.
///
/// # Errors
///
/// Results in the folder that are of other configurations, and results that cannot be written; runs that had
/// ended are then kept.
pub fn run(plan: &Plan, folder: &Folder, options: &SweepOptions<'_>) -> Result<usize, SweepError> {
    if options.shard == Shard::ALL {
        folder.tidy()?;
    }
    let wanted: Vec<RunId> = plan.runs().filter(|run| options.shard.has(run.point)).collect();
    let mut left = Vec::new();
    for run in &wanted {
        if let Some(document) = folder.complete(*run)? {
            refuse_other(plan, *run, &document)?;
        } else if !take(plan, folder, *run, options.from)? {
            left.push(*run);
        }
    }
    let done = AtomicUsize::new(wanted.len() - left.len());
    (options.progress)(done.load(Ordering::Relaxed), wanted.len());
    let stopped = AtomicUsize::new(0);
    let one = |run: &RunId| -> Result<(), SweepError> {
        if options.stop.load(Ordering::Relaxed) {
            stopped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let run_options = RunOptions { stop: Some(options.stop), ..RunOptions::default() };
        let config = plan.config(*run).map_err(RunError::from);
        match config.and_then(|config| replay(&config, plan.workload(run.point), &run_options)) {
            Ok(outcome) if outcome.result.partial => {
                stopped.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Ok(outcome) => folder.keep(*run, &render_json_document(&outcome.result))?,
            Err(error) => folder.keep_error(*run, &error.to_string())?,
        }
        (options.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, wanted.len());
        Ok(())
    };
    // One by one, so that the first points are done first.
    let next = AtomicUsize::new(0);
    let pool = pool(options.jobs)?;
    let outcomes = pool.broadcast(|_| -> Result<(), SweepError> {
        while let Some(run) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = one(run) {
                // Nothing more can be kept.
                next.store(left.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    });
    outcomes.into_iter().collect::<Result<(), _>>()?;
    Ok(stopped.into_inner())
}

/// Takes a result from another folder.
fn take(plan: &Plan, folder: &Folder, run: RunId, from: &[Folder]) -> Result<bool, SweepError> {
    for other in from {
        if let Some(document) = other.complete(run)? {
            refuse_other(plan, run, &document)?;
            folder.keep(run, &nandscape_report::pretty(&document))?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a result whose configuration is not that of the plan: a file or a preset has changed since.
fn refuse_other(plan: &Plan, run: RunId, document: &Value) -> Result<(), SweepError> {
    let config = plan.config(run).map_err(RunError::from)?;
    if document["config_hash"].as_str() == Some(&config.hash()) {
        return Ok(());
    }
    let message = format!(
        "point {}, seed {}: the result there has another configuration (config_hash {}): expected {}; a configuration file or \
         a preset has changed since; expected another folder",
        run.point,
        run.seed,
        document["config_hash"],
        config.hash()
    );
    Err(SweepError::Folder { folder: plan.path.clone(), message })
}
