//! Published figures beside measured ones (`reproduce`), some of them over time too.

mod markdown;
mod seeds;

use crate::csv::{line, plain};
use crate::number::{four_digits, or_dash, printable, ratio};
use crate::table::{Head, Table, Weight};
use crate::text::verdict_lines;
use nandscape_core::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

pub use markdown::render_reproduction_markdown;
pub use seeds::{RowSeeds, over_seeds};

/// What the measured value of a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// It comes out of the run.
    #[default]
    Measured,
    /// A parameter was set so that it comes out as published.
    Calibrated,
    /// A published value that was put in.
    Input,
    /// Nothing here stands for it.
    #[serde(rename = "not modelled")]
    NotModelled,
}

words! { pub RowKind:
    Measured = "measured", Calibrated = "calibrated", Input = "input", NotModelled = "not modelled",
}

/// Whether a row's rule, stated before it was measured, was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A number within the band that was stated.
    Met,
    /// A number outside.
    Missed,
    /// A statement that holds.
    Holds,
    /// A statement that does not.
    Fails,
}

words!(pub Verdict: Met = "met", Missed = "missed", Holds = "holds", Fails = "fails");

impl Verdict {
    /// Whether the rule was kept.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Met | Self::Holds)
    }
}

/// One published figure and what was measured for it; the names are those of `reproduce --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReproductionRow {
    /// Which experiment, such as `thesis-table-4.2`.
    pub id: String,
    /// Tag of the source that the figure is from, as docs/sources.md lists it; empty where nobody published
    /// one.
    pub source: String,
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
    /// What the measured value is.
    #[serde(default)]
    pub kind: RowKind,
    /// Whether the rule of the row was kept; null where none was stated.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// Required where the ratio is outside 0.8 to 1.25.
    pub note: String,
    /// The same over time, where that is shown too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<RowSeries>,
    /// What it is over several seeds, where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<RowSeeds>,
}

/// A figure over time or over a parameter, a line of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowSeries {
    /// Part of the experiment, the heading above its charts.
    pub part: String,
    /// Its chart, which it shares with the other rows of the part that name it. All of them have the same
    /// unit.
    pub chart: String,
    /// What the line is called.
    pub line: String,
    /// A limit instead of something measured.
    pub is_bound: bool,
    /// The parameter with its unit behind a comma, the same for all lines of a part. Empty for time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub axis: String,
    /// Values of the parameter, or ends of intervals in seconds of virtual time.
    #[serde(alias = "time_s")]
    pub at: Vec<f64>,
    /// One value for each, in the unit of the row; null where there was none.
    pub values: Vec<Option<f64>>,
}

/// A chart: the rows that name it, each with its series.
pub(crate) struct RowChart<'a> {
    pub part: &'a str,
    pub chart: &'a str,
    pub unit: &'a str,
    pub lines: Vec<&'a RowSeries>,
}

/// The charts of these rows, in the order in which they are named first.
pub(crate) fn row_charts(rows: &[ReproductionRow]) -> Vec<RowChart<'_>> {
    let mut charts: Vec<RowChart<'_>> = Vec::new();
    for row in rows {
        let Some(series) = &row.series else { continue };
        match charts.iter_mut().find(|c| (c.part, c.chart) == (series.part.as_str(), series.chart.as_str())) {
            Some(chart) => chart.lines.push(series),
            None => charts.push(RowChart {
                part: &series.part,
                chart: &series.chart,
                unit: &row.unit,
                lines: vec![series],
            }),
        }
    }
    charts
}

impl ReproductionRow {
    /// Whether the ratio is so far from 1 that a note must explain it.
    pub fn needs_note(&self) -> bool {
        self.ratio.is_some_and(|ratio| !(0.8..=1.25).contains(&ratio))
    }
}

/// Rows that a number was published for and that came out of the run, with their ratios, and statements
/// with whether they hold.
fn compared(rows: &[ReproductionRow]) -> (Vec<(&ReproductionRow, f64)>, Vec<bool>) {
    let measured = || rows.iter().filter(|row| row.kind == RowKind::Measured);
    let ratios = measured().filter_map(|row| Some((row, row.ratio.filter(|ratio| *ratio > 0.0)?)));
    (ratios.collect(), measured().filter_map(|row| row.measured.as_bool()).collect())
}

/// The row that is farthest from what was published.
fn farthest<'a>(ratios: &[(&'a ReproductionRow, f64)]) -> Option<(&'a ReproductionRow, f64)> {
    ratios.iter().copied().max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()))
}

fn count_of(of: impl ExactSizeIterator<Item = bool>) -> String {
    let all = of.len();
    format!("{} of {all}", of.filter(|is_good| *is_good).count())
}

