//! A sweep: what it comes to, the front, each metric over an axis, every point.

use super::elements::{CHART, Chart, cells, heads, left_heads};
use super::escape::text;
use super::legend::{self, Entry, Show, ink};
use super::tables::frame;
use super::values::number;
use crate::SweepTable;
use crate::number::{Kind, printable};
use crate::sweep::text::{shown, unit_of};
use crate::sweep::{Front, SweepPoint};
use nandscape_sim::result::Spread;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Points in the table of the page.
const MOST_ROWS: usize = 1000;
/// Points of the front that are listed in words, and failed runs.
const MOST_WORDS: usize = 24;
/// Lines of a chart.
const MOST_LINES: usize = 8;

/// The front and the charts.
pub(super) fn sweep(table: &SweepTable) -> String {
    let points = table.points();
    let front = Front::new(table, &points);
    let mut out = String::new();
    let fronts = front_charts(table, &points, &front);
    if !fronts.is_empty() {
        let class = if fronts.len() == 3 { "grid three" } else { "grid" };
        let _ = write!(out, "<h3>Choice</h3>\n<div class=\"{class}\">\n");
        for (at, chart) in fronts.iter().enumerate() {
            let title = format!("{} over {}", text(&chart.names[1]), text(&chart.names[0]));
            let (kind, data) = ("sweep-front", [("sweep", at)]);
            let (about, legend) = (chart.about(), chart.legend());
            out += &Chart { kind, number: at, data: &data, title: &title, about, legend: &legend, ..CHART }
                .html();
        }
        out.push_str("</div>\n");
    }
    out.push_str(&words(table, &points, &front));
    let lines = line_charts(table, &points);
    if !lines.is_empty() {
        let _ = write!(out, "<h3>Over {}</h3>\n<div class=\"grid\">\n", text(&lines[0].axis));
        for (at, chart) in lines.iter().enumerate() {
            let (kind, data, lines) = ("sweep-line", [("sweep", at)], chart.data());
            let legend = legend::entries(&lines["lines"], show(chart.kind), |line| &line["mean"]);
            out += &Chart {
                kind,
                number: at,
                data: &data,
                title: &text(&chart.name),
                about: chart.about(),
                legend: &legend,
                ..CHART
            }
            .html();
        }
        out.push_str("</div>\n");
    }
    out
}

/// Which points failed, and why.
pub(super) fn failures(table: &SweepTable) -> String {
    let items: Vec<String> =
        table.failures().iter().map(|line| format!("<li>{}</li>\n", text(line))).collect();
    if items.is_empty() {
        return String::new();
    }
    let more = match items.len().saturating_sub(MOST_WORDS) {
        0 => String::new(),
        more => format!("<li>and {more} more</li>\n"),
    };
    let items: String = items.into_iter().take(MOST_WORDS).collect();
    format!(
        "<div class=\"problems\" role=\"note\" aria-label=\"Runs that did not end well\"><ul>\n{items}{more}</ul></div>\n"
    )
}

/// The points of the front, each in words.
fn words(table: &SweepTable, points: &[SweepPoint<'_>], front: &Front) -> String {
    let on: Vec<&SweepPoint<'_>> =
        points.iter().zip(&front.is_on).filter(|(_, is_on)| **is_on).map(|(point, _)| point).collect();
    if on.is_empty() || front.objectives.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<h3>On the front</h3>\n<ul class=\"notes\">\n");
    for point in on.iter().take(MOST_WORDS) {
        let figures: Vec<String> = front
            .objectives
            .iter()
            .filter_map(|objective| {
                let mean = point.spreads[objective.metric]?.mean;
                Some(format!("{} {}", objective.figure.name, objective.figure.kind.show_alone(mean)))
            })
            .collect();
        let settings = table.settings(point.values);
        let _ = writeln!(out, "<li><strong>{}</strong>: {}</li>", text(&settings), text(&figures.join(", ")));
    }
    if on.len() > MOST_WORDS {
        let _ = writeln!(out, "<li>and {} more, in the table below</li>", on.len() - MOST_WORDS);
    }
    out + "</ul>\n"
}

