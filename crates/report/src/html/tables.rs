//! The tables of the page.

use super::Page;
use super::elements::{cells, heads, left_heads};
use super::escape::text;
use crate::metrics::{Metric, SUMMARY, best as best_of, latency_points, over_provisioning, rarity};
use crate::number::{Kind, grouped};
use crate::reproduction::{ReproductionRow, figure, rules};
use nandscape_sim::RunResult;
use nandscape_sim::result::LatencySummary;
use std::fmt::Write as _;

/// Wraps rows into a table that scrolls sideways by itself on a narrow screen, reachable by keyboard.
pub(super) fn frame(label: &str, caption: &str, head: &str, body: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n<caption>{caption}</caption>\n\
         <thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}

/// The same for a table whose rows become blocks of lines where there is no room for its columns: cells have
/// the heads of their columns in `data-head`.
pub(super) fn stacked(label: &str, caption: &str, head: &str, body: &str) -> String {
    frame(label, caption, head, body).replacen("<table>", "<table class=\"stacked\">", 1)
}

/// Which runs have the best value: among the complete runs of one workload, if they differ.
pub(super) fn best(page: &Page<'_>, metric: &Metric) -> Vec<bool> {
    let mut is_best = vec![false; page.runs.len()];
    for group in &page.groups {
        let value = |i: &usize| {
            let run = &page.runs[*i];
            metric.mean(&run.result).filter(|_| run.is_complete())
        };
        let values: Vec<Option<f64>> = group.members.iter().map(value).collect();
        for (i, is) in group.members.iter().zip(best_of(metric.better, &unit_of(page, metric), &values)) {
            is_best[*i] = is;
        }
    }
    is_best
}

/// One row per run with every figure of the summary.
pub(super) fn summary(page: &Page<'_>) -> String {
    let used: Vec<&Metric> = SUMMARY
        .iter()
        .filter(|metric| page.runs.iter().any(|run| (metric.value)(&run.result).is_some()))
        .collect();
    let mut groups = String::new();
    let mut names = String::new();
    let mut start = 0;
    while start < used.len() {
        let group = used[start].group;
        let end = if group.is_empty() {
            start + 1
        } else {
            start + used[start..].iter().take_while(|metric| metric.group == group).count()
        };
        if group.is_empty() {
            let _ = write!(
                groups,
                "<th scope=\"col\" rowspan=\"2\" title=\"{}\">{}</th>",
                used[start].about,
                head_text(page, used[start])
            );
        } else {
            let _ = write!(
                groups,
                "<th scope=\"colgroup\" colspan=\"{}\" class=\"group\">{group}</th>",
                end - start
            );
            for metric in &used[start..end] {
                let _ = write!(
                    names,
                    "<th scope=\"col\" title=\"{}\">{}</th>",
                    metric.about,
                    head_text(page, metric)
                );
            }
        }
        start = end;
    }
    let head = format!(
        "<tr><th scope=\"col\" class=\"left\" rowspan=\"2\">{}</th>{}{groups}</tr><tr>{names}</tr>",
        page.first_head(),
        page.workload_head(2)
    );
    let marks: Vec<Vec<bool>> = used.iter().map(|metric| best(page, metric)).collect();
    let mut body = String::new();
    for (i, run) in page.runs.iter().enumerate() {
        let status = match run.status() {
            "complete" => String::new(),
            status => format!(" <span class=\"badge\">{status}</span>"),
        };
        let class = if run.is_complete() { "" } else { " class=\"incomplete\"" };
        let (name, workload) = (page.name(i), page.workload_cell(i));
        let _ = write!(body, "<tr{class}><th scope=\"row\" class=\"left\">{name}{status}</th>{workload}");
        for (metric, is_best) in used.iter().zip(&marks) {
            let unit = unit_of(page, metric);
            let mut shown = metric.mean(&run.result).map_or("–".to_owned(), |v| unit.show(v));
            if let Some(spread) = metric.spread(&run.result) {
                let [min, max] = [spread.min, spread.max].map(|v| unit.show(v));
                let _ = write!(shown, "<span class=\"unit\">{min} – {max}</span>");
            }
            let shown = if is_best[i] { format!("<b>{shown}</b>") } else { shown };
            let head = format!("{} {}", metric.group, head_of(page, metric).join(" "));
            let _ = write!(body, "<td data-head=\"{}\">{shown}</td>", head.trim());
        }
        body.push_str("</tr>\n");
    }
    let caption = if page.runs.len() > 1 {
        "One row per run. Bold: the best of the complete runs of a workload. Hover over a heading for its meaning."
    } else {
        "Hover over a heading for its meaning."
    };
    let seeds = if page.runs.iter().any(|run| run.result.run.seeds.is_some()) {
        " Means over the seeds, with the least and the largest value below; all other parts of the page are of the seed \
         with the median write amplification."
    } else {
        ""
    };
    stacked("Summary table", &format!("{caption}{seeds}"), &head, &body)
}

