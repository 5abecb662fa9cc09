//! Zones as a strip of cells in a terminal: a letter for the state, a shade below it for the share that is
//! written, and another for the share that is valid where that is known. Colour only repeats the letter.

use crate::console::Screen;
use nandscape_core::Word;
use nandscape_core::units::format_bytes;
use nandscape_core::zone::ZoneState;
use nandscape_report::broken;
use nandscape_sim::result::ZonesResult;
use nandscape_sim::zones::ZoneColumn;

/// What stands before the cells of a line.
const LABEL: usize = 8;
/// Lines of the terminal that others than the strip need.
const OTHER_LINES: usize = 4;

/// The strip with its legend, in lines that fit into the width of the screen; neighbours are merged until
/// they fit into its height, too.
pub fn strip(zones: &ZonesResult, screen: &Screen) -> Vec<String> {
    let mut out = wrapped("zones", &facts(zones), screen.width);
    let Some(history) = &zones.history else { return out };
    let Some(column) = history.columns.first() else { return out };
    let (mut column, mut each) = (column.clone(), history.zones_per_row);
    // Whole sixteens, so that the numbers at the left are easy to count from.
    let across = (screen.width.saturating_sub(LABEL + 1) / 16 * 16).max(16);
    let kinds = if column.valid.is_empty() { 2 } else { 3 };
    let lines = |column: &ZoneColumn| column.states.len().div_ceil(across) * kinds;
    let legend = wrapped("", &legend(&column, each, screen), screen.width);
    while out.len() + legend.len() + lines(&column) + OTHER_LINES > screen.height && column.states.len() > 16
    {
        (column, each) = (column.halved(), each * 2);
    }
    let legend = wrapped("", &self::legend(&column, each, screen), screen.width);
    for first in (0..column.states.len()).step_by(across) {
        let cells = first..column.states.len().min(first + across);
        let label = |text: &str| format!("{text:>LABEL$} ");
        let states: String =
            column.states[cells.clone()].chars().map(|state| screen.coloured(state)).collect();
        out.push(label(&(first * each as usize).to_string()) + &states);
        let shades = |percents: &mut dyn Iterator<Item = Option<u8>>| -> String {
            percents.map(|percent| percent.map_or('?', |percent| screen.shade(percent))).collect()
        };
        out.push(label("written") + &shades(&mut column.written[cells.clone()].iter().copied().map(Some)));
        if let Some(valid) = column.valid.get(cells) {
            out.push(label("valid") + &shades(&mut valid.iter().copied()));
        }
    }
    out.extend(legend);
    out
}

/// Counts by state, and what is open and active against the limits.
fn facts(zones: &ZonesResult) -> String {
    let state = |(name, count): (&String, &u32)| match ZoneState::of_word(name) {
        Some(state) => format!("{} {name} {count}", state.letter()),
        None => format!("{name} {count}"),
    };
    let states: Vec<String> = zones.states.iter().map(state).collect();
    let [open, active] = zones.open_and_active();
    let limit = |count: u32, most: Option<u32>| {
        most.map_or_else(|| format!("{count} (no limit)"), |most| format!("{count} of {most}"))
    };
    let (count, capacity) = (zones.zones, format_bytes(zones.capacity_bytes));
    format!(
        "{count} of {capacity}: {}; open {}, active {}",
        states.join(", "),
        limit(open, zones.max_open),
        limit(active, zones.max_active)
    )
}

fn legend(column: &ZoneColumn, each: u32, screen: &Screen) -> String {
    let [low, some, most, all] = [1, 26, 51, 76].map(|percent| screen.shade(percent));
    let unknown = if column.valid.contains(&None) { ", ? unknown" } else { "" };
    let cells = if each == 1 { String::new() } else { format!("; a cell is {each} zones") };
    format!("share: {low} to 25 %, {some} to 50 %, {most} to 75 %, {all} above{unknown}{cells}")
}

/// Words in lines of a width, behind a label.
fn wrapped(label: &str, text: &str, width: usize) -> Vec<String> {
    let lines = broken(text, width.saturating_sub(LABEL + 1)).into_iter().enumerate();
    lines.map(|(number, line)| format!("{:>LABEL$} {line}", if number == 0 { label } else { "" })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::zones::ZoneHistory;

    fn zones(cells: usize) -> ZonesResult {
        let column = ZoneColumn {
            states: "eiocfrx".chars().cycle().take(cells).collect(),
            written: (0..cells).map(|cell| (cell % 101) as u8).collect(),
            valid: (0..cells).map(|cell| (cell > 3).then_some(50)).collect(),
            ..ZoneColumn::default()
        };
        let history = ZoneHistory { zones_per_row: 1, columns: vec![column], ..ZoneHistory::default() };
        ZonesResult {
            zones: cells as u32,
            capacity_bytes: 1 << 20,
            max_open: Some(6),
            states: [("empty", 5), ("implicitly-open", 3), ("closed", 1)]
                .map(|(s, n)| (s.to_owned(), n))
                .into(),
            history: Some(history),
            ..ZonesResult::default()
        }
    }

    fn plain(width: usize, height: usize) -> Screen {
        Screen { width, height, is_live: false, has_colour: false, has_blocks: true }
    }

    #[test]
    fn every_line_fits_and_limits_are_beside_the_counts() {
        for (width, height) in [(24, 24), (40, 60), (80, 24), (200, 50)] {
            for cells in [1, 16, 100, 256] {
                let lines = strip(&zones(cells), &plain(width, height));
                assert!(
                    lines.iter().all(|line| line.chars().count() <= width.max(25)),
                    "{width}: {lines:#?}"
                );
                assert!(lines.len() < height || cells <= 16 || width < 40, "{width} x {height}: {lines:#?}");
            }
        }
        let text = strip(&zones(8), &plain(200, 50)).join("\n");
        assert!(text.contains("8 of 1 MiB: c closed 1, e empty 5, i implicitly-open 3"), "{text}");
        assert!(text.contains("open 3 of 6, active 4 (no limit)"), "{text}");
        assert!(text.contains("       0 eiocfrxe\n written  ░░░░░░░\n   valid ????▒▒▒▒"), "{text}");
    }

    #[test]
    fn colour_and_block_characters_are_left_out_where_they_cannot_be_shown() {
        let plain_text = strip(&zones(8), &plain(80, 24)).join("\n");
        assert!(!plain_text.contains('\u{1b}'), "{plain_text}");
        let ascii = strip(&zones(8), &Screen { has_blocks: false, ..plain(80, 24) }).join("\n");
        assert!(ascii.is_ascii(), "{ascii}");
        let coloured = strip(&zones(8), &Screen { has_colour: true, ..plain(80, 24) }).join("\n");
        let mut bare = String::new();
        let mut rest = coloured.as_str();
        while let Some(at) = rest.find('\u{1b}') {
            bare.push_str(&rest[..at]);
            rest = &rest[at + rest[at..].find('m').unwrap() + 1..];
        }
        assert_eq!(bare + rest, plain_text, "colour adds nothing that is not there without it");
        assert!(coloured.contains("\u{1b}["), "{coloured}");
    }

    #[test]
    fn a_strip_that_is_too_tall_is_merged_and_says_so() {
        let lines = strip(&zones(256), &plain(40, 24));
        let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
        assert!(words.join(" ").ends_with("a cell is 4 zones"), "{lines:#?}");
        assert!(lines.len() + OTHER_LINES <= 24 && lines.iter().any(|line| line.starts_with("     192 ")));
    }
}
