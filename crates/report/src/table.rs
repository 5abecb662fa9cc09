//! Aligned columns for a terminal.

use crate::number::{Kind, or_dash};
use std::fmt::Write as _;

/// Head of a column: group (shared by neighbours), name, unit.
pub(crate) struct Head {
    pub group: String,
    pub name: String,
    pub unit: String,
    pub is_left: bool,
}

impl Head {
    pub fn text(name: &str) -> Self {
        Self { group: String::new(), name: name.to_owned(), unit: String::new(), is_left: true }
    }

    pub fn number(group: &str, name: &str, unit: &str) -> Self {
        let [group, name, unit] = [group, name, unit].map(str::to_owned);
        Self { group, name, unit, is_left: false }
    }
}

/// A table with up to three head lines.
pub(crate) struct Table {
    heads: Vec<Head>,
    rows: Vec<Vec<String>>,
}

const GAP: &str = "  ";

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad(out: &mut String, text: &str, width_wanted: usize, is_left: bool) {
    let fill = width_wanted.saturating_sub(width(text));
    if is_left {
        let _ = write!(out, "{text}{:fill$}", "");
    } else {
        let _ = write!(out, "{:fill$}{text}", "");
    }
}

impl Table {
    pub fn new() -> Self {
        Self { heads: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column with one cell per row. All columns have the same number of cells.
    pub fn column(&mut self, head: Head, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        if self.heads.is_empty() {
            self.rows = vec![Vec::new(); cells.len()];
        }
        assert_eq!(cells.len(), self.rows.len(), "column '{}' has another number of cells", head.name);
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
        self.heads.push(head);
    }

    /// Adds a column of figures in the unit that suits them all, `-` where there is none.
    pub fn figures(&mut self, head: Head, kind: Kind, values: impl IntoIterator<Item = Option<f64>>) {
        let values: Vec<Option<f64>> = values.into_iter().collect();
        let unit = kind.unit(values.iter().flatten().copied());
        let head = if head.unit.is_empty() { Head { unit: unit.name.to_owned(), ..head } } else { head };
        self.column(head, values.into_iter().map(|value| or_dash(value, |value| unit.show(value))));
    }

    /// Names of the columns with their units, and whether they are read from the left.
    pub fn names(&self) -> Vec<(String, bool)> {
        let name = |head: &Head| match head.unit.as_str() {
            "" => head.name.trim().to_owned(),
            unit => format!("{}, {unit}", head.name.trim()),
        };
        self.heads.iter().map(|head| (name(head), head.is_left)).collect()
    }

    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The lines, each ended, without trailing blanks.
    pub fn render(&self) -> String {
        let mut widths: Vec<usize> = (0..self.heads.len())
            .map(|i| {
                let cells = self.rows.iter().map(|row| width(&row[i])).max().unwrap_or(0);
                cells.max(width(&self.heads[i].name)).max(width(&self.heads[i].unit))
            })
            .collect();
        let spans = self.spans();
        for &(start, end) in &spans {
            // A group's title needs room over its columns.
            let have = widths[start..end].iter().sum::<usize>() + GAP.len() * (end - start - 1);
            widths[start] += width(&self.heads[start].group).saturating_sub(have);
        }
        let mut out = String::new();
        if self.heads.iter().any(|h| !h.group.is_empty()) {
            let mut line = String::new();
            for &(start, end) in &spans {
                let room = widths[start..end].iter().sum::<usize>() + GAP.len() * (end - start - 1);
                let group = &self.heads[start].group;
                let dashes = room - width(group);
                if group.is_empty() || end - start == 1 || dashes < 4 {
                    pad(&mut line, group, room, self.heads[start].is_left);
                } else {
                    // A rule shows which columns the title covers.
                    let left = "-".repeat(dashes / 2 - 1);
                    let right = "-".repeat(dashes - dashes / 2 - 1);
                    let _ = write!(line, "{left} {group} {right}");
                }
                line.push_str(GAP);
            }
            push_trimmed(&mut out, &line);
        }
        let mut head_line = |of: fn(&Head) -> &String| {
            let mut line = String::new();
            for (head, w) in self.heads.iter().zip(&widths) {
                pad(&mut line, of(head), *w, head.is_left);
                line.push_str(GAP);
            }
            push_trimmed(&mut out, &line);
        };
        head_line(|h| &h.name);
        if self.heads.iter().any(|h| !h.unit.is_empty()) {
            head_line(|h| &h.unit);
        }
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, head), w) in row.iter().zip(&self.heads).zip(&widths) {
                pad(&mut line, cell, *w, head.is_left);
                line.push_str(GAP);
            }
            push_trimmed(&mut out, &line);
        }
        out
    }

    /// Runs of neighbouring columns with the same group; columns without a group stand alone.
    fn spans(&self) -> Vec<(usize, usize)> {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for (i, head) in self.heads.iter().enumerate() {
            match spans.last_mut() {
                Some(last) if !head.group.is_empty() && self.heads[last.0].group == head.group => {
                    last.1 = i + 1;
                }
                _ => spans.push((i, i + 1)),
            }
        }
        spans
    }
}

fn push_trimmed(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}