fn unit_of(page: &Page<'_>, metric: &Metric) -> crate::number::Unit {
    metric.kind.unit(page.runs.iter().filter_map(|run| metric.mean(&run.result)))
}

/// Name and unit, which may be empty.
fn head_of(page: &Page<'_>, metric: &Metric) -> [&'static str; 2] {
    let unit = match (metric.group, metric.name) {
        ("GC", "moved") => "pages",
        _ => unit_of(page, metric).name,
    };
    [metric.name, unit]
}

fn head_text(page: &Page<'_>, metric: &Metric) -> String {
    match head_of(page, metric) {
        [name, ""] => name.to_owned(),
        [name, unit] => format!("{name}<span class=\"unit\">{unit}</span>"),
    }
}

pub(super) fn latency(page: &Page<'_>) -> String {
    let mut rows: Vec<(usize, &str, &LatencySummary)> = Vec::new();
    for (i, run) in page.runs.iter().enumerate() {
        rows.extend(run.result.latency_ns.kinds().map(|(kind, summary)| (i, kind, summary)));
    }
    if rows.is_empty() {
        return String::new();
    }
    let unit = Kind::Nanos.unit(rows.iter().flat_map(|r| latency_points(r.2)).map(|(_, v)| v));
    let names = latency_points(rows[0].2).map(|(name, _)| name);
    let head = page.head(&(left_heads([""]) + &heads(std::iter::once("requests").chain(names))));
    let mut body = String::new();
    let mut any_thin = false;
    for (i, op, summary) in rows {
        let mut cells = format!("<td class=\"left\">{op}</td><td>{}</td>", grouped(summary.count));
        for (name, value) in latency_points(summary) {
            // One request in `rarity` is slower; with fewer requests than that the figure is only the longest
            // one again.
            let rarity = rarity(name);
            let is_thin = rarity.is_some_and(|rarity| (summary.count as f64) < rarity);
            any_thin |= is_thin;
            let class = if is_thin { " class=\"thin\"" } else { "" };
            let _ = write!(cells, "<td{class}>{}</td>", unit.show(value));
        }
        body += &page.row(i, &cells);
    }
    let thin = if any_thin {
        " Grey: fewer requests than the percentile needs, so it is the longest one."
    } else {
        ""
    };
    let caption = format!("Latency in {}, queueing included, percentiles within 0.1 %.{thin}", unit.name);
    frame("Latency table", &caption, &head, &body)
}

