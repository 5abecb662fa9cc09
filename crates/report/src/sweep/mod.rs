//! A sweep: the same workload at many points of a space of configurations, a row for each point and seed.

mod figure;
mod front;
pub(crate) mod text;

pub(crate) use figure::Figure;
pub use figure::USABLE_SHARE;
pub(crate) use front::{Front, Objective};
pub use text::render_sweep_text;

use crate::number::printable;
use nandscape_sim::result::Spread;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a sweep gave.
#[derive(Clone, Debug, Default)]
pub struct SweepTable {
    /// The workload, unless it is an axis.
    pub workload: String,
    /// Dotted keys that differ between the points.
    pub axes: Vec<String>,
    /// Dotted keys of the result document.
    pub metrics: Vec<String>,
    /// By point, then by seed, in the order of the plan.
    pub rows: Vec<SweepRow>,
    /// Runs that the plan has; more than rows where some are still to be done.
    pub planned: usize,
}

/// A point with a seed.
#[derive(Clone, Debug, Default)]
pub struct SweepRow {
    /// Number of the point, from 0.
    pub point: u32,
    /// Its value on each axis, as typed.
    pub values: Vec<String>,
    /// Seed of the run.
    pub seed: u64,
    /// One for each metric; `None` where the run has no such figure.
    pub metrics: Vec<Option<f64>>,
    /// Why the run failed.
    pub error: Option<String>,
    /// Hash of the requests that were replayed.
    pub workload_hash: Option<String>,
}

/// A point with its figures over all seeds.
#[derive(Clone, Debug)]
pub(crate) struct SweepPoint<'a> {
    /// Number, from 0.
    pub point: u32,
    /// Its value on each axis.
    pub values: &'a [String],
    /// One for each metric, over the runs that did not fail.
    pub spreads: Vec<Option<Spread>>,
    /// Runs that did not fail.
    pub complete: usize,
    /// Runs that failed.
    pub failed: usize,
}

impl SweepTable {
    /// Its points, in order.
    pub(crate) fn points(&self) -> Vec<SweepPoint<'_>> {
        let of = |rows: &'_ [SweepRow]| -> (Vec<Option<Spread>>, usize) {
            let complete: Vec<&SweepRow> = rows.iter().filter(|row| row.error.is_none()).collect();
            let spread = |metric: usize| {
                let values: Option<Vec<f64>> = complete.iter().map(|row| row.metrics[metric]).collect();
                Spread::of(values?)
            };
            ((0..self.metrics.len()).map(spread).collect(), complete.len())
        };
        self.rows
            .chunk_by(|a, b| a.point == b.point)
            .map(|rows| {
                let (spreads, complete) = of(rows);
                let failed = rows.len() - complete;
                SweepPoint { point: rows[0].point, values: &rows[0].values, spreads, complete, failed }
            })
            .collect()
    }

    /// Its metrics as they are shown.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        self.metrics.iter().map(|key| Figure::of(key)).collect()
    }

    /// Rows that failed.
    pub fn failed(&self) -> impl Iterator<Item = (&SweepRow, &str)> {
        self.rows.iter().filter_map(|row| Some((row, row.error.as_deref()?)))
    }

    /// Which points failed and why, a line for each: `point 3 (ftl.op=0.9): too small`.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut lines: Vec<(&SweepRow, &str, Vec<String>)> = Vec::new();
        for (row, error) in self.failed() {
            match lines.last_mut() {
                Some((last, known, seeds)) if last.point == row.point && *known == error => {
                    seeds.push(row.seed.to_string());
                }
                _ => lines.push((row, error, vec![row.seed.to_string()])),
            }
        }
        let line = |(row, error, seeds): &(&SweepRow, &str, Vec<String>)| {
            let all = self.rows.iter().filter(|other| other.point == row.point).count();
            let seeds = match seeds.len() {
                n if n == all => String::new(),
                1 => format!(", seed {}", seeds[0]),
                _ => format!(", seeds {}", seeds.join(", ")),
            };
            format!("point {}{seeds} ({}): {}", row.point, self.settings(&row.values), printable(error))
        };
        lines.iter().map(line).collect()
    }

    /// The rows as JSON, each a table.
    pub fn to_json(&self) -> Value {
        let named = |names: &[String], values: Vec<Value>| -> Value {
            Value::Object(names.iter().cloned().zip(values).collect())
        };
        let row = |row: &SweepRow| {
            json!({
                "point": row.point,
                "seed": row.seed,
                "axes": named(&self.axes, row.values.iter().map(|value| json!(value)).collect()),
                "metrics": named(&self.metrics, row.metrics.iter().map(|value| json!(value)).collect()),
                "error": row.error,
            })
        };
        Value::Array(self.rows.iter().map(row).collect())
    }

    /// The settings of a point, such as `ftl.op=0.07, ftl.victim=greedy`.
    pub(crate) fn settings(&self, values: &[String]) -> String {
        let pairs: Vec<String> = self.axes.iter().zip(values).map(|(key, v)| format!("{key}={v}")).collect();
        printable(&pairs.join(", "))
    }

    /// How many points, axes, seeds and runs, in words.
    pub(crate) fn size(&self) -> String {
        let points = self.rows.chunk_by(|a, b| a.point == b.point).count();
        let seeds: BTreeSet<u64> = self.rows.iter().map(|row| row.seed).collect();
        let plural = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let mut parts =
            vec![format!("{} over {}", plural(points, "point"), printable(&self.axes.join(" x ")))];
        if seeds.len() > 1 {
            parts.push(format!("{} seeds", seeds.len()));
        }
        let runs = plural(self.rows.len(), "run");
        let is_part = self.rows.len() < self.planned;
        parts.push(if is_part { format!("{runs} of {}", self.planned) } else { runs });
        let failed = self.failed().count();
        if failed > 0 {
            parts.push(format!("{failed} failed"));
        }
        parts.join(", ")
    }

    /// Says where points had other requests than others with the same seed.
    pub(crate) fn caution(&self) -> Option<String> {
        if self.axes.iter().any(|axis| axis.starts_with("workload")) {
            return None;
        }
        let mut hashes: BTreeSet<(u64, &str)> = BTreeSet::new();
        hashes.extend(self.rows.iter().filter_map(|row| Some((row.seed, row.workload_hash.as_deref()?))));
        let seeds: BTreeSet<u64> = hashes.iter().map(|(seed, _)| *seed).collect();
        (hashes.len() > seeds.len()).then(|| {
            "points had different requests: the workload depends on the capacity of the device (span in %); a span in bytes \
             gives every point the same"
                .to_owned()
        })
    }
}
