//! Aligned columns for a terminal.

use crate::lines::broken;
use crate::number::{Kind, or_dash};
use nandscape_sim::trust::ALIKE_SHARE;
use std::fmt::Write as _;

/// What a narrow terminal keeps of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Kept as long as there is a table.
    Essential,
    /// Left out after all minor columns.
    Useful,
    /// Left out first.
    Minor,
}

/// Head of a column: group (shared by neighbours), name, unit.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub group: String,
    pub name: String,
    pub unit: String,
    pub is_left: bool,
    pub weight: Weight,
    pub is_marked: bool,
}

impl Head {
    /// A column of words, which are what the row is.
    pub fn text(name: &str) -> Self {
        let [group, unit] = [String::new(), String::new()];
        Self {
            group,
            name: name.to_owned(),
            unit,
            is_left: true,
            weight: Weight::Essential,
            is_marked: false,
        }
    }

    /// A column of figures.
    pub fn number(group: &str, name: &str, unit: &str) -> Self {
        let [group, name, unit] = [group, name, unit].map(str::to_owned);
        Self { group, name, unit, is_left: false, weight: Weight::Useful, is_marked: false }
    }

    pub fn weighing(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    /// Group, name and unit on one line.
    fn full_name(&self) -> String {
        let name = format!("{} {}", self.group.trim(), self.name.trim());
        match self.unit.trim() {
            "" => name.trim().to_owned(),
            unit => format!("{}, {unit}", name.trim()),
        }
    }
}

/// A table with up to three head lines.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    heads: Vec<Head>,
    rows: Vec<Vec<String>>,
}

/// Stands behind the best value of a column.
const MARK: char = '*';

const GAP: &str = "  ";

fn width_of(text: &str) -> usize {
    text.chars().count()
}