/// A column of a table about flash: its head and its cell.
type Column = (&'static str, fn(&RunResult) -> String);

/// A row for each run with flash; empty if there is none.
fn of_flash(page: &Page<'_>, columns: &[Column], label: &str, caption: &str) -> String {
    let head = page.head(&heads(columns.iter().map(|(name, _)| name)));
    let row = |i: usize| {
        let values = columns.iter().map(|(_, value)| value(&page.runs[i].result));
        page.row(i, &cells(values))
    };
    let body: String = (0..page.runs.len()).filter(|i| page.has_flash(*i)).map(row).collect();
    if body.is_empty() { body } else { frame(label, caption, &head, &body) }
}

pub(super) fn wear(page: &Page<'_>) -> String {
    let columns: &[Column] = &[
        ("total", |r| grouped(r.flash.erases)),
        ("min", |r| r.wear.erases_min.to_string()),
        ("mean", |r| format!("{:.2}", r.wear.erases_mean)),
        ("max", |r| r.wear.erases_max.to_string()),
        ("standard deviation", |r| format!("{:.2}", r.wear.erases_stddev)),
        ("max / mean", |r| match r.wear.erases_mean {
            mean if mean > 0.0 => format!("{:.2}", r.wear.erases_max as f64 / mean),
            _ => "–".to_owned(),
        }),
    ];
    of_flash(page, columns, "Wear table", "Erases per good block.")
}

pub(super) fn cost(page: &Page<'_>) -> String {
    fn bytes(n: u64) -> String {
        if n == 0 { "0".to_owned() } else { Kind::Bytes.show_alone(n as f64) }
    }
    let columns: &[Column] = &[
        ("device DRAM", |r| bytes(r.cost.dram_bytes)),
        ("host DRAM", |r| bytes(r.cost.host_dram_bytes)),
        ("map table", |r| bytes(r.layer.map.table_bytes)),
        ("usable", |r| bytes(r.cost.usable_bytes)),
        ("over-provisioning", |r| {
            over_provisioning(r).map_or("–".to_owned(), |op| format!("{:.1} %", op * 100.0))
        }),
        ("good blocks", |r| grouped(r.cost.total_blocks)),
        ("in reserve", |r| grouped(r.cost.reserve_blocks)),
        ("pages per block", |r| grouped(r.cost.pages_per_block)),
        ("map updates", |r| grouped(r.layer.map.updates)),
        ("log-table updates", |r| grouped(r.layer.map.log_table_updates)),
    ];
    let caption = "Memory, space and map. Over-provisioning is (physical − logical) / logical over the good blocks; reserve blocks \
                   are kept free or open and are never a victim.";
    of_flash(page, columns, "Cost table", caption)
}

pub(super) fn reproduction(rows: &[ReproductionRow]) -> String {
    let mut out = String::new();
    let mut charts = 0;
    for block in rows.chunk_by(|a, b| a.id == b.id) {
        let rules = rules(block);
        let more: String = rules
            .iter()
            .flat_map(|(head, _)| ["<th scope=\"col\" class=\"left\">", *head, "</th>"])
            .collect();
        let head = "<tr><th scope=\"col\" class=\"left\">figure</th><th scope=\"col\" class=\"left\">source</th><th scope=\"col\">published</th>\
                    <th scope=\"col\">measured</th><th scope=\"col\" class=\"left\">unit</th><th scope=\"col\">ratio</th>";
        let head = format!("{head}{more}<th scope=\"col\" class=\"left\">note</th></tr>");
        let mut body = String::new();
        for (place, row) in block.iter().enumerate() {
            let cell = |(head, cells): &(&str, Vec<String>)| {
                format!("<td data-head=\"{head}\" class=\"left\">{}</td>", text(&cells[place]))
            };
            let more = rules.iter().map(cell);
            let class = if row.needs_note() { " class=\"off\"" } else { "" };
            let _ = writeln!(
                body,
                "<tr><th scope=\"row\" class=\"left wrap\">{}</th><td data-head=\"source\" class=\"left\">{}</td>\
                 <td data-head=\"published\" class=\"wrap\">{}</td><td data-head=\"measured\" class=\"wrap\">{}</td>\
                 <td data-head=\"unit\" class=\"left\">{}</td><td data-head=\"ratio\"{class}>{}</td>{}\
                 <td data-head=\"note\" class=\"left note\">{}</td></tr>",
                text(&row.name),
                text(&row.source),
                text(&figure(&row.published)),
                text(&figure(&row.measured)),
                text(&row.unit),
                row.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}")),
                more.collect::<String>(),
                text(&row.note)
            );
        }
        let _ = writeln!(out, "<h3>{}</h3>", text(&block[0].id));
        out.push_str(&stacked(
            "Published and measured figures",
            "Ratio is measured over published; outside 0.8 to 1.25 a note says why. docs/sources.md of nandscape lists the sources.",
            &head,
            &body,
        ));
        out.push_str(&super::figures::figures(block, charts));
        charts += crate::reproduction::row_charts(block).len();
    }
    out
}
