//! Result documents for people and programs.

use nandscape_sim::RunResult;
use nandscape_sim::metrics::Series;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One run to report on.
#[derive(Clone, Debug)]
pub struct Run {
    /// What tells the run from the others of the same report, usually the name of its translation layer.
    pub label: String,
    /// The result document.
    pub result: RunResult,
    /// The series over time, if it was collected.
    pub series: Option<Series>,
}

/// One published figure and what was measured for it; the names are those of `reproduce --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReproductionRow {
    /// Which experiment, such as `thesis-table-4.2`.
    pub id: String,
    /// Row of the requirements table the figure stands in; may be empty.
    pub row: String,
    /// What is measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// A number; or text (a range, an ordering) where the source has only words.
    pub published: Value,
    /// A number; or whether the range or ordering holds.
    pub measured: Value,
    /// Measured over published; null where published is 0 or not a number.
    pub ratio: Option<f64>,
    /// Required where the ratio is outside 0.8 to 1.25.
    pub note: String,
}
