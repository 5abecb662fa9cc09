//! The parts of the page around the charts.

use super::elements::{CHART, Chart, median_rate, shown};
use super::escape::text;
use super::legend::{Entry, Show, ink};
use super::{Page, bars, elements, tables};
use crate::metrics::nines;
use crate::notes::shared;
use crate::number::grouped;
use crate::{ReportContext, Run};
use nandscape_core::Op;
use nandscape_sim::metrics::Sample;
use nandscape_sim::result::WorkloadResult;
use std::fmt::Write as _;

/// Title, answer, facts in a line of chips, links to the parts.
pub(super) fn header(
    page: &Page<'_>,
    context: &ReportContext,
    title: &str,
    parts: &[(&str, &str, String)],
) -> String {
    let mut out = String::from(
        "<a class=\"skip\" href=\"#main\">Skip to the tables and charts</a>\n<header class=\"top\">\n",
    );
    let _ = write!(out, "<p class=\"brand\">nandscape</p>\n<h1>{}</h1>\n", text(title));
    out.push_str(&super::answer::answer(page, context));
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let [group] = page.groups.as_slice() {
        let first = &page.runs[group.members[0]].result;
        let requests = page.runs.iter().map(|r| r.result.workload.requests).max().unwrap_or(0);
        let workload =
            format!("{} ({}, {} requests)", first.workload.spec, first.workload.format, grouped(requests));
        facts.push(("Workload", workload));
    } else if page.groups.len() > 1 {
        facts.push(("Workloads", page.groups.iter().map(|g| g.spec).collect::<Vec<_>>().join(", ")));
    }
    if let Some(sweep) = &context.sweep {
        if !sweep.workload.is_empty() {
            facts.push(("Workload", sweep.workload.clone()));
        }
        facts.push(("Sweep", sweep.size()));
    }
    let mut devices: Vec<String> = page.shapes.iter().flatten().map(crate::shape::Shape::describe).collect();
    devices.dedup();
    match devices.as_slice() {
        [] => {}
        [device] => facts.push(("Device", device.clone())),
        several => facts.push(("Devices", format!("{} different, see Configuration", several.len()))),
    }
    let used = |run: &Run| match &run.result.run.seeds {
        Some(seeds) => seeds.used.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
        None => run.result.run.seed.to_string(),
    };
    let mut seeds: Vec<String> = page.runs.iter().map(used).collect();
    seeds.dedup();
    if !seeds.is_empty() {
        facts.push(("Seed", seeds.join(", ")));
    }
    let version = page.runs.first().map_or(env!("CARGO_PKG_VERSION"), |run| run.result.run.version.as_str());
    facts.push(("Version", version.to_owned()));
    if !context.command.is_empty() {
        facts.push(("Made by", context.command.clone()));
    }
    out.push_str(&elements::facts(&facts));
    out.push_str("</header>\n");
    if parts.len() > 1 {
        out.push_str("<nav class=\"parts\" aria-label=\"Parts of the report\"><ul>\n");
        for (id, heading, _) in parts {
            let _ = writeln!(out, "<li><a href=\"#{id}\">{heading}</a></li>");
        }
        out.push_str("</ul></nav>\n");
    }
    out
}

/// The table of all figures, then total throughput and notes.
pub(super) fn summary(page: &Page<'_>) -> String {
    let mut out = tables::summary(page);
    out.push_str(&bars::throughput(page));
    out.push_str(&notes(page.runs));
    out
}

fn notes(runs: &[Run]) -> String {
    let of_workload = |workload: &WorkloadResult| {
        let (back, skipped) = (workload.time_reversals, workload.skipped);
        let back = (back > 0)
            .then(|| format!("{back} time stamps of the workload went back and were clamped or sorted"));
        let skipped =
            (skipped > 0).then(|| format!("{skipped} records of the workload were skipped: not I/O"));
        back.into_iter().chain(skipped)
    };
    let notes = shared(runs.iter(), "All runs", |run| {
        run.result.notes.iter().cloned().chain(of_workload(&run.result.workload)).collect()
    });
    if notes.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h3>Notes</h3>\n<ul class=\"notes\">\n");
    for (who, note) in notes {
        let _ = writeln!(out, "<li><strong>{}</strong>: {}</li>", text(&who), text(&note));
    }
    out.push_str("</ul>\n");
    out
}

pub(super) fn for_each_group(page: &Page<'_>, mut body: impl FnMut(usize) -> String) -> String {
    let mut out = String::new();
    for (i, group) in page.groups.iter().enumerate() {
        let content = body(i);
        if content.is_empty() {
            continue;
        }
        if page.groups.len() > 1 {
            let _ = writeln!(out, "<h3>{}</h3>", text(group.spec));
        }
        out.push_str(&content);
    }
    out
}

pub(super) fn has_series(page: &Page<'_>, group: usize) -> bool {
    page.groups[group]
        .members
        .iter()
        .any(|i| page.runs[*i].series.as_ref().is_some_and(|series| series.samples.len() > 1))
}

