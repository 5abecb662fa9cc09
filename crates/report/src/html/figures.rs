//! Figures of an experiment over time.

use super::elements::{CHART, Chart};
use super::escape::text;
use super::values::number;
use crate::number::printable;
use crate::reproduction::{ReproductionRow, RowChart, row_charts};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The charts of one experiment, below a heading for each of its parts. `first` is the number of its first
/// chart in the page.
pub(super) fn figures(rows: &[ReproductionRow], first: usize) -> String {
    let mut out = String::new();
    let mut part = None;
    for (at, chart) in (first..).zip(row_charts(rows)) {
        if part != Some(chart.part) {
            let end = if part.is_some() { "</div>\n" } else { "" };
            let _ = write!(out, "{end}<h4 class=\"part\">{}</h4>\n<div class=\"grid\">\n", text(chart.part));
            part = Some(chart.part);
        }
        let title = text(&title(&chart));
        let data = [("figure", at)];
        let without = "--json and --csv have the numbers.";
        out += &Chart { kind: "figure", number: at, data: &data, title: &title, without, ..CHART }.html();
    }
    if part.is_some() {
        out.push_str("</div>\n");
    }
    out
}

/// Times have their units at the axis.
fn title(chart: &RowChart<'_>) -> String {
    match chart.unit {
        "" | "us" => chart.chart.to_owned(),
        unit => format!("{}, {unit}", chart.chart),
    }
}

pub(super) fn charts(rows: &[ReproductionRow]) -> Value {
    let chart = |(part, chart): (usize, RowChart<'_>)| {
        // Times of a microsecond are drawn as times are everywhere.
        let (kind, factor) = if chart.unit == "us" { ("ns", 1e3) } else { ("", 1.0) };
        let lines: Vec<Value> = chart
            .lines
            .iter()
            .map(|line| {
                json!({
                    "label": printable(&line.line),
                    "is_bound": line.is_bound,
                    "x": line.time_s.iter().map(|s| number(s * 1e9)).collect::<Vec<_>>(),
                    "values": line.values.iter().map(|v| v.map_or(Value::Null, |v| number(v * factor))).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({ "part": part, "kind": kind, "lines": lines })
    };
    let mut part = 0;
    let mut before: Option<(&str, &str)> = None;
    let mut out = Vec::new();
    for block in rows.chunk_by(|a, b| a.id == b.id) {
        for of_block in row_charts(block) {
            let this = (block[0].id.as_str(), of_block.part);
            part += usize::from(before.is_some_and(|before| before != this));
            before = Some(this);
            out.push(chart((part, of_block)));
        }
    }
    Value::Array(out)
}
