//! Published experiments, repeated: published, measured, ratio. One file per source, one line per experiment
//! in [`REPRODUCTIONS`].

pub mod cache_article;
pub mod cache_cleaning;
pub mod nvm_sets;
pub mod pm963;
mod policies;
mod streams;
mod thesis;

use nandscape_core::Info;
use nandscape_report::ReproductionRow;
use nandscape_stack::RunError;
use std::sync::atomic::{AtomicBool, Ordering};

/// A published experiment.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// Id, what it is, tags of its sources.
    pub info: Info,
    /// Runs it.
    pub run: fn(&Context<'_>) -> Result<Vec<ReproductionRow>, RunError>,
}

/// What a reproduction may use, and the runs that experiments share: one context for several of them runs
/// each replay once.
#[derive(Debug)]
pub struct Context<'a> {
    /// Seed of the generators.
    pub seed: u64,
    /// Set from outside to stop early; a stopped reproduction gives [`RunError::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
    /// Experiments that have a smaller scale run at that one.
    pub is_quick: bool,
    thesis: thesis::Cache,
}

impl<'a> Context<'a> {
    /// A context without any run yet.
    pub fn new(seed: u64, stop: Option<&'a AtomicBool>) -> Self {
        Self { seed, stop, is_quick: false, thesis: thesis::Cache::default() }
    }

    /// One of the two scales of an experiment.
    fn scale<S>(&self, full: S, small: S) -> S {
        if self.is_quick { small } else { full }
    }

    /// Refuses to go on once somebody asked to stop.
    pub(crate) fn check_stop(&self) -> Result<(), RunError> {
        let is_stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if is_stopped { Err(RunError::Interrupted) } else { Ok(()) }
    }
}

/// Every experiment.
pub static REPRODUCTIONS: &[Reproduction] = &[
    thesis::FIG_2_2,
    thesis::FIG_2_3,
    thesis::FIG_2_4,
    thesis::FIG_2_5,
    thesis::FIG_2_6,
    thesis::FIG_2_7,
    thesis::TABLE_4_2,
    thesis::MAP_TRAFFIC,
    thesis::TABLE_SIZES,
    thesis::FIG_4_1,
    thesis::FIG_4_2,
    thesis::FIG_4_3,
    thesis::FIG_4_4,
    thesis::FIG_4_5,
    thesis::FIG_4_6,
    thesis::FIG_4_7,
    thesis::FIG_4_8,
    thesis::FIG_4_9,
    thesis::FIG_4_10,
    thesis::FIG_4_11,
    thesis::CONCLUSION,
    thesis::PARALLEL,
    policies::POLICIES,
    policies::CAPTURED,
    streams::EXAMPLE,
    streams::RULES,
    pm963::PM963,
    nvm_sets::NVM_SETS,
    cache_article::CACHE_ARTICLE,
    cache_cleaning::CACHE_CLEANING,
];

/// A comparison of two numbers.
pub(crate) fn number(
    id: &str,
    source: &str,
    name: impl Into<String>,
    unit: &str,
    published: f64,
    measured: f64,
    note: &str,
) -> ReproductionRow {
    ReproductionRow {
        id: id.to_owned(),
        source: source.to_owned(),
        name: name.into(),
        unit: unit.to_owned(),
        published: published.into(),
        measured: measured.into(),
        ratio: (published != 0.0).then(|| measured / published),
        note: note.to_owned(),
        series: None,
    }
}

/// A published statement (a range, an ordering) and whether it holds.
pub(crate) fn statement(
    id: &str,
    source: &str,
    name: impl Into<String>,
    published: &str,
    holds: bool,
    note: &str,
) -> ReproductionRow {
    ReproductionRow {
        id: id.to_owned(),
        source: source.to_owned(),
        name: name.into(),
        unit: String::new(),
        published: published.into(),
        measured: holds.into(),
        ratio: None,
        note: note.to_owned(),
        series: None,
    }
}