/// Percentiles: over the data, over the percentile, as a table.
pub(super) fn latency(page: &Page<'_>) -> String {
    let mut out = for_each_group(page, |group| {
        let members = &page.groups[group].members;
        let mut out = String::new();
        for (read, percentiles, over_data, word) in
            [(false, "nines-write", "lat-write", "Write"), (true, "nines-read", "lat-read", "Read")]
        {
            let is_used = members.iter().any(|i| {
                let latency = &page.runs[*i].result.latency_ns;
                (if read { latency.read.count } else { latency.write.count }) > 0
            });
            if !is_used {
                continue;
            }
            let data = [("group", group)];
            let chart = Chart { number: group, data: &data, ..CHART };
            let entry = |run: usize, ns: Option<f64>| {
                let label = page.runs[run].name().to_owned();
                Some(Entry { ink: ink(page.colours[run]), label, value: Show::Nanos.of(ns?) })
            };
            if has_series(page, group) {
                let last = |run: &usize| {
                    let samples = &page.runs[*run].series.as_ref()?.samples;
                    let of = |s: &Sample| if read { s.read_latency.clone() } else { s.write_latency.clone() };
                    let last = samples.iter().rev().map(of).find(|histogram| histogram.total() > 0)?;
                    entry(*run, Some(last.quantile(0.99) as f64))
                };
                let legend: Vec<Entry> = members.iter().filter_map(last).collect();
                let chart = Chart { legend: &legend, ..chart };
                let title = format!("{word} latency over the data");
                let about = "of the requests that completed in an interval (within 6.25 %)";
                let tabs = &["p99", "p50", "p99.9"];
                out += &Chart { kind: over_data, title: &title, about, tabs, ..chart }.html();
            }
            let title = format!("{word} latency by percentile");
            let about = "of the whole run; each step to the right is ten times rarer; points need at least one slower request";
            let points = |run: usize| {
                let latency = &page.runs[run].result.latency_ns;
                nines(if read { &latency.read } else { &latency.write })
            };
            if members.iter().all(|run| points(*run).len() < 2) {
                continue;
            }
            let rarest = |run: &usize| entry(*run, points(*run).last().map(|(_, ns)| *ns));
            let legend: Vec<Entry> = members.iter().filter_map(rarest).collect();
            out += &Chart { kind: percentiles, title: &title, about, legend: &legend, ..chart }.html();
        }
        if out.is_empty() { out } else { format!("<div class=\"grid\">\n{out}</div>\n") }
    });
    out.push_str(&tables::latency(page));
    out
}

/// Throughput of single requests, one panel per run.
pub(super) fn requests(page: &Page<'_>) -> String {
    for_each_group(page, |group| {
        let mut panels = String::new();
        for &run in &page.groups[group].members {
            let Some(series) = &page.runs[run].series else { continue };
            let kept = elements::kept_requests(series).count();
            if kept == 0 {
                continue;
            }
            let share = shown(kept, page.runs[run].result.workload.requests);
            let data = [("group", group), ("run", run)];
            let (title, about, without) = (&page.name(run), &share, "");
            let entry = |(op, label, ink): (Op, &str, String)| {
                let value = format!("{} MB/s", Show::Digits.of(median_rate(series, op)?));
                Some(Entry { ink, label: format!("{label}, median"), value })
            };
            let ops = [(Op::Write, "write", ink(page.colours[run])), (Op::Read, "read", "soft".to_owned())];
            let legend: Vec<Entry> = ops.into_iter().filter_map(entry).collect();
            panels += &Chart {
                kind: "request",
                number: run,
                data: &data,
                title,
                about,
                without,
                legend: &legend,
                ..CHART
            }
            .html();
        }
        if panels.is_empty() {
            return panels;
        }
        format!(
            "<p class=\"lead\">Bytes of a request over its latency, MB/s, in the order of completion. All panels have the same \
             scales, so that the runs can be compared.</p>\n<div class=\"grid\">\n{panels}</div>\n"
        )
    })
}

/// Wear maps, one card per run, and the table of erase counts.
pub(super) fn wear(page: &Page<'_>) -> String {
    let mut out = for_each_group(page, |group| {
        let mut cards = String::new();
        for &run in &page.groups[group].members {
            let maps = super::maps::captions(page, run);
            if maps.is_empty() {
                continue;
            }
            let _ = writeln!(cards, "<div class=\"card\"><h4>{}</h4>", page.name(run));
            for (kind, caption) in maps {
                let _ = writeln!(
                    cards,
                    "<figure class=\"heat\" data-heat=\"{kind}\" data-group=\"{group}\" data-run=\"{run}\">\
                     <figcaption>{caption}</figcaption><canvas role=\"img\" aria-label=\"{caption}\"></canvas>\
                     <div class=\"heat-legend\"></div></figure>"
                );
            }
            cards.push_str("</div>\n");
        }
        if cards.is_empty() {
            return cards;
        }
        format!(
            "<div class=\"row\"><p class=\"lead\">Even colour is even wear.</p><div class=\"tabs\" role=\"group\" \
             aria-label=\"Colour scale\" data-heat-scale=\"{group}\"><button type=\"button\" data-scale=\"shared\" \
             aria-pressed=\"true\">same scale for all</button><button type=\"button\" data-scale=\"own\" \
             aria-pressed=\"false\">own scale</button></div></div>\n<div class=\"grid maps\">\n{cards}</div>\n"
        )
    });
    out.push_str(&tables::wear(page));
    out
}

pub(super) fn footer(runs: &[Run], context: &ReportContext) -> String {
    let command = if context.command.is_empty() {
        String::new()
    } else {
        format!("<p>To make this report again: <code>{}</code></p>\n", text(&context.command))
    };
    let note = if runs.is_empty() {
        ""
    } else {
        "<p>Times and throughputs are simulated: they follow from the configuration, the workload and the seed, and do not \
         depend on the machine that ran the simulation. Preconditioning is counted nowhere.</p>\n"
    };
    format!(
        "<footer>\n{note}{command}<p>Charts: uPlot 1.6.32, MIT licence (text in this file).</p>\n</footer>\n"
    )
}