/// A row for each point.
pub(super) fn table(table: &SweepTable) -> String {
    let points = table.points();
    let front = Front::new(table, &points);
    let figures = table.figures();
    let units: Vec<_> = figures.iter().enumerate().map(|(at, f)| unit_of(&points, at, f)).collect();
    let named = figures.iter().zip(&units).zip(&table.metrics).map(|((figure, unit), key)| {
        let unit = if unit.name.is_empty() {
            String::new()
        } else {
            format!("<span class=\"unit\">{}</span>", unit.name)
        };
        format!("<th scope=\"col\" title=\"{}\">{}{unit}</th>", text(key), text(&figure.name))
    });
    let named: String = named.collect();
    let axes = left_heads(table.axes.iter().map(|key| text(key)));
    let head = format!("<tr>{}{axes}{named}{}</tr>", left_heads(["point"]), heads(["failed runs"]));
    let mut body = String::new();
    for (point, is_on) in points.iter().zip(&front.is_on).take(MOST_ROWS) {
        let name = if *is_on { format!("<b>{} ★</b>", point.point) } else { point.point.to_string() };
        let cell = |value: &String| format!("<td class=\"left\">{}</td>", text(value));
        let values: String = point.values.iter().map(cell).collect();
        let of = |(spread, unit): (&Option<Spread>, _)| shown(*spread, unit);
        let metrics = cells(point.spreads.iter().zip(units.iter().copied()).map(of));
        let failed = if point.failed == 0 { "–".to_owned() } else { point.failed.to_string() };
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\" class=\"left\">{name}</th>{values}{metrics}<td>{failed}</td></tr>"
        );
    }
    let several = points.iter().any(|point| point.complete > 1);
    let spread =
        if several { " A mean over seeds has the least and the largest value behind it." } else { "" };
    let more = match points.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!(" {more} more points are in the Parquet file of the sweep."),
    };
    let caption = format!("One row per point; ★: on the front.{spread}{more}");
    frame("Points of the sweep", &caption, &head, &body)
}

/// The charts' data.
pub(super) fn data(table: &SweepTable) -> Value {
    let points = table.points();
    let front = Front::new(table, &points);
    json!({
        "fronts": front_charts(table, &points, &front).iter().map(FrontChart::data).collect::<Vec<_>>(),
        "lines": line_charts(table, &points).iter().map(LineChart::data).collect::<Vec<_>>(),
    })
}

const fn show(kind: Kind) -> Show {
    match kind {
        Kind::Nanos => Show::Nanos,
        Kind::Bytes => Show::Bytes,
        Kind::Rate => Show::Rate,
        Kind::Count => Show::Count,
        Kind::Ratio | Kind::Real => Show::Digits,
    }
}

/// Two figures that points are chosen by.
struct FrontChart<'a> {
    names: [String; 2],
    kinds: [Kind; 2],
    /// Both spreads, whether the point is on the front, and what it is called; by the first mean.
    points: Vec<([Spread; 2], bool, &'a [String])>,
}

impl FrontChart<'_> {
    /// How many points there are of either kind.
    fn legend(&self) -> Vec<Entry> {
        let count = |wanted: bool| self.points.iter().filter(|(_, is_on, _)| *is_on == wanted).count();
        let entry = |(is_on, label, ink): (bool, &str, &str)| {
            let value = format!("{} points", count(is_on));
            (count(is_on) > 0).then(|| Entry { ink: ink.to_owned(), label: label.to_owned(), value })
        };
        let kinds = [(true, "on the front", "c0"), (false, "other points", "soft")];
        kinds.into_iter().filter_map(entry).collect()
    }

    fn about(&self) -> &'static str {
        if self.points.iter().any(|(spreads, ..)| spreads.iter().any(|spread| spread.min < spread.max)) {
            "filled: on the front, over all figures that points are chosen by; bars: least to largest over the seeds"
        } else {
            "filled: on the front, over all figures that points are chosen by"
        }
    }

    fn data(&self) -> Value {
        let of = |axis: usize, value: fn(&Spread) -> f64| -> Vec<Value> {
            self.points.iter().map(|(spreads, ..)| number(value(&spreads[axis]))).collect()
        };
        let side = |axis| {
            json!({ "mean": of(axis, |s| s.mean), "low": of(axis, |s| s.min), "high": of(axis, |s| s.max),
                    "name": self.names[axis], "kind": show(self.kinds[axis]).name() })
        };
        json!({
            "x": side(0),
            "y": side(1),
            "on": self.points.iter().map(|(_, is_on, _)| *is_on).collect::<Vec<_>>(),
            "names": self.points.iter().map(|(.., values)| printable(&values.join(", "))).collect::<Vec<_>>(),
        })
    }
}

/// The first figure that points are chosen by beside each other one; none for a single axis, which lines show
/// better.
fn front_charts<'a>(table: &SweepTable, points: &[SweepPoint<'a>], front: &Front) -> Vec<FrontChart<'a>> {
    let Some((first, others)) = front.objectives.split_first().filter(|_| table.axes.len() > 1) else {
        return Vec::new();
    };
    let chart = |other: &crate::sweep::Objective| {
        let both = |(point, is_on): (&SweepPoint<'a>, &bool)| {
            Some(([point.spreads[first.metric]?, point.spreads[other.metric]?], *is_on, point.values))
        };
        let mut points: Vec<_> = points.iter().zip(&front.is_on).filter_map(both).collect();
        points.sort_by(|(a, ..), (b, ..)| a[0].mean.total_cmp(&b[0].mean));
        let names = [first, other].map(|objective| objective.figure.name.clone());
        FrontChart { names, kinds: [first.figure.kind, other.figure.kind], points }
    };
    others.iter().map(chart).collect()
}

