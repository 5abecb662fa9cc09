//! Zones: over the run as a chart of cells, at its end as a strip of them.

use super::Page;
use super::elements::facts;
use super::escape::text;
use super::maps::base64;
use super::tables::frame;
use crate::number::{grouped, ratio};
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_core::zone::{LIFETIMES, ZoneOwner, ZoneState};
use nandscape_core::{ObjectReport, Word};
use nandscape_sim::result::{ChunksResult, ZonesResult};
use nandscape_sim::zones::{ZoneColumn, ZoneHistory};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The zones, chunks and objects of every run that has any.
pub(super) fn zones(page: &Page<'_>) -> String {
    let mut out = String::new();
    for (number, run) in page.runs.iter().enumerate() {
        let between = &run.result.between;
        if between.zones.is_none() && between.chunks.is_none() && between.objects.is_none() {
            continue;
        }
        if page.runs.len() > 1 {
            let _ = writeln!(out, "<h3>{}</h3>", page.name(number));
        }
        if let Some(zones) = &between.zones {
            out.push_str(&facts(&pairs(zones)));
            if let Some(history) = over_time(zones) {
                out.push_str(&chart(number, zones, history));
            }
            out.push_str(&strip(zones));
        }
        if let Some(chunks) = &between.chunks {
            out.push_str(&facts(&chunk_pairs(chunks)));
        }
        if let Some(objects) = &between.objects {
            out.push_str(&facts(&object_pairs(objects)));
        }
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

fn chunk_pairs(chunks: &ChunksResult) -> Vec<(&'static str, String)> {
    let state = |name: &str| grouped(chunks.states.get(name).copied().unwrap_or(0).into());
    let counts = chunks.counts;
    vec![
        ("Chunks", grouped(u64::from(chunks.chunks))),
        ("Chunk size", format_bytes(chunks.chunk_bytes)),
        ("Smallest write", format_bytes(chunks.write_bytes)),
        ("Free", state("free")),
        ("Open", state("open")),
        ("Closed", state("closed")),
        ("Offline", state("offline")),
        ("Chunks reset", grouped(counts.resets)),
        ("Closed early", grouped(counts.early_closes)),
        ("Largest wear index", chunks.wear_max.to_string()),
    ]
}

fn object_pairs(objects: &ObjectReport) -> Vec<(&'static str, String)> {
    vec![
        ("Objects", grouped(objects.objects)),
        ("Extents", grouped(objects.extents)),
        ("Live data", format_bytes(objects.live_bytes)),
        ("Zones in use hold", format_bytes(objects.used_bytes)),
        ("Space amplification", ratio(objects.space_amplification())),
        ("Zones emptied", grouped(objects.resets)),
        ("Zones finished early", grouped(objects.finishes)),
        ("Moved to empty zones", format_bytes(objects.moved_bytes)),
    ]
}

/// What the chart draws; a single moment is what the strip shows.
fn over_time(zones: &ZonesResult) -> Option<&ZoneHistory> {
    zones.history.as_ref().filter(|history| history.columns.len() > 1)
}

fn knows_valid(history: &ZoneHistory) -> bool {
    history.columns.iter().any(|column| !column.valid.is_empty())
}

/// Unknown, among percents.
const UNKNOWN: u8 = 255;

/// The data of a run's chart, column by column.
pub(super) fn data(zones: &ZonesResult) -> Option<Value> {
    let history = over_time(zones)?;
    let bytes =
        |of: fn(&ZoneColumn) -> Vec<u8>| base64(&history.columns.iter().flat_map(of).collect::<Vec<_>>());
    let valid = |column: &ZoneColumn| match column.valid.as_slice() {
        [] => vec![UNKNOWN; column.written.len()],
        valid => valid.iter().map(|percent| percent.unwrap_or(UNKNOWN)).collect(),
    };
    let names: Vec<[String; 2]> =
        ZoneState::ALL.iter().map(|state| [state.letter().to_string(), state.name().to_owned()]).collect();
    Some(json!({
        "zones": zones.zones,
        "each": history.zones_per_row,
        "time": history.time_ns,
        "names": names,
        "states": history.columns.iter().map(|column| column.states.as_str()).collect::<Vec<_>>(),
        "written": bytes(|column| column.written.clone()),
        "valid": knows_valid(history).then(|| bytes(valid)),
        "kinds": kinds(history),
    }))
}

/// Views in which each row has one of several kinds, where a layer knows them: letters column by column, and
/// what each means.
fn kinds(history: &ZoneHistory) -> Value {
    let owners = ZoneOwner::ALL.iter().map(|owner| (owner.letter(), owner.name()));
    let lifetimes = ('0'..).zip(LIFETIMES);
    let view = |of: fn(&ZoneColumn) -> &str, names: Vec<(char, &str)>| {
        let columns: Vec<&str> = history.columns.iter().map(of).collect();
        columns.iter().any(|column| !column.is_empty()).then(|| json!({ "names": names, "columns": columns }))
    };
    json!({
        "owner": view(|column| &column.owners, owners.collect()),
        "lifetime": view(|column| &column.lifetimes, lifetimes.collect()),
    })
}

/// An empty figure that the script fills, and the same as a table.
fn chart(run: usize, zones: &ZonesResult, history: &ZoneHistory) -> String {
    let knows_valid = knows_valid(history);
    let mut views = vec![("state", "state"), ("written", "written share")];
    views.extend(knows_valid.then_some(("valid", "valid share")));
    let knows = |of: fn(&ZoneColumn) -> &str| history.columns.iter().any(|column| !of(column).is_empty());
    views.extend(knows(|column| &column.owners).then_some(("owner", "owner")));
    views.extend(knows(|column| &column.lifetimes).then_some(("lifetime", "lifetime")));
    let mut tabs = String::new();
    for (at, (view, name)) in views.into_iter().enumerate() {
        let is_first = at == 0;
        let _ = write!(
            tabs,
            "<button type=\"button\" data-zone-view=\"{view}\" aria-pressed=\"{is_first}\">{name}</button>"
        );
    }
    let about = about(zones, history);
    format!(
        "<figure class=\"card zone-chart\" data-zones=\"{run}\" aria-labelledby=\"t-zones-{run}\">\n\
         <div class=\"chart-head\"><div><h4 id=\"t-zones-{run}\">Zones over the run</h4>\
         <p class=\"about\">{about}</p></div><div class=\"controls\"><div class=\"tabs\" role=\"group\" \
         aria-label=\"View\">{tabs}</div></div></div>\n\
         <canvas tabindex=\"0\" role=\"application\" aria-roledescription=\"chart of zones over time\" \
         aria-label=\"zones over the run; the arrow keys go through zones and times\" \
         aria-describedby=\"at-zones-{run}\"></canvas>\n\
         <div class=\"zone-at\"><span class=\"zone-legend\"></span>\
         <output id=\"at-zones-{run}\" aria-live=\"polite\"></output></div>\n\
         <noscript><p class=\"about\">Drawn by a script; the table does without.</p></noscript></figure>\n\
         <details><summary>Zones over the run as a table</summary>\n{}</details>\n",
        table(history, zones, knows_valid)
    )
}

/// The resolution, in words.
fn about(zones: &ZonesResult, history: &ZoneHistory) -> String {
    let rows = match history.zones_per_row {
        1 => "a row for each zone".to_owned(),
        several => format!(
            "a row for {several} neighbours: that of an open zone if there is one, else of a closed one, \
             else the most frequent state; shares are means"
        ),
    };
    let columns = history.columns.len() as u64;
    let least = format_ns(history.interval_ns);
    let all = grouped(u64::from(zones.zones));
    format!("{all} zones, {rows}; {} moments, at least {least} apart", grouped(columns))
}

/// Moments in the table.
const TABLE_COLUMNS: usize = 12;

fn table(history: &ZoneHistory, zones: &ZonesResult, knows_valid: bool) -> String {
    let last = history.columns.len() - 1;
    let shown = (last + 1).min(TABLE_COLUMNS);
    // The first and the last, and evenly spaced ones between them.
    let moments: Vec<usize> = (0..shown).map(|at| at * last / (shown - 1)).collect();
    let mut head = String::from("<tr><th scope=\"col\" class=\"left\">zone</th>");
    for moment in &moments {
        let _ = write!(head, "<th scope=\"col\">{}</th>", format_ns(history.time_ns[*moment]));
    }
    head.push_str("</tr>");
    let mut body = String::new();
    for row in 0..history.columns[0].states.len() {
        let first = row as u32 * history.zones_per_row;
        let end = (first + history.zones_per_row).min(zones.zones) - 1;
        let name = if first == end { first.to_string() } else { format!("{first} to {end}") };
        let _ = write!(body, "<tr><th scope=\"row\" class=\"left\">{name}</th>");
        for column in moments.iter().map(|moment| &history.columns[*moment]) {
            let (state, written) = (&column.states[row..=row], column.written[row]);
            let valid = column.valid.get(row).copied().flatten();
            let valid = valid.map_or(String::new(), |valid| format!(", {valid}"));
            let kinds = [&column.owners, &column.lifetimes].map(|letters| letters.get(row..=row));
            let kinds: Vec<&str> = kinds.into_iter().flatten().filter(|letter| *letter != "-").collect();
            let kinds = if kinds.is_empty() { String::new() } else { format!(" {}", kinds.concat()) };
            let _ = write!(body, "<td>{state} {written}{valid}{kinds}</td>");
        }
        body.push_str("</tr>\n");
    }
    let letters = ZoneState::ALL.map(|state| format!("{} {}", state.letter(), state.name())).join(", ");
    let valid = if knows_valid { ", then the percent that is valid, where it is known" } else { "" };
    let owners = ZoneOwner::ALL.iter().map(|owner| format!("{} {}", owner.letter(), owner.name()));
    let lifetimes = LIFETIMES.iter().enumerate().map(|(place, name)| format!("{place} {name}"));
    let kinds = if history.columns.iter().any(|column| !column.owners.is_empty()) {
        let all: Vec<String> = owners.chain(lifetimes).collect();
        format!(" Behind it whose data it is, and its lifetime: {}.", all.join(", "))
    } else {
        String::new()
    };
    let caption = format!("State and percent written{valid}, at {shown} moments. {letters}.{kinds}");
    frame("Zones over the run", &caption, &head, &body)
}

/// A cell for each zone: its class is its state, its bar the share that is written, the darker part of it
/// that which is valid. The letter in it says the state without colour.
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
        let percent = |share: f64| (share * 100.0).round();
        let written = percent(zone.written);
        let mut label = format!("zone {}: {}", zone.zone, zone.state);
        // A conventional zone has no write pointer that could say it.
        if zone.state != ZoneState::NotWritePointer.name() {
            let _ = write!(label, ", {written} % written");
        }
        let mut style = format!("--w:{written}%");
        if let Some(valid) = zone.valid.map(percent) {
            let _ = write!(label, ", {valid} % valid");
            let _ = write!(style, ";--v:{valid}%");
        }
        let label = text(&label);
        let _ = writeln!(
            out,
            "<li class=\"zone {}\" title=\"{label}\" aria-label=\"{label}\" style=\"{style}\"><b>{}</b></li>",
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

fn letter(state: &str) -> char {
    ZoneState::of_word(state).map_or('?', ZoneState::letter)
}
