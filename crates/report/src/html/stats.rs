//! Statistics of a workload: what is asked for, how large, where, and how it lies on pages and blocks.

use super::bars::{Bar, chart, percent};
use super::elements::{self, CHART, Chart, cells, heads, left_heads, row, shown};
use super::escape::text;
use super::legend::{Entry, ink};
use super::tables::frame;
use super::values::number;
use crate::number::grouped;
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_trace::TraceStats;
use nandscape_trace::stats::{Alignment, Amount, Distribution};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Points of the address plot in the page.
const MAX_POINTS: usize = 8000;

pub(super) fn workloads(stats: &[(String, TraceStats)]) -> String {
    let mut out = String::new();
    for (i, (name, stats)) in stats.iter().enumerate() {
        let _ = writeln!(out, "<h3>{}</h3>", text(name));
        out.push_str(&facts(stats));
        out.push_str("<div class=\"grid\">\n");
        out.push_str(&plots(stats, i));
        out.push_str("</div>\n<div class=\"grid three\">\n");
        out.push_str(&mix(stats));
        out.push_str(&sizes(stats));
        out.push_str(&common_sizes(stats));
        out.push_str("</div>\n<div class=\"grid\">\n");
        for (alignment, unit) in stats.alignment.iter().zip(["page", "block"]) {
            out.push_str(&alignment_card(alignment, unit));
        }
        out.push_str("</div>\n");
        out.push_str(&distributions(stats));
    }
    out
}