fn pad(out: &mut String, text: &str, width_wanted: usize, is_left: bool) {
    let fill = width_wanted.saturating_sub(width_of(text));
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

    /// Marks cells of the column that was added last. The others get a blank, so that digits stay in line.
    pub fn mark(&mut self, is_marked: &[bool]) {
        assert_eq!(is_marked.len(), self.rows.len(), "a mark for each row");
        if is_marked.contains(&true) {
            self.heads.last_mut().expect("a column was added").is_marked = true;
            for (row, is_marked) in self.rows.iter_mut().zip(is_marked) {
                row.last_mut().expect("a column was added").push(if *is_marked { MARK } else { ' ' });
            }
        }
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

    /// The table for a terminal of so many columns. What does not fit is left out, the least important
    /// column first, and named below; if the essential columns do not fit, each row is a block of lines.
    /// Without a width the table is whole.
    pub fn render(&self, width: Option<usize>) -> String {
        let Some(room) = width else { return self.lines() };
        let mut shown: Vec<usize> = (0..self.heads.len()).collect();
        loop {
            let table = self.only(&shown);
            let mut text = table.lines();
            if text.lines().all(|line| width_of(line) <= room) {
                text.push_str(&table.legend(room));
                let left_out = (0..self.heads.len()).filter(|at| !shown.contains(at));
                let names = names_of(left_out.map(|at| &self.heads[at]));
                if !names.is_empty() {
                    let line = format!("not shown for lack of room, but in --json: {names}");
                    text.push_str(&(broken(&line, room).join("\n") + "\n"));
                }
                return text;
            }
            let columns =
                shown.iter().enumerate().filter(|(_, at)| self.heads[**at].weight > Weight::Essential);
            let least = columns.max_by_key(|(place, at)| (self.heads[**at].weight, *place));
            match least {
                Some((place, _)) if shown.len() > 2 => _ = shown.remove(place),
                _ => return self.stacked(room),
            }
        }
    }

    fn only(&self, columns: &[usize]) -> Self {
        let of = |row: &Vec<String>| columns.iter().map(|at| row[*at].clone()).collect();
        let heads = columns.iter().map(|at| self.heads[*at].clone()).collect();
        Self { heads, rows: self.rows.iter().map(of).collect() }
    }

    /// What explains the marks, if there are any.
    fn legend(&self, room: usize) -> String {
        if self.heads.iter().any(|head| head.is_marked) {
            let line = format!("{MARK} the best, where runs differ by {} % or more", ALIKE_SHARE * 100.0);
            broken(&line, room).join("\n") + "\n"
        } else {
            String::new()
        }
    }

    /// A block of lines for each row: its first cell, then every other cell behind the name of its column.
    fn stacked(&self, room: usize) -> String {
        let mut out = String::new();
        for row in &self.rows {
            for (number, (head, cell)) in self.heads.iter().zip(row).enumerate() {
                let (name, cell) = (head.full_name(), cell.trim());
                if number > 0 && (cell.is_empty() || cell == "-") {
                    continue;
                }
                let indent = if number == 0 { "" } else { "  " };
                let colon = if name.is_empty() { "" } else { ": " };
                push_trimmed(&mut out, &format!("{indent}{name}{colon}{cell}"));
            }
        }
        out + &self.legend(room)
    }

    /// The lines, each ended, without trailing blanks.
    fn lines(&self) -> String {
        let mut widths: Vec<usize> = (0..self.heads.len())
            .map(|i| {
                let cells = self.rows.iter().map(|row| width_of(&row[i])).max().unwrap_or(0);
                cells.max(width_of(&self.heads[i].name)).max(width_of(&self.heads[i].unit))
            })
            .collect();
        let spans = self.spans();
        for &(start, end) in &spans {
            // A group's title needs room over its columns.
            let have = widths[start..end].iter().sum::<usize>() + GAP.len() * (end - start - 1);
            widths[start] += width_of(&self.heads[start].group).saturating_sub(have);
        }
        let mut out = String::new();
        if self.heads.iter().any(|h| !h.group.is_empty()) {
            let mut line = String::new();
            for &(start, end) in &spans {
                let room = widths[start..end].iter().sum::<usize>() + GAP.len() * (end - start - 1);
                let group = &self.heads[start].group;
                let dashes = room - width_of(group);
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

/// Names of columns, each group named once.
fn names_of<'a>(heads: impl Iterator<Item = &'a Head>) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut group = "";
    for head in heads {
        let own = if head.group == group { "" } else { &head.group };
        names.push(format!("{own} {}", head.name.trim()).trim_start().to_owned());
        group = &head.group;
    }
    names.join(", ")
}

fn push_trimmed(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let cells = |cells: [&str; 2]| cells.map(str::to_owned);
        let mut table = Table::new();
        table.column(Head::text("FTL"), cells(["page-map", "pm-gcl"]));
        table.column(Head::number("", "WAF", "").weighing(Weight::Essential), cells(["2.345", "11.876"]));
        table.mark(&[true, false]);
        table.column(Head::number("erases", "total", ""), cells(["1,234", "5,678"]));
        table.column(Head::number("erases", "sd", "").weighing(Weight::Minor), cells(["1.25", "-"]));
        table.column(Head::number("DRAM", "device", "KiB"), cells(["512", "1024"]));
        table
    }

    const WHOLE: &str = "                   - erases --    DRAM
FTL           WAF  total    sd  device
                                   KiB
page-map   2.345*  1,234  1.25     512
pm-gcl    11.876   5,678     -    1024
";

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_names_those_left_out() {
        assert_eq!(table().render(None), WHOLE);
        let wide = table().render(Some(80));
        assert_eq!(wide, format!("{WHOLE}* the best, where runs differ by 0.5 % or more\n"));
        let narrower = table().render(Some(37));
        assert!(narrower.contains("device\n") && !narrower.contains("sd "), "{narrower}");
        assert!(narrower.contains("* the best, where runs differ by 0.5\n% or more\n"), "{narrower}");
        assert!(narrower.ends_with("not shown for lack of room, but in\n--json: erases sd\n"), "{narrower}");
        let narrow = table().render(Some(24));
        assert!(narrow.lines().all(|line| line.len() <= 24), "{narrow}");
        assert!(narrow.starts_with("FTL           WAF\npage-map   2.345*\npm-gcl    11.876\n"), "{narrow}");
        assert!(narrow.contains("total, sd, DRAM"), "{narrow}");
    }

    #[test]
    fn rows_are_blocks_of_lines_where_the_essential_columns_do_not_fit() {
        let stacked = "FTL: page-map
  WAF: 2.345*
  erases total: 1,234
  erases sd: 1.25
  DRAM device, KiB: 512
FTL: pm-gcl
  WAF: 11.876
  erases total: 5,678
  DRAM device, KiB: 1024
* the best,
where runs
differ by 0.5 %
or more
";
        assert_eq!(table().render(Some(15)), stacked);
    }
}
