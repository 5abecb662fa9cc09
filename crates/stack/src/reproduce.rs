//! Published experiments, repeated: published, measured, ratio. One file per source, one line per experiment in
//! [`REPRODUCTIONS`].

use crate::run::RunError;
use nandscape_core::Info;
use nandscape_report::ReproductionRow;
use std::sync::atomic::AtomicBool;

/// A published experiment.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// Id, what it is, source row.
    pub info: Info,
    /// Runs it.
    pub run: fn(&Context<'_>) -> Result<Vec<ReproductionRow>, RunError>,
}

/// What a reproduction may use.
#[derive(Debug)]
pub struct Context<'a> {
    /// Seed of the generators.
    pub seed: u64,
    /// Set from outside to stop early; a stopped reproduction gives [`RunError::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
}

/// Every experiment.
pub static REPRODUCTIONS: &[Reproduction] = &[];

/// A comparison of two numbers.
pub(crate) fn number(
    id: &str,
    row: &str,
    name: impl Into<String>,
    unit: &str,
    published: f64,
    measured: f64,
    note: &str,
) -> ReproductionRow {
    ReproductionRow {
        id: id.to_owned(),
        row: row.to_owned(),
        name: name.into(),
        unit: unit.to_owned(),
        published: published.into(),
        measured: measured.into(),
        ratio: (published != 0.0).then(|| measured / published),
        note: note.to_owned(),
    }
}

/// A published statement (a range, an ordering) and whether it holds.
pub(crate) fn statement(
    id: &str,
    row: &str,
    name: impl Into<String>,
    published: &str,
    holds: bool,
    note: &str,
) -> ReproductionRow {
    ReproductionRow {
        id: id.to_owned(),
        row: row.to_owned(),
        name: name.into(),
        unit: String::new(),
        published: published.into(),
        measured: holds.into(),
        ratio: None,
        note: note.to_owned(),
    }
}
