//! A sweep for a terminal of 100 columns.

use super::{Figure, Front, SweepPoint, SweepTable};
use crate::lines::broken;
use crate::metrics::Better;
use crate::number::{Unit, printable};
use crate::table::{Head, Table, Weight};
use crate::text::verdict_lines;
use nandscape_sim::result::Spread;
use std::fmt::Write as _;

/// Columns of a line.
const WIDTH: usize = 100;
/// Points of a sweep that are all listed; of more only those on the front.
const FEW: usize = 16;
/// Rows of a table, and errors, that are listed.
const MOST: usize = 24;

/// The verdict, the points on the front, the best and the worst of each figure, and what failed.
pub fn render_sweep_text(table: &SweepTable) -> String {
    let points = table.points();
    let front = Front::new(table, &points);
    let mut out = String::new();
    if !table.workload.is_empty() {
        let _ = writeln!(out, "workload {}", printable(&table.workload));
    }
    let _ = writeln!(out, "sweep    {}", table.size());
    let sentences: Vec<String> =
        front.verdict(table, &points).iter().flat_map(|sentence| broken(sentence, WIDTH - 9)).collect();
    out.push_str(&verdict_lines(&sentences, None));
    if let Some(caution) = table.caution() {
        for (number, line) in broken(&caution, WIDTH - 9).iter().enumerate() {
            let _ = writeln!(out, "{:<9}{line}", if number == 0 { "caution" } else { "" });
        }
    }
    if !front.alike.is_empty() {
        let _ = writeln!(out, "alike    {} (the same at all points)", front.alike.join(", "));
    }
    list(&mut out, table, &points, &front);
    ends(&mut out, table, &points);
    failures(&mut out, table);
    out
}

/// Values of one unit; a spread as `mean (min..max)`.
pub(crate) fn shown(spread: Option<Spread>, unit: Unit) -> String {
    match spread {
        None => "-".to_owned(),
        Some(spread) => {
            let [min, mean, max] = [spread.min, spread.mean, spread.max].map(|value| unit.show(value));
            if min == max { mean } else { format!("{mean} ({min}..{max})") }
        }
    }
}

/// The unit that suits a metric of these points.
pub(crate) fn unit_of(points: &[SweepPoint<'_>], metric: usize, figure: &Figure) -> Unit {
    figure.kind.unit(points.iter().filter_map(|point| Some(point.spreads[metric]?.mean)))
}

fn list(out: &mut String, table: &SweepTable, points: &[SweepPoint<'_>], front: &Front) {
    let all = points.len() <= FEW;
    let listed: Vec<usize> = (0..points.len()).filter(|at| all || front.is_on[*at]).collect();
    if listed.is_empty() {
        return;
    }
    let rows = &listed[..listed.len().min(MOST)];
    let figures = table.figures();
    // What points are chosen by stands first, since the last columns are left out where there is no room.
    let mut order: Vec<usize> = front.objectives.iter().map(|objective| objective.metric).collect();
    let rest: Vec<usize> = (0..figures.len()).filter(|metric| !order.contains(metric)).collect();
    order.extend(rest.into_iter().filter(|m| points.iter().any(|point| point.spreads[*m].is_some())));
    let mut lines = Table::new();
    let mark = |at: &usize| if front.is_on[*at] { "*" } else { "" };
    let head = Head::number("", "point", "").weighing(Weight::Essential);
    lines.column(head, rows.iter().map(|at| points[*at].point.to_string()));
    lines.column(Head::text(""), rows.iter().map(|at| mark(at).to_owned()));
    for (axis, key) in table.axes.iter().enumerate() {
        let cell = |at: &usize| cut(&points[*at].values[axis]);
        lines.column(Head::text(&short(&table.axes, key)), rows.iter().map(cell));
    }
    for metric in order {
        let figure = &figures[metric];
        let unit = unit_of(points, metric, figure);
        let head = Head::number("", &printable(&figure.name), unit.name);
        let cell = |at: &usize| {
            let point = &points[*at];
            if point.complete == 0 { "failed".to_owned() } else { shown(point.spreads[metric], unit) }
        };
        lines.column(head, rows.iter().map(cell));
    }
    let _ = write!(out, "\n{}", lines.render(Some(WIDTH)));
    let more = listed.len() - rows.len();
    if more > 0 {
        let _ = writeln!(out, "and {more} more; --report and the Parquet file have all of them");
    }
    if front.is_on.contains(&true) {
        let _ = writeln!(out, "* on the front");
    }
}

/// The last part of a key, where no other axis has the same.
fn short(axes: &[String], key: &str) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let is_only = axes.iter().filter(|other| last(other) == last(key)).count() == 1;
    printable(&if is_only { last(key) } else { key.to_owned() })
}

/// Longest value of an axis in a table.
const CELL: usize = 28;

fn cut(value: &str) -> String {
    let value = printable(value);
    if value.chars().count() <= CELL {
        return value;
    }
    value.chars().take(CELL - 3).chain("...".chars()).collect()
}

fn ends(out: &mut String, table: &SweepTable, points: &[SweepPoint<'_>]) {
    let figures = table.figures();
    let found: Vec<(usize, usize, usize)> = (0..figures.len())
        .filter_map(|metric| {
            let (best, worst) = Front::ends(points, metric, &figures[metric])?;
            Some((metric, best, worst))
        })
        .collect();
    if found.is_empty() || points.len() < 2 {
        return;
    }
    let mut lines = Table::new();
    let name = |(metric, ..): &(usize, usize, usize)| {
        let figure = &figures[*metric];
        let better = if figure.better == Better::Higher { "most" } else { "least" };
        format!("{} ({better} is best)", printable(&figure.name))
    };
    lines.column(Head::text("metric"), found.iter().map(name));
    let value = |metric: usize, at: usize| {
        let mean = points[at].spreads[metric].map_or(0.0, |spread| spread.mean);
        figures[metric].kind.show_alone(mean)
    };
    let group = |end: &str| Head { group: end.to_owned(), ..Head::number("", "value", "") };
    let point = |end: &str| Head { group: end.to_owned(), ..Head::number("", "point", "") };
    lines.column(group("best"), found.iter().map(|(metric, best, _)| value(*metric, *best)));
    lines.column(point("best"), found.iter().map(|(_, best, _)| points[*best].point.to_string()));
    lines.column(group("worst"), found.iter().map(|(metric, _, worst)| value(*metric, *worst)));
    lines.column(point("worst"), found.iter().map(|(_, _, worst)| points[*worst].point.to_string()));
    let _ = write!(out, "\n{}", lines.render(None));
}

fn failures(out: &mut String, table: &SweepTable) {
    let failed = table.failures();
    if failed.is_empty() {
        return;
    }
    out.push('\n');
    for line in failed.iter().take(MOST).flat_map(|line| broken(&format!("! {line}"), WIDTH)) {
        let _ = writeln!(out, "{line}");
    }
    if failed.len() > MOST {
        let _ = writeln!(out, "! and {} more", failed.len() - MOST);
    }
}