/// How well the published figures were met, in three sentences at most.
pub(crate) fn verdict(rows: &[ReproductionRow]) -> Vec<String> {
    let (ratios, statements) = compared(rows);
    let mut out = Vec::new();
    if let Some((row, ratio)) = farthest(&ratios) {
        let near = count_of(ratios.iter().map(|(row, _)| !row.needs_note()));
        out.push(format!(
            "{near} published numbers come out within a factor of 0.8 to 1.25; the farthest, {}, at {ratio:.3}.",
            printable(&row.name)
        ));
    }
    if !statements.is_empty() {
        out.push(format!("{} published statements hold.", count_of(statements.into_iter())));
    }
    let rules: Vec<bool> = rows.iter().filter_map(|row| row.verdict).map(Verdict::is_good).collect();
    if !rules.is_empty() {
        out.push(format!("{} rules that were stated before the run are kept.", count_of(rules.into_iter())));
    }
    out
}

/// Key figures of a reproduction: title, value, and the row that it is of.
pub(crate) fn key_figures(rows: &[ReproductionRow]) -> Vec<(&'static str, String, String)> {
    let (mut ratios, statements) = compared(rows);
    let mut out = Vec::new();
    let plain = |value: String| (value, String::new());
    let mut add = |title, (value, of): (String, String)| out.push((title, value, of));
    if let Some((row, ratio)) = farthest(&ratios) {
        add("numbers within 0.8 to 1.25", plain(count_of(ratios.iter().map(|(row, _)| !row.needs_note()))));
        ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
        add("measured over published, median", plain(format!("{:.3}", ratios[ratios.len() / 2].1)));
        add("the same, farthest from 1", (format!("{ratio:.3}"), printable(&row.name)));
    }
    if !statements.is_empty() {
        add("statements that hold", plain(count_of(statements.into_iter())));
    }
    let rules: Vec<bool> = rows.iter().filter_map(|row| row.verdict).map(Verdict::is_good).collect();
    if !rules.is_empty() {
        add("rules kept", plain(count_of(rules.into_iter())));
    }
    add("figures", plain(rows.len().to_string()));
    out
}

/// What several seeds, kinds and verdicts say of rows, each only where it tells more than the measured value
/// does: a kind besides measured, a band.
pub(crate) fn rules(rows: &[ReproductionRow]) -> Vec<(&'static str, Vec<String>)> {
    let mut out = Vec::new();
    let mut column = |head, cell: fn(&ReproductionRow) -> String| {
        out.push((head, rows.iter().map(cell).collect()));
    };
    if rows.iter().any(|row| row.seeds.is_some()) {
        column("of all seeds", |row| row.seeds.as_ref().map_or_else(|| "-".to_owned(), of_seeds));
    }
    if rows.iter().any(|row| row.kind != RowKind::Measured) {
        column("kind", |row| row.kind.name().to_owned());
    }
    if rows.iter().any(|row| matches!(row.verdict, Some(Verdict::Met | Verdict::Missed))) {
        column("verdict", |row| row.verdict.map_or("-", Verdict::name).to_owned());
    }
    out
}

/// `2.1 to 2.4, kept by 7 of 8`.
fn of_seeds(seeds: &RowSeeds) -> String {
    let range = seeds.min.zip(seeds.max).map(|(min, max)| {
        if min < max {
            format!("{} to {}", four_digits(min), four_digits(max))
        } else {
            "the same".to_owned()
        }
    });
    let kept = seeds.kept.map(|kept| format!("kept by {kept} of {}", seeds.count));
    range.into_iter().chain(kept).collect::<Vec<_>>().join(", ")
}

/// A figure as text: numbers with about four digits, the rest as it is.
pub(crate) fn figure(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "holds".to_owned(),
        Value::Bool(false) => "does not hold".to_owned(),
        Value::String(text) => printable(text),
        Value::Number(n) if n.is_u64() => n.to_string(),
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), four_digits),
        Value::Array(items) => items.iter().map(figure).collect::<Vec<_>>().join(" to "),
        Value::Object(_) => printable(&value.to_string()),
    }
}

/// A table for the terminal, one block per experiment, notes below each. Tables are made to fit a terminal of
/// `width` columns.
pub fn render_reproduction_text(rows: &[ReproductionRow], width: Option<usize>) -> String {
    let mut out = String::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let (block, after) = rest.split_at(rest.iter().take_while(|row| row.id == first.id).count());
        rest = after;
        let _ = writeln!(out, "{}", heading(block));
        out.push_str(&verdict_lines(&verdict(block), width));
        let mut table = Table::new();
        let mut notes: Vec<&str> = Vec::new();
        let mut marks = Vec::new();
        for row in block {
            if row.note.is_empty() {
                marks.push(String::new());
                continue;
            }
            let at = notes.iter().position(|note| *note == row.note).unwrap_or_else(|| {
                notes.push(&row.note);
                notes.len() - 1
            });
            marks.push(format!("[{}]", at + 1));
        }
        table.column(Head::text(""), block.iter().map(|r| format!("  {}", printable(&r.name))));
        table.column(Head::text("unit"), block.iter().map(|r| printable(&r.unit)));
        table.column(
            Head::number("", "published", "").weighing(Weight::Essential),
            block.iter().map(|r| figure(&r.published)),
        );
        table.column(
            Head::number("", "measured", "").weighing(Weight::Essential),
            block.iter().map(|r| figure(&r.measured)),
        );
        table.column(Head::number("", "ratio", ""), block.iter().map(|r| ratio(r.ratio)));
        for (head, cells) in rules(block) {
            table.column(Head::text(head), cells);
        }
        table.column(Head::text("note"), marks);
        out.push_str(&table.render(width));
        for (i, note) in notes.iter().enumerate() {
            let _ = writeln!(out, "  [{}] {}", i + 1, printable(note));
        }
        out.push('\n');
        out.push_str(&series_tables(block, width));
    }
    out
}

