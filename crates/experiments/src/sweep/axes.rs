//! The points of a sweep: every combination, drawn at random, or listed.

use nandscape_core::rng::{below, seeded, unit};
use nandscape_stack::{text_of, values};
use toml::{Table, Value};

/// Points of a sweep at most.
pub const MOST_POINTS: usize = 100_000;

/// Where a key of the file is wrong, and what was expected.
pub type Wrong = (String, String);

/// Dotted keys that differ, and for each point a value of each.
#[derive(Clone, Debug, Default)]
pub struct Points {
    pub axes: Vec<String>,
    pub points: Vec<Vec<String>>,
}

/// Dotted keys of a table with what is no table, in the order of the file.
pub fn flat(table: &Table) -> Vec<(String, Value)> {
    fn collect(prefix: &str, table: &Table, out: &mut Vec<(String, Value)>) {
        for (key, value) in table {
            match value {
                Value::Table(inner) => collect(&format!("{prefix}{key}."), inner, out),
                value => out.push((format!("{prefix}{key}"), value.clone())),
            }
        }
    }
    let mut out = Vec::new();
    collect("", table, &mut out);
    out
}

fn wrong(key: &str, message: impl Into<String>) -> Wrong {
    (key.to_owned(), message.into())
}

fn text(key: &str, value: &Value) -> Result<String, Wrong> {
    text_of(key, value).map_err(|_| wrong(key, "expected a string, number or boolean"))
}

/// `[1, 2]`, `"1,2"`, `"1..8"`, `"0.07..0.28:4"` or a single value. In a list each entry is one value,
/// whatever is in it.
pub fn values_of(key: &str, value: &Value) -> Result<Vec<String>, Wrong> {
    let all = match value {
        Value::Array(items) => items.iter().map(|item| text(key, item)).collect::<Result<Vec<_>, _>>()?,
        Value::String(text) if !is_whole(key) => {
            values(text).map_err(|message| wrong(key, message))?.unwrap_or_else(|| vec![text.clone()])
        }
        value => vec![text(key, value)?],
    };
    if all.is_empty() {
        return Err(wrong(key, "is an empty list: expected a value"));
    }
    match (1..all.len()).find(|at| all[..*at].contains(&all[*at])) {
        Some(at) => Err(wrong(key, format!("{} is there twice: expected each value once", all[at]))),
        None => Ok(all),
    }
}

/// Whether a text is one value: workloads have commas and points of their own.
fn is_whole(key: &str) -> bool {
    key.rsplit('.').next() == Some("workload")
}

/// Every combination of the values of the axes; the last axis changes fastest.
pub fn grid(table: &Table) -> Result<Points, Wrong> {
    let mut found = Points { axes: Vec::new(), points: vec![Vec::new()] };
    for (key, value) in flat(table) {
        let at = format!("grid.{key}");
        let all = values_of(&at, &value)?;
        if found.points.len() * all.len() > MOST_POINTS {
            return Err(wrong(&at, format!("more than {MOST_POINTS} combinations: expected fewer values")));
        }
        let with = |point: &Vec<String>| {
            let extended = |value: &String| [&point[..], std::slice::from_ref(value)].concat();
            all.iter().map(extended).collect::<Vec<_>>()
        };
        found.points = found.points.iter().flat_map(with).collect();
        found.axes.push(key);
    }
    Ok(found)
}

/// The points as they are given; all have the same keys.
pub fn list(items: &[Value]) -> Result<Points, Wrong> {
    let mut found = Points::default();
    for (number, item) in (1..).zip(items) {
        let at = |key: &str| format!("list[{number}].{key}");
        let Value::Table(table) = item else {
            return Err(wrong(&format!("list[{number}]"), "expected a table such as { \"ftl.op\" = 0.07 }"));
        };
        let mut own = flat(table);
        if number == 1 {
            found.axes = own.iter().map(|(key, _)| key.clone()).collect();
        }
        let place = |key: &String| found.axes.iter().position(|axis| axis == key);
        if let Some((key, _)) = own.iter().find(|(key, _)| place(key).is_none()) {
            return Err(wrong(
                &at(key),
                format!("expected the keys of the first point: {}", found.axes.join(", ")),
            ));
        }
        if let Some(key) = found.axes.iter().find(|axis| own.iter().all(|(key, _)| key != *axis)) {
            return Err(wrong(&at(key), "is missing: expected the keys of the first point"));
        }
        own.sort_by_key(|(key, _)| place(key));
        let values: Result<Vec<String>, Wrong> =
            own.iter().map(|(key, value)| text(&at(key), value)).collect();
        found.points.push(values?);
    }
    Ok(found)
}

