//! Zones as a strip of cells, one for each.

use super::elements::facts;
use super::escape::text;
use crate::Run;
use crate::number::grouped;
use nandscape_core::units::format_bytes;
use nandscape_sim::result::ZonesResult;
use std::fmt::Write as _;

/// The zones of every run that has any.
pub(super) fn zones(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let Some(zones) = &run.result.between.zones else { continue };
        if runs.len() > 1 {
            let _ = writeln!(out, "<h3>{}</h3>", text(run.name()));
        }
        out.push_str(&facts(&pairs(zones)));
        out.push_str(&strip(zones));
    }
    out
}

fn pairs(zones: &ZonesResult) -> Vec<(&'static str, String)> {
    let limit = |most: Option<u32>| most.map_or_else(|| "no limit".to_owned(), |most| most.to_string());
    let counts = zones.counts;
    vec![
        ("Zones", grouped(u64::from(zones.zones))),
        ("Size", format_bytes(zones.size_bytes)),
        ("Capacity", format_bytes(zones.capacity_bytes)),
        ("Most active", limit(zones.max_active)),
        ("Most open", limit(zones.max_open)),
        ("Appends", grouped(counts.appends)),
        ("Opened", grouped(counts.opens)),
        ("Closed for others", grouped(counts.implicit_closes)),
        ("Finished", grouped(counts.finishes)),
        ("Reset", grouped(counts.resets)),
    ]
}

/// A cell for each zone: its class is its state, its bar the share that is written. The letter in it says the
/// state without colour.
fn strip(zones: &ZonesResult) -> String {
    let mut out = String::from("<p class=\"zone-key\">");
    for (state, count) in &zones.states {
        let _ = write!(
            out,
            "<span class=\"zone {}\"><b>{}</b></span> {} ({}) ",
            text(state),
            letter(state),
            text(state),
            grouped(u64::from(*count))
        );
    }
    out.push_str("</p>\n<ol class=\"zones\" tabindex=\"0\" aria-label=\"zones at the end of the run\">\n");
    for zone in &zones.shown {
        let percent = (zone.written * 100.0).round();
        // A conventional zone has no write pointer that could say it.
        let written =
            if zone.state == "not-write-pointer" { String::new() } else { format!(", {percent} % written") };
        let label = format!("zone {}: {}{written}", zone.zone, zone.state);
        let _ = writeln!(
            out,
            "<li class=\"zone {}\" title=\"{label}\" aria-label=\"{label}\" style=\"--w:{percent}%\"><b>{}</b></li>",
            text(&zone.state),
            letter(&zone.state)
        );
    }
    out.push_str("</ol>\n");
    if zones.shown.len() < zones.zones as usize {
        let (shown, all) = (zones.shown.len() as u64, u64::from(zones.zones));
        let _ = writeln!(out, "<p>{} of {} zones, evenly spaced</p>", grouped(shown), grouped(all));
    }
    out
}

fn letter(state: &str) -> &'static str {
    match state {
        "not-write-pointer" => "n",
        "empty" => "e",
        "implicitly-open" => "i",
        "explicitly-open" => "o",
        "closed" => "c",
        "full" => "f",
        "read-only" => "r",
        _ => "x",
    }
}
