//! A sweep: a row for each point and seed.
//!
//! `point` and `seed` tell the rows apart; each axis is a column under its dotted key, of numbers where all
//! its values are numbers, else of text as typed. Metrics are numbers under their dotted keys, null where a
//! run has no such figure or failed; `error` is null of a run that ended well.

use super::columns::Columns;
use super::file;
use nandscape_report::{ReportError, SweepRow, SweepTable};

/// The rows of a sweep as a Parquet file in memory.
///
/// # Errors
///
/// What the encoder refuses.
pub fn render_sweep_parquet(table: &SweepTable) -> Result<Vec<u8>, ReportError> {
    let mut columns = Columns::of(&table.rows);
    columns.number("point", |row| row.point);
    for (axis, key) in table.axes.iter().enumerate() {
        let number =
            |row: &SweepRow| row.values[axis].parse::<f64>().ok().filter(|number| number.is_finite());
        if table.rows.iter().all(|row| number(row).is_some()) {
            columns.real(key, number);
        } else {
            columns.text(key, |row| row.values[axis].clone());
        }
    }
    columns.count("seed", |row| row.seed);
    for (metric, key) in table.metrics.iter().enumerate() {
        columns.real(key, |row| row.metrics[metric]);
    }
    columns.optional_text("error", |row| row.error.clone());
    file(columns, "nandscape.sweep", "1", None)
}
