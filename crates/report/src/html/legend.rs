//! Legends with the last value of each line, as plain HTML: the script puts its own in their place, with the
//! same values while nothing is pointed at.

use super::escape::text;
use crate::number::{Kind, four_digits, grouped};
use serde_json::Value;

/// One line of a chart.
pub(super) struct Entry {
    /// Its colour: the name of a property in `assets/report.css` (`c0`, `k1`, `soft`, `ink`).
    pub ink: String,
    /// As text.
    pub label: String,
    /// With its unit.
    pub value: String,
}

/// How the script shows values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Show {
    Digits,
    Bytes,
    Count,
    Nanos,
    Rate,
}

impl Show {
    /// Its name in the script.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Nanos => "nanos",
            Self::Rate => "rate",
        }
    }

    pub fn of(self, value: f64) -> String {
        match self {
            Self::Digits => four_digits(value),
            Self::Bytes => Kind::Bytes.show_alone(value),
            Self::Count => grouped(value.round() as u64),
            Self::Nanos => Kind::Nanos.show_alone(value),
            Self::Rate => Kind::Rate.show_alone(value),
        }
    }
}

/// Colour of the line at this place, as the script has it.
pub(super) fn ink(place: usize) -> String {
    format!("c{}", place % super::COLOURS)
}

/// The last value of a line that is one.
pub(super) fn last(values: &[Value]) -> Option<f64> {
    values.iter().rev().find_map(Value::as_f64)
}

/// Lines of the page's data, which have an `ink` and a `label`, with the last of these values; lines without
/// any are not drawn.
pub(super) fn entries<'a>(
    lines: &'a Value,
    show: Show,
    values: impl Fn(&'a Value) -> &'a Value,
) -> Vec<Entry> {
    let name = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let entry = |line| {
        let value = show.of(last(values(line).as_array()?)?);
        Some(Entry { ink: name(line, "ink"), label: name(line, "label"), value })
    };
    lines.as_array().into_iter().flatten().filter_map(entry).collect()
}

pub(super) fn html(entries: &[Entry]) -> String {
    let entry = |Entry { ink, label, value }: &Entry| {
        format!(
            "<li><span class=\"key {ink}\" aria-hidden=\"true\"></span>{} <b>{}</b></li>",
            text(label),
            text(value)
        )
    };
    if entries.is_empty() {
        return String::new();
    }
    format!("\n<ul class=\"legend\">{}</ul>", entries.iter().map(entry).collect::<String>())
}
