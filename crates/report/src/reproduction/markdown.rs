//! A reproduction as a page of Markdown: a table for each experiment, without the notes.

use super::{ReproductionRow, RowKind, Verdict, figure, heading};
use std::fmt::Write as _;

/// The columns of each table.
const COLUMNS: [&str; 8] = ["figure", "unit", "published", "measured", "min", "max", "kind", "verdict"];

/// Tables under a heading for each experiment, with the tags of its sources. `min` and `max` are over the
/// seeds and empty where there is one; a statement has instead, under its verdict, how many of the seeds
/// keep it. What measured nothing, since it lacks a recording, is left out.
pub fn render_reproduction_markdown(rows: &[ReproductionRow]) -> String {
    let mut out = String::new();
    let is_skipped = |row: &ReproductionRow| row.kind == RowKind::Measured && row.measured.is_null();
    for block in rows.chunk_by(|a, b| a.id == b.id).filter(|block| !block.iter().all(is_skipped)) {
        let _ = writeln!(out, "## {}\n", heading(block));
        let _ = writeln!(out, "| {} |\n|{}", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
        for row in block {
            let _ = writeln!(out, "| {} |", cells(row).map(|cell| escaped(&cell)).join(" | "));
        }
        out.push('\n');
    }
    out
}

/// In the order of [`COLUMNS`].
fn cells(row: &ReproductionRow) -> [String; COLUMNS.len()] {
    let bound = |bound: Option<f64>| bound.map_or_else(String::new, |bound| figure(&bound.into()));
    let seeds = row.seeds.as_ref();
    let verdict = row.verdict.map_or_else(String::new, |verdict| match seeds {
        Some(seeds) if !verdict.is_good() => {
            let kept = seeds.kept.unwrap_or_default();
            format!("**{}** ({kept} of {} seeds keep it)", verdict.name(), seeds.count)
        }
        _ if verdict.is_good() => verdict.name().to_owned(),
        _ => format!("**{}**", verdict.name()),
    });
    // A statement is told by its verdict alone.
    let is_statement = matches!(row.verdict, Some(Verdict::Holds | Verdict::Fails));
    [
        row.name.clone(),
        row.unit.clone(),
        if row.published.is_null() { String::new() } else { figure(&row.published) },
        if is_statement { String::new() } else { measured(row) },
        bound(seeds.and_then(|seeds| seeds.min)),
        bound(seeds.and_then(|seeds| seeds.max)),
        row.kind.name().to_owned(),
        verdict,
    ]
}

fn measured(row: &ReproductionRow) -> String {
    let text = figure(&row.measured);
    match row.ratio.filter(|_| row.kind == RowKind::Measured) {
        Some(ratio) => format!("{text} (x {ratio:.3})"),
        None => text,
    }
}

fn escaped(cell: &str) -> String {
    cell.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::RowSeeds;
    use super::*;
    use serde_json::Value;

    #[test]
    fn each_experiment_has_a_table_and_each_row_a_line() {
        let row = |id: &str, name: &str| ReproductionRow {
            id: id.to_owned(),
            source: "a paper".to_owned(),
            name: name.to_owned(),
            ..ReproductionRow::default()
        };
        let number = ReproductionRow {
            unit: "MB/s".to_owned(),
            published: 10.into(),
            measured: 12.5.into(),
            ratio: Some(1.25),
            seeds: Some(RowSeeds { count: 4, min: Some(12.0), max: Some(13.0), kept: None }),
            ..row("one", "a | b")
        };
        let statement = ReproductionRow {
            published: "grows".into(),
            measured: Value::Bool(false),
            verdict: Some(Verdict::Fails),
            seeds: Some(RowSeeds { count: 4, kept: Some(3), ..RowSeeds::default() }),
            ..row("one", "growth")
        };
        let input =
            ReproductionRow { kind: RowKind::Input, measured: 7.into(), ratio: Some(1.0), ..row("two", "c") };
        assert_eq!(
            render_reproduction_markdown(&[number, statement, input, row("three", "skipped")]),
            "## one  a paper\n\n\
             | figure | unit | published | measured | min | max | kind | verdict |\n\
             |---|---|---|---|---|---|---|---|\n\
             | a \\| b | MB/s | 10 | 12.5 (x 1.250) | 12 | 13 | measured |  |\n\
             | growth |  | grows |  |  |  | measured | **fails** (3 of 4 seeds keep it) |\n\n\
             ## two  a paper\n\n\
             | figure | unit | published | measured | min | max | kind | verdict |\n\
             |---|---|---|---|---|---|---|---|\n\
             | c |  |  | 7 |  |  | input |  |\n\n"
        );
    }
}