/// Where a value of an axis is drawn from.
enum Source {
    Choice(Vec<String>),
    Whole { from: u64, to: u64, is_log: bool },
    Real { from: f64, to: f64, is_log: bool },
}

/// So many points, each value drawn by itself: from a list, or from a range, evenly or (`:log`) evenly in its
/// logarithm. A range with two whole ends has whole values, both ends among them.
pub fn random(table: &Table) -> Result<Points, Wrong> {
    let mut table = table.clone();
    let mut whole = |key: &str, least: i64, default: Option<i64>| match table.remove(key) {
        None => default.ok_or_else(|| wrong(&format!("random.{key}"), "is missing: expected a number")),
        Some(Value::Integer(n)) if n >= least => Ok(n),
        Some(value) => {
            Err(wrong(&format!("random.{key}"), format!("{value}: expected a whole number from {least} on")))
        }
    };
    let count = whole("points", 1, None)? as usize;
    let seed = whole("seed", 0, Some(42))? as u64;
    if count > MOST_POINTS {
        return Err(wrong("random.points", format!("{count}: expected at most {MOST_POINTS}")));
    }
    let mut axes = Vec::new();
    let mut sources = Vec::new();
    for (key, value) in flat(&table) {
        sources.push(source(&format!("random.{key}"), &value)?);
        axes.push(key);
    }
    let mut rng = seeded(seed);
    let mut draw = |source: &Source| match source {
        Source::Choice(all) => all[below(&mut rng, all.len() as u64) as usize].clone(),
        Source::Whole { from, to, is_log: false } => (from + below(&mut rng, to - from + 1)).to_string(),
        Source::Whole { from, to, is_log: true } => {
            let value = between_logs(*from as f64, *to as f64 + 1.0, unit(&mut rng));
            (value as u64).clamp(*from, *to).to_string()
        }
        Source::Real { from, to, is_log } => {
            let at = unit(&mut rng);
            let value = if *is_log { between_logs(*from, *to, at) } else { from + (to - from) * at };
            four_digits(value).clamp(*from, *to).to_string()
        }
    };
    let points = (0..count).map(|_| sources.iter().map(&mut draw).collect()).collect();
    Ok(Points { axes, points })
}

fn between_logs(from: f64, to: f64, at: f64) -> f64 {
    (from.ln() + (to.ln() - from.ln()) * at).exp()
}

/// As many digits as a person would type.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().expect("a number")
}

fn source(key: &str, value: &Value) -> Result<Source, Wrong> {
    let Some(text) = value.as_str().filter(|text| text.contains("..") && !text.contains(',')) else {
        return values_of(key, value).map(Source::Choice);
    };
    let (range, is_log) = match text.strip_suffix(":log") {
        Some(range) => (range, true),
        None => (text, false),
    };
    let expected =
        || wrong(key, format!("'{text}': expected a range such as 0.05..0.5, 1..16 or 0.01..1:log"));
    let (from, to) = range.split_once("..").ok_or_else(expected)?;
    let (from, to) = (from.trim(), to.trim());
    let is_positive = |from: f64| !is_log || from > 0.0;
    if let (Ok(from), Ok(to)) = (from.parse::<u64>(), to.parse::<u64>()) {
        // Then the number of values is no more than 2^53, and exact.
        if from >= to || to >= 1 << 53 || !is_positive(from as f64) {
            return Err(expected());
        }
        return Ok(Source::Whole { from, to, is_log });
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    match (number(from), number(to)) {
        (Some(from), Some(to)) if from < to && is_positive(from) => Ok(Source::Real { from, to, is_log }),
        _ => Err(expected()),
    }
}