/// The experiment and the tags of its sources.
fn heading(rows: &[ReproductionRow]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for row in rows {
        for word in [row.id.as_str(), row.source.as_str()] {
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
            }
        }
    }
    words.into_iter().map(printable).collect::<Vec<_>>().join("  ")
}

/// Lines in a table over time or a parameter; every n-th is left out until so few are left.
const LINES: usize = 12;

/// A table for each part of an experiment: a line for each time or value of the parameter, a column for each
/// line of a chart. Limits stand among the rows.
fn series_tables(rows: &[ReproductionRow], width: Option<usize>) -> String {
    let charts = row_charts(rows);
    let mut out = String::new();
    for part in charts.chunk_by(|a, b| a.part == b.part) {
        let of_chart = |chart| measured_lines(chart).map(move |line| (chart, line));
        let lines: Vec<(&RowChart<'_>, &RowSeries)> = part.iter().flat_map(of_chart).collect();
        let Some((_, first)) = lines.first() else { continue };
        let every = first.at.len().div_ceil(LINES).max(1);
        let places: Vec<f64> = first.at.iter().copied().skip(every - 1).step_by(every).collect();
        let mut table = Table::new();
        let (over, unit) = match first.axis.split_once(", ") {
            None if first.axis.is_empty() => ("until", "s"),
            None => (first.axis.as_str(), ""),
            Some(axis) => axis,
        };
        let [over, unit] = [over, unit].map(|cell| format!("  {}", printable(cell)));
        table.column(Head::number("", &over, &unit), places.iter().map(|at| four_digits(*at)));
        for (chart, line) in lines {
            let cells = places.iter().map(|at| or_dash(value_at(line, *at), four_digits));
            let [group, name, unit] = [chart.chart, &line.line, chart.unit].map(printable);
            table.column(Head::number(&group, &name, &unit), cells);
        }
        let _ = writeln!(out, "{}\n{}", printable(part[0].part), table.render(width));
    }
    out
}

fn measured_lines<'a>(chart: &RowChart<'a>) -> impl Iterator<Item = &'a RowSeries> {
    chart.lines.clone().into_iter().filter(|line| !line.is_bound)
}

fn value_at(line: &RowSeries, place: f64) -> Option<f64> {
    let at = line.at.iter().position(|other| other.total_cmp(&place).is_eq())?;
    line.values.get(at).copied().flatten()
}

/// Every figure as a line; those over time or a parameter again for each value of it in `at`, with the name
/// of the parameter in place of a note.
pub fn render_reproduction_csv(rows: &[ReproductionRow]) -> String {
    let has_seeds = rows.iter().any(|row| row.seeds.is_some());
    let mut out = String::from("id,source,name,unit,at,published,measured,ratio,note,kind,verdict");
    out += if has_seeds { ",seeds,min,max,kept\n" } else { "\n" };
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in rows {
        let [published, measured] = [plain(&row.published), plain(&row.measured)];
        let ratio = optional(row.ratio);
        let (kind, verdict) = (row.kind.name(), row.verdict.map_or("", Verdict::name));
        let [id, source, name, unit, note] = [&row.id, &row.source, &row.name, &row.unit, &row.note];
        let cells = [id, source, name, unit, "", &published, &measured, &ratio, note, kind, verdict];
        let seeds = row.seeds.clone().unwrap_or_default();
        let kept = seeds.kept.map_or_else(String::new, |kept| kept.to_string());
        let over = [seeds.count.to_string(), optional(seeds.min), optional(seeds.max), kept];
        line(&mut out, cells.into_iter().chain(over.iter().map(String::as_str).filter(|_| has_seeds)));
        let series = row.series.iter();
        let points =
            series.flat_map(|line| line.at.iter().zip(&line.values).map(|point| (&line.axis, point)));
        for (axis, (at, value)) in points {
            let (at, value) = (at.to_string(), optional(*value));
            let cells = [id, source, name, unit, &at, "", &value, "", axis, kind, ""];
            line(&mut out, cells.into_iter().chain([""; 4].into_iter().filter(|_| has_seeds)));
        }
    }
    out
}
