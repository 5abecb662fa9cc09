//! Figures of an experiment over time or a parameter.

use super::elements::{CHART, Chart};
use super::escape::text;
use super::legend::{self, Show, ink};
use super::values::number;
use crate::number::printable;
use crate::reproduction::{ReproductionRow, RowChart, RowSeries, row_charts};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The charts of one experiment, below a heading for each of its parts. `first` is the number of its first
/// chart in the page.
pub(super) fn figures(rows: &[ReproductionRow], first: usize) -> String {
    let mut out = String::new();
    let mut part = None;
    let charts = row_charts(rows);
    let names = names(&charts);
    for (at, chart) in (first..).zip(charts) {
        if part != Some(chart.part) {
            let end = if part.is_some() { "</div>\n" } else { "" };
            let _ = write!(out, "{end}<h4 class=\"part\">{}</h4>\n<div class=\"grid\">\n", text(chart.part));
            part = Some(chart.part);
        }
        let title = text(&title(&chart));
        let (unit, lines) = data(&chart, &names);
        let show = if unit == "ns" { Show::Nanos } else { Show::Digits };
        let legend = legend::entries(&lines, show, |line| &line["values"]);
        let legend = legend.as_slice();
        let data = [("figure", at)];
        let without = "--json and --csv have the numbers.";
        out += &Chart { kind: "figure", number: at, data: &data, title: &title, without, legend, ..CHART }
            .html();
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

/// The data of a chart. A line has the colour of its name in all charts of the experiment.
fn data(chart: &RowChart<'_>, names: &[&str]) -> (&'static str, Value) {
    // Times of a microsecond are drawn as times are everywhere.
    let (kind, factor) = if chart.unit == "us" { ("ns", 1e3) } else { ("", 1.0) };
    let line = |line: &&RowSeries| {
        let scale = if line.axis.is_empty() { 1e9 } else { 1.0 };
        let place = names.iter().position(|name| *name == line.line).unwrap_or(0);
        json!({
            "label": printable(&line.line),
            "is_bound": line.is_bound,
            "ink": if line.is_bound { "ink".to_owned() } else { ink(place) },
            "dash": place % super::COLOURS,
            "x": line.at.iter().map(|at| number(at * scale)).collect::<Vec<_>>(),
            "values": line.values.iter().map(|v| v.map_or(Value::Null, |v| number(v * factor))).collect::<Vec<_>>(),
        })
    };
    (kind, chart.lines.iter().map(line).collect())
}

/// Names of what is measured, in the order in which they come first.
fn names<'a>(charts: &[RowChart<'a>]) -> Vec<&'a str> {
    let mut out: Vec<&str> = Vec::new();
    for line in charts.iter().flat_map(|chart| &chart.lines).filter(|line| !line.is_bound) {
        if !out.contains(&line.line.as_str()) {
            out.push(&line.line);
        }
    }
    out
}

pub(super) fn charts(rows: &[ReproductionRow]) -> Value {
    let mut part = 0;
    let mut before: Option<(&str, &str)> = None;
    let mut out = Vec::new();
    for block in rows.chunk_by(|a, b| a.id == b.id) {
        let charts = row_charts(block);
        let names = names(&charts);
        for of_block in charts {
            let this = (block[0].id.as_str(), of_block.part);
            part += usize::from(before.is_some_and(|before| before != this));
            before = Some(this);
            let (kind, lines) = data(&of_block, &names);
            let axis = of_block.lines.first().map_or("", |line| &line.axis);
            out.push(json!({ "part": part, "axis": printable(axis), "kind": kind, "lines": lines }));
        }
    }
    Value::Array(out)
}
