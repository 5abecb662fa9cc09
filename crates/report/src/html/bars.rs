//! Bars in plain HTML: total throughput, and flash operations by cause.

use super::Page;
use super::elements::{cells, heads, left_heads};
use super::escape::text;
use crate::metrics::cause_order;
use crate::number::{four_digits, grouped};
use nandscape_core::OpCounts;
use nandscape_sim::RunResult;
use std::fmt::Write as _;

/// What stands beside the colours in the legend.
const CAUSES: [(&str, &str); 8] = [
    ("host", "host"),
    ("gc", "garbage collection"),
    ("merge", "merges"),
    ("meta", "metadata"),
    ("wear", "wear levelling"),
    ("finish", "finished zones"),
    ("clean", "file system cleaning"),
    ("fold", "folding of the SLC cache"),
];

/// Title, key of the document, bytes moved, and their rate.
type RatePart = (&'static str, &'static str, fn(&RunResult) -> u64, fn(&RunResult) -> f64);
/// Title, unit, and which count.
type CountPart = (&'static str, &'static str, fn(OpCounts) -> u64);
/// Name, total of the medium, and which count.
type TotalPart = (&'static str, u64, fn(OpCounts) -> u64);

#[derive(Default)]
pub(super) struct Bar {
    pub name: String,
    /// Width in percent, class and tooltip.
    pub segments: Vec<(f64, String, String)>,
    pub value: String,
    /// Least and largest value over the seeds, in percent.
    pub spread: Option<[f64; 2]>,
}

/// A chart of bars; empty where there is nothing to compare: a single bar, or all of them without length.
pub(super) fn chart(title: &str, about: &str, bars: &[Bar]) -> String {
    let is_drawn = |bar: &Bar| bar.segments.iter().any(|(percent, ..)| *percent > 0.0);
    if bars.len() < 2 || !bars.iter().any(is_drawn) {
        return String::new();
    }
    let mut out = format!(
        "<div class=\"card\"><table class=\"bars\"><caption><span class=\"title\">{title}</span> <span class=\"about\">{about}</span></caption><tbody>\n"
    );
    for bar in bars {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"track\" aria-hidden=\"true\"><div class=\"bar\">",
            bar.name
        );
        for (percent, class, tip) in &bar.segments {
            if *percent > 0.0 {
                let _ = write!(
                    out,
                    "<i class=\"{class}\" style=\"width:{percent:.3}%\" title=\"{}\"></i>",
                    text(tip)
                );
            }
        }
        if let Some([low, high]) = bar.spread {
            let _ = write!(out, "<b class=\"spread\" style=\"left:{low:.3}%;width:{:.3}%\"></b>", high - low);
        }
        let _ = writeln!(out, "</div></td><td>{}</td></tr>", bar.value);
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Total throughput of every run, reads and writes apart where a workload has both.
pub(super) fn throughput(page: &Page<'_>) -> String {
    let parts: [RatePart; 2] = [
        (
            "Write throughput",
            "throughput.write_bytes_per_s",
            |r| r.host.write_bytes,
            |r| r.speed.throughput.write_bytes_per_s,
        ),
        (
            "Read throughput",
            "throughput.read_bytes_per_s",
            |r| r.host.read_bytes,
            |r| r.speed.throughput.read_bytes_per_s,
        ),
    ];
    let mut out = String::new();
    for (title, key, bytes, rate) in parts {
        for group in &page.groups {
            let members: Vec<usize> = group.members.clone();
            if members.iter().all(|i| bytes(&page.runs[*i].result) == 0) {
                continue;
            }
            let spread = |i: usize| crate::metrics::spread(&page.runs[i].result, key);
            let mean = |i: usize| spread(i).map_or_else(|| rate(&page.runs[i].result), |spread| spread.mean);
            let most = |i: usize| spread(i).map_or_else(|| rate(&page.runs[i].result), |spread| spread.max);
            let max = members.iter().map(|i| most(*i)).fold(0.0, f64::max);
            let bars: Vec<Bar> = members
                .iter()
                .map(|i| Bar {
                    name: page.name(*i),
                    segments: vec![(
                        percent(mean(*i), max),
                        format!("c{}", page.colours[*i] % super::COLOURS),
                        String::new(),
                    )],
                    value: four_digits(mean(*i) / 1e6),
                    spread: spread(*i).map(|spread| [spread.min, spread.max].map(|rate| percent(rate, max))),
                })
                .collect();
            let mut about = "MB/s (1e6) of the whole run".to_owned();
            if members.iter().any(|i| spread(*i).is_some()) {
                about += ", mean and range over the seeds";
            }
            if page.groups.len() > 1 {
                let _ = write!(about, ", {}", text(group.spec));
            }
            out.push_str(&chart(title, &about, &bars));
        }
    }
    if out.is_empty() { out } else { format!("<div class=\"grid\">\n{out}</div>\n") }
}

pub(super) fn percent(value: f64, max: f64) -> f64 {
    if max > 0.0 { 100.0 * value / max } else { 0.0 }
}

/// Programs, reads and erases by cause: of several runs a stacked bar each, of a single one a bar for each
/// cause; the numbers in a table below.
pub(super) fn flash_operations(page: &Page<'_>) -> String {
    if (0..page.runs.len()).all(|run| !page.has_flash(run)) {
        return String::new();
    }
    let mut causes: Vec<&str> = Vec::new();
    for run in page.runs {
        for (name, counts) in &run.result.flash.by_cause {
            if *counts != OpCounts::default() && !causes.contains(&name.as_str()) {
                causes.push(name);
            }
        }
    }
    causes.sort_by_key(|name| cause_order(name));
    let mut charts = String::new();
    let mut is_stacked = false;
    for group in &page.groups {
        let has_flash = |run: &usize| page.has_flash(*run);
        let members: Vec<usize> = group.members.iter().copied().filter(has_flash).collect();
        let parts: [CountPart; 3] = [
            ("Programs", "pages", |c| c.programs),
            ("Reads", "pages", |c| c.reads),
            ("Erases", "blocks", |c| c.erases),
        ];
        let of_group = |(title, unit, of): CountPart| {
            let bars = match members.as_slice() {
                [run] => bars_of_causes(page, *run, &causes, of),
                several => stacked_bars(page, several, &causes, of),
            };
            chart(title, unit, &bars)
        };
        let of_group = parts.map(of_group).concat();
        if of_group.is_empty() {
            continue;
        }
        is_stacked |= members.len() > 1;
        if page.groups.len() > 1 {
            let _ = writeln!(charts, "<h3>{}</h3>", text(group.spec));
        }
        let _ = write!(charts, "<div class=\"grid three\">\n{of_group}</div>\n");
    }
    let legend = if is_stacked { causes_legend(&causes) } else { String::new() };
    legend + &charts + &causes_table(page, &causes)
}

fn causes_legend(causes: &[&str]) -> String {
    let mut out = String::from("<ul class=\"legend\" aria-label=\"Colours of the causes\">\n");
    for cause in causes {
        let key = format!("<span class=\"key k{}\" aria-hidden=\"true\"></span>", cause_order(cause));
        let _ = writeln!(out, "<li>{key}{}</li>", text(title_of(cause)));
    }
    out + "</ul>\n"
}

fn title_of(cause: &str) -> &str {
    CAUSES.iter().find(|(name, _)| *name == cause).map_or(cause, |(_, title)| *title)
}

fn stacked_bars(page: &Page<'_>, members: &[usize], causes: &[&str], of: fn(OpCounts) -> u64) -> Vec<Bar> {
    let total = |i: usize| page.runs[i].result.flash.by_cause.values().map(|c| of(*c)).sum::<u64>();
    let max = members.iter().map(|i| total(*i)).max().unwrap_or(0) as f64;
    let bar = |i: usize| {
        let segment = |cause: &&str| {
            let n = page.runs[i].result.flash.by_cause.get(*cause).map_or(0, |c| of(*c));
            let tip = format!("{cause}: {}", grouped(n));
            (percent(n as f64, max), format!("k{}", cause_order(cause)), tip)
        };
        let segments = causes.iter().map(segment).collect();
        Bar { name: page.name(i), segments, value: grouped(total(i)), ..Bar::default() }
    };
    members.iter().copied().map(bar).collect()
}

fn bars_of_causes(page: &Page<'_>, run: usize, causes: &[&str], of: fn(OpCounts) -> u64) -> Vec<Bar> {
    let by_cause = &page.runs[run].result.flash.by_cause;
    let count = |cause: &str| by_cause.get(cause).map_or(0, |c| of(*c));
    let max = causes.iter().map(|cause| count(cause)).max().unwrap_or(0) as f64;
    let bar = |cause: &&str| {
        let n = count(cause);
        let segments = vec![(percent(n as f64, max), format!("k{}", cause_order(cause)), String::new())];
        (n > 0).then(|| Bar { name: text(title_of(cause)), segments, value: grouped(n), ..Bar::default() })
    };
    causes.iter().filter_map(bar).collect()
}

fn causes_table(page: &Page<'_>, causes: &[&str]) -> String {
    let workload = if page.groups.len() > 1 { Some("workload") } else { None };
    let names = [page.first_head()].into_iter().chain(workload).chain(["operation"]);
    let mut out = format!(
        "<details><summary>Numbers by cause</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Flash operations by cause\"><table><caption>Flash operations by cause: programs, reads (pages) and erases \
         (blocks). The sums are the medium's own counts.</caption>\n<thead><tr>{}{}</tr></thead>\n<tbody>\n",
        left_heads(names),
        heads(causes.iter().map(|cause| text(cause)).chain(["total".to_owned()]))
    );
    for (i, run) in page.runs.iter().enumerate().filter(|(i, _)| page.has_flash(*i)) {
        let flash = &run.result.flash;
        let parts: [TotalPart; 3] = [
            ("programs", flash.programs, |c| c.programs),
            ("reads", flash.reads, |c| c.reads),
            ("erases", flash.erases, |c| c.erases),
        ];
        for (name, total, of) in parts {
            let counts = causes.iter().map(|cause| flash.by_cause.get(*cause).map_or(0, |c| of(*c)));
            let counts = counts.chain([total]).map(grouped);
            out += &page.row(i, &format!("<td class=\"left\">{name}</td>{}", cells(counts)));
        }
    }
    out.push_str("</tbody></table></div></details>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::Cause;

    #[test]
    fn every_cause_has_a_title() {
        let names: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(names, CAUSES.map(|(name, _)| name));
    }
}
