//! Published figures beside measured ones (`reproduce`).

use crate::number::{four_digits, printable};
use crate::table::{Head, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

/// One published figure and what was measured for it; the names are those of `reproduce --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReproductionRow {
    /// Which experiment, such as `thesis-table-4.2`.
    pub id: String,
    /// Row of the requirements table the figure stands in; may be empty.
    pub row: String,
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
    /// Required where the ratio is outside 0.8 to 1.25.
    pub note: String,
}

impl ReproductionRow {
    /// Whether the ratio is so far from 1 that a note must explain it.
    pub fn needs_note(&self) -> bool {
        self.ratio.is_some_and(|ratio| !(0.8..=1.25).contains(&ratio))
    }
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

/// A table for the terminal, one block per experiment, notes below each.
pub fn render_reproduction_text(rows: &[ReproductionRow]) -> String {
    let mut out = String::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let (block, after) = rest.split_at(rest.iter().take_while(|row| row.id == first.id).count());
        rest = after;
        let _ = writeln!(out, "{}", printable(&first.id));
        let mut table = Table::new();
        let mut column = |name: &str, is_left, cells: Vec<String>| {
            let head = Head { group: String::new(), name: name.to_owned(), unit: String::new(), is_left };
            table.column(head, cells);
        };
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
        column("", true, block.iter().map(|r| format!("  {}", printable(&r.name))).collect());
        column("unit", true, block.iter().map(|r| printable(&r.unit)).collect());
        column("published", false, block.iter().map(|r| figure(&r.published)).collect());
        column("measured", false, block.iter().map(|r| figure(&r.measured)).collect());
        column(
            "ratio",
            false,
            block.iter().map(|r| r.ratio.map_or("-".into(), |x| format!("{x:.3}"))).collect(),
        );
        column("note", true, marks);
        out.push_str(&table.render());
        for (i, note) in notes.iter().enumerate() {
            let _ = writeln!(out, "  [{}] {}", i + 1, printable(note));
        }
        out.push('\n');
    }
    out
}