/// Addresses of the requests, and how many of each kind are drawn; the working set.
fn plots(stats: &TraceStats, index: usize) -> String {
    let data = [("workload", index)];
    let without = "the tables do without.";
    let chart = Chart { number: index, data: &data, can_be_log: false, without, ..CHART };
    let entry =
        |place: usize, label: &str, value: String| Entry { ink: ink(place), label: label.to_owned(), value };
    let mut out = String::new();
    if !stats.points.is_empty() {
        let kinds = [('W', "writes"), ('R', "reads"), ('D', "discards"), ('Z', "write zeroes")];
        let count = |letter: char| kept(stats).filter(|point| point.op == letter).count() as u64;
        let kinds = kinds.iter().enumerate().filter(|(_, (letter, _))| count(*letter) > 0);
        let legend: Vec<Entry> =
            kinds.map(|(place, (letter, label))| entry(place, label, grouped(count(*letter)))).collect();
        let about = shown(kept(stats).count(), stats.requests);
        out +=
            &Chart { kind: "addresses", title: "Addresses", about: &about, legend: &legend, ..chart }.html();
    }
    if let Some(last) = stats.windows.last().filter(|_| stats.windows.len() > 1) {
        let each = stats.windows.iter().map(|window| window.requests).max().unwrap_or(0);
        let pages = |pages: u64| format_bytes(pages * 4096);
        let legend = [
            entry(0, "since the start", pages(last.pages_so_far)),
            entry(1, &format!("in {} requests", grouped(each)), pages(last.pages)),
        ];
        let about = "4 KiB pages touched in a stretch of requests, and since the start";
        out += &Chart { kind: "workingset", title: "Working set", about, legend: &legend, ..chart }.html();
    }
    out
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

fn facts(stats: &TraceStats) -> String {
    let s = &stats.sequentiality;
    let data = stats.sizes.count;
    let times = if stats.info.has_real_times { "" } else { " (not real times)" };
    let mut facts = vec![
        ("Format", stats.info.format.clone()),
        ("Requests", grouped(stats.requests)),
        ("Addresses", format!("{} to {}", format_bytes(stats.min_offset), format_bytes(stats.max_end))),
        (
            "Touched",
            format!("{}, written {}", format_bytes(stats.touched_bytes), format_bytes(stats.written_bytes)),
        ),
        ("Pages written again", share(stats.page_overwrites, stats.page_writes)),
        (
            "Sequential",
            format!(
                "{} (among 32 streams {})",
                share(s.continues_last, data),
                share(s.continues_recent, data)
            ),
        ),
        ("Longest run", format_bytes(s.longest_run_bytes)),
        ("Time", format!("{}{times}", format_ns(stats.last_ns.saturating_sub(stats.first_ns)))),
    ];
    if stats.info.skipped > 0 {
        facts.push(("Skipped", format!("{} records that are not I/O", grouped(stats.info.skipped))));
    }
    if stats.info.time_reversals > 0 {
        facts.push((
            "Time went back",
            format!("{} times, clamped or sorted", grouped(stats.info.time_reversals)),
        ));
    }
    elements::facts(&facts)
}

fn mix(stats: &TraceStats) -> String {
    let mix = &stats.mix;
    let rows: [(&str, Amount, usize); 8] = [
        ("writes", mix.writes, 0),
        ("reads", mix.reads, 1),
        ("discards", mix.trims, 2),
        ("write zeroes", mix.write_zeroes, 3),
        ("flushes", mix.flushes, 4),
        ("zone appends", mix.appends, 0),
        ("zone operations", mix.zone_ops, 4),
        ("object operations", mix.object_ops, 4),
    ];
    let max = rows.iter().map(|r| r.1.requests).max().unwrap_or(0) as f64;
    let bars: Vec<Bar> = rows
        .into_iter()
        .filter(|(_, amount, _)| amount.requests > 0)
        .map(|(name, amount, colour)| Bar {
            name: name.to_owned(),
            segments: vec![(percent(amount.requests as f64, max), format!("c{colour}"), String::new())],
            value: format!("{} · {}", grouped(amount.requests), format_bytes(amount.bytes)),
            ..Bar::default()
        })
        .collect();
    chart("Mix", "requests · bytes", &bars)
}

/// Reads and writes by size, a bar for each power of two.
fn sizes(stats: &TraceStats) -> String {
    // A bucket is named by its largest value and lies inside one power of two, whose lower end names the bar.
    let power = |largest: u64| largest.checked_ilog2();
    let count = |d: &Distribution, wanted: Option<u32>| -> u64 {
        d.buckets.iter().filter(|(largest, _)| power(*largest) == wanted).map(|(_, n)| n).sum()
    };
    let mut powers: Vec<Option<u32>> =
        stats.sizes.buckets.iter().map(|(largest, _)| power(*largest)).collect();
    powers.sort_unstable();
    powers.dedup();
    let max = powers.iter().map(|p| count(&stats.sizes, *p)).max().unwrap_or(0) as f64;
    let bars: Vec<Bar> = powers
        .iter()
        .map(|p| {
            let (writes, reads) = (count(&stats.write_sizes, *p), count(&stats.read_sizes, *p));
            Bar {
                name: p.map_or("0".to_owned(), |p| format!("from {}", format_bytes(1 << p))),
                segments: vec![
                    (percent(writes as f64, max), "c0".to_owned(), format!("writes: {}", grouped(writes))),
                    (percent(reads as f64, max), "c1".to_owned(), format!("reads: {}", grouped(reads))),
                ],
                value: grouped(count(&stats.sizes, *p)),
                ..Bar::default()
            }
        })
        .collect();
    chart("Sizes", "writes and reads, by power of two", &bars)
}

fn common_sizes(stats: &TraceStats) -> String {
    let max = stats.common_sizes.first().map_or(0, |s| s.requests) as f64;
    let bars: Vec<Bar> = stats
        .common_sizes
        .iter()
        .take(10)
        .map(|size| Bar {
            name: format_bytes(size.bytes),
            segments: vec![(percent(size.requests as f64, max), "c5".to_owned(), String::new())],
            value: share(size.requests, stats.sizes.count),
            ..Bar::default()
        })
        .collect();
    if bars.is_empty() { String::new() } else { chart("Most common sizes", "of reads and writes", &bars) }
}

/// Starts and ends inside the unit, as two rows of 64 columns.
fn alignment_card(alignment: &Alignment, unit: &str) -> String {
    let total: u64 = alignment.start_bins.iter().sum();
    let mut out = format!(
        "<div class=\"card\"><h4>Alignment to the {unit} of {}</h4>\n<p class=\"about\">aligned: starts {}, ends {}, lengths {}; \
         longer than one: {}</p>\n",
        format_bytes(alignment.unit_bytes),
        share(alignment.starts_aligned, total),
        share(alignment.ends_aligned, total),
        share(alignment.lengths_aligned, total),
        share(alignment.longer_than_unit, total)
    );
    for (name, bins, class) in [("starts", &alignment.start_bins, "c0"), ("ends", &alignment.end_bins, "c1")]
    {
        let max = bins.iter().copied().max().unwrap_or(0) as f64;
        let first = bins.first().copied().unwrap_or(0);
        let _ = write!(
            out,
            "<figure class=\"bins\"><figcaption>Where requests have their {name}, from the border of a {unit} to the next</figcaption>\
             <div role=\"img\" aria-label=\"Histogram of {name}: {} of requests in the first of {} parts\">",
            share(first, total),
            bins.len()
        );
        for (i, n) in bins.iter().enumerate() {
            let from = alignment.unit_bytes as f64 * i as f64 / bins.len().max(1) as f64;
            // A bin that is not empty is seen, however small.
            let height = if *n == 0 { 0.0 } else { percent(*n as f64, max).max(1.5) };
            let _ = write!(
                out,
                "<i class=\"{class}\" style=\"height:{height:.2}%\" title=\"from {}: {}\"></i>",
                format_bytes(from as u64),
                grouped(*n)
            );
        }
        out.push_str("</div></figure>\n");
    }
    out + "</div>\n"
}

fn distributions(stats: &TraceStats) -> String {
    type Show = fn(u64) -> String;
    let rows: [(&str, &Distribution, Show); 3] = [
        ("write sizes", &stats.write_sizes, format_bytes),
        ("read sizes", &stats.read_sizes, format_bytes),
        ("between arrivals", &stats.inter_arrival_ns, format_ns),
    ];
    let names = ["count", "mean", "min", "p50", "p90", "p99", "p99.9", "max"];
    let head = format!("<tr>{}{}</tr>", left_heads([""]), heads(names));
    let mut body = String::new();
    for (name, d, show) in rows.into_iter().filter(|(_, d, _)| d.count > 0 && d.max > 0) {
        let values = [d.mean.round() as u64, d.min, d.p50, d.p90, d.p99, d.p99_9, d.max].map(show);
        body += &row(name, &cells(std::iter::once(grouped(d.count)).chain(values)));
    }
    if body.is_empty() {
        return body;
    }
    let caption = "Mean, min and max are exact, percentiles up to 1/16 too high.";
    frame("Distributions", caption, &head, &body)
}

fn kept(stats: &TraceStats) -> impl Iterator<Item = &nandscape_trace::stats::Point> {
    stats.points.iter().step_by(stats.points.len().div_ceil(MAX_POINTS).max(1))
}

pub(super) fn charts(stats: &[(String, TraceStats)]) -> Value {
    let chart = |stats: &TraceStats| {
        // The last window may be shorter, so it ends at the number of requests.
        let end = |w: &nandscape_trace::stats::Window| w.first_request + w.requests;
        json!({
            "request": kept(stats).map(|p| p.request).collect::<Vec<_>>(),
            "offset": kept(stats).map(|p| number(p.offset as f64)).collect::<Vec<_>>(),
            "ops": kept(stats).map(|p| p.op).collect::<String>(),
            "end": stats.windows.iter().map(end).collect::<Vec<_>>(),
            "window": stats.windows.iter().map(|w| number(w.pages as f64 * 4096.0)).collect::<Vec<_>>(),
            "so_far": stats.windows.iter().map(|w| number(w.pages_so_far as f64 * 4096.0)).collect::<Vec<_>>(),
            "each": grouped(stats.windows.iter().map(|w| w.requests).max().unwrap_or(0)),
        })
    };
    Value::Array(stats.iter().map(|(_, stats)| chart(stats)).collect())
}