/// One metric over an axis.
struct LineChart {
    axis: String,
    name: String,
    kind: Kind,
    /// Values of the axis, as typed.
    values: Vec<String>,
    /// A line for each combination of the other axes: what it is called, and a spread for each value.
    lines: Vec<(String, Vec<Option<Spread>>)>,
}

impl LineChart {
    fn about(&self) -> &'static str {
        let mut spreads = self.lines.iter().flat_map(|(_, spreads)| spreads).flatten();
        if spreads.any(|spread| spread.min < spread.max) {
            "mean; bars: least to largest over the seeds"
        } else {
            ""
        }
    }

    fn data(&self) -> Value {
        let numbers: Option<Vec<f64>> = self.values.iter().map(|value| value.parse().ok()).collect();
        let x: Vec<Value> = match &numbers {
            Some(numbers) => numbers.iter().map(|value| json!(value)).collect(),
            None => (0..self.values.len()).map(|at| json!(at)).collect(),
        };
        let names: Vec<String> = self.values.iter().map(|value| printable(value)).collect();
        let lines: Vec<Value> = self
            .lines
            .iter()
            .enumerate()
            .map(|(place, (label, spreads))| {
                let of = |value: fn(Spread) -> f64| -> Vec<Value> {
                    spreads.iter().map(|spread| spread.map_or(Value::Null, |s| number(value(s)))).collect()
                };
                json!({ "label": printable(label), "ink": ink(place), "mean": of(|s| s.mean), "low": of(|s| s.min), "high": of(|s| s.max) })
            })
            .collect();
        let names = if numbers.is_some() { Value::Null } else { json!(names) };
        json!({ "axis": printable(&self.axis), "kind": show(self.kind).name(), "x": x, "names": names, "lines": lines })
    }
}

/// Each metric that is not the same everywhere, over the axis with the most values, numbers before names.
/// None where that takes too many lines, or points of a line are single.
fn line_charts(table: &SweepTable, points: &[SweepPoint<'_>]) -> Vec<LineChart> {
    let values_of = |axis: usize| {
        let mut values: Vec<&String> = Vec::new();
        for point in points {
            if !values.contains(&&point.values[axis]) {
                values.push(&point.values[axis]);
            }
        }
        let number = |value: &&String| value.parse::<f64>().ok().filter(|number| number.is_finite());
        let is_numeric = values.iter().all(|value| number(value).is_some());
        if is_numeric {
            values.sort_by(|a, b| number(a).partial_cmp(&number(b)).expect("finite"));
        }
        (is_numeric, values)
    };
    // The first of equals.
    let axes = (0..table.axes.len()).rev().map(|axis| (axis, values_of(axis)));
    let Some((axis, (_, values))) =
        axes.max_by_key(|(_, (is_numeric, values))| (*is_numeric && values.len() > 1, values.len()))
    else {
        return Vec::new();
    };
    let others = |point: &SweepPoint<'_>| {
        let own = table.axes.iter().zip(point.values).enumerate().filter(|(at, _)| *at != axis);
        own.map(|(_, (key, value))| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    };
    let mut labels: Vec<String> = Vec::new();
    for point in points {
        let label = others(point);
        if !labels.contains(&label) {
            labels.push(label);
            if labels.len() > MOST_LINES {
                return Vec::new();
            }
        }
    }
    if values.len() < 2 || points.len() < 2 * labels.len() {
        return Vec::new();
    }
    let spread = |label: &String, value: &String, metric: usize| {
        points.iter().find(|point| point.values[axis] == *value && others(point) == *label)?.spreads[metric]
    };
    let chart = |(metric, figure): (usize, crate::sweep::Figure)| {
        let line = |label: &String| {
            let spreads = values.iter().map(|value| spread(label, value, metric)).collect();
            let label = if label.is_empty() { figure.name.clone() } else { label.clone() };
            (label, spreads)
        };
        let lines: Vec<(String, Vec<Option<Spread>>)> = labels.iter().map(line).collect();
        let all =
            Spread::of(lines.iter().flat_map(|(_, spreads)| spreads).flatten().map(|spread| spread.mean))?;
        let values = values.iter().map(|value| (*value).clone()).collect();
        let axis = table.axes[axis].clone();
        (all.min < all.max).then_some(LineChart { axis, name: figure.name, kind: figure.kind, values, lines })
    };
    table.figures().into_iter().enumerate().filter_map(chart).collect()
}
