//! The jobs of a job file: a table, and what each did over time.

use super::Page;
use super::elements::{CHART, Chart};
use super::escape::text;
use super::legend::{self, Show, ink};
use super::tables::stacked;
use super::values::{number, optional, ratio};
use crate::jobs::{jobs_table, label, sets_table};
use crate::table::Table;
use nandscape_sim::cached::CachePoint;
use nandscape_sim::jobs::timeline::{Cell, JobSeries, SetPoint, Window};
use nandscape_sim::result::RunResult;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Lines of a chart; more could not be told apart.
const MAX_LINES: usize = 16;

pub(super) fn jobs(page: &Page<'_>) -> String {
    let mut out = String::new();
    for (index, run) in page.runs.iter().enumerate() {
        let Some(table) = jobs_table(&run.result) else { continue };
        if page.runs.len() > 1 {
            let _ = writeln!(out, "<h3>{}</h3>", page.name(index));
        }
        out.push_str(&html_table("Requests and latencies of each job", &table));
        if let Some(table) = sets_table(&run.result) {
            out.push_str(&html_table("NVM sets", &table));
        }
        let Some(series) = &run.jobs else { continue };
        if series.windows.len() > 1 {
            out.push_str(&charts(index, &run.result, series));
        }
    }
    out
}

fn html_table(caption: &str, table: &Table) -> String {
    let class = |is_left: bool| if is_left { " class=\"left\"" } else { "" };
    let names = table.names();
    let heads = names
        .iter()
        .map(|(name, is_left)| format!("<th scope=\"col\"{}>{}</th>", class(*is_left), text(name)));
    let row = |row: &Vec<String>| {
        let cells = row.iter().zip(&names);
        let cells = cells.map(|(cell, (name, left))| {
            format!("<td data-head=\"{}\"{}>{}</td>", text(name.trim()), class(*left), text(cell.trim()))
        });
        format!("<tr>{}</tr>\n", cells.collect::<Vec<_>>().concat())
    };
    let body: String = table.rows().iter().map(row).collect();
    stacked(caption, caption, &format!("<tr>{}</tr>", heads.collect::<String>()), &body)
}

fn charts(index: usize, result: &RunResult, series: &JobSeries) -> String {
    let mut out = String::from("<div class=\"grid\">\n");
    let more = if series.rows.len() > MAX_LINES {
        format!("; the first {MAX_LINES} of {} jobs", series.rows.len())
    } else {
        String::new()
    };
    let step = crate::number::Kind::Nanos.show_alone(series.interval_ns as f64);
    let lines = data(result, series);
    let mut chart = |kind: &str, title: &str, about: &str, tabs: &[&str]| {
        let (data, about) = ([("run", index)], format!("{about}, each {step}{more}"));
        let part = kind.trim_start_matches("job-");
        if lines[part].as_array().is_none_or(Vec::is_empty) {
            return;
        }
        let show = if matches!(part, "read" | "write") { Show::Nanos } else { Show::Digits };
        let legend = legend::entries(&lines[part], show, |line| &line["values"][0]);
        let legend = legend.as_slice();
        out +=
            &Chart { kind, number: index, data: &data, title, about: &about, tabs, legend, ..CHART }.html();
    };
    chart("job-rate", "Throughput over time", "of each job", &["MB/s", "IOPS"]);
    if has_cache(result, series) {
        let tabs = ["dirty", "cleaning", "hit ratio"];
        let about =
            "slots dirty and in use, in % of all; blocks cleaned a second; requests with all blocks cached";
        chart("job-cache", "Cache over time", about, &tabs);
    }
    if result.host.write_pages > 0 && !result.flash.by_cause.is_empty() {
        chart(
            "job-waf",
            "Write amplification over time",
            "programs per host page",
            &["in the step", "so far"],
        );
    }
    let tabs = ["mean", "p50", "p99", "p99.9", "max"];
    if result.jobs.iter().any(|job| job.read.requests > 0) {
        chart("job-read", "Read latency over time", "of each job (percentiles within 6.25 %)", &tabs);
    }
    if result.jobs.iter().any(|job| job.write.requests > 0) {
        chart("job-write", "Write latency over time", "of each job (percentiles within 6.25 %)", &tabs);
    }
    out + "</div>\n"
}

/// Data of the charts: times, and for each chart its lines with the values of every view.
pub(super) fn data(result: &RunResult, series: &JobSeries) -> Value {
    let name = |row: usize| result.jobs.get(row).map_or_else(|| series.rows[row].clone(), label);
    let mut rate = Vec::new();
    let mut latency = [Vec::new(), Vec::new()];
    for row in 0..series.rows.len().min(MAX_LINES) {
        for (op, word) in ["read", "write"].into_iter().enumerate() {
            let cells: Vec<&Cell> = series.windows.iter().map(|window| &window.rows[row][op]).collect();
            if cells.iter().all(|cell| cell.requests == 0) {
                continue;
            }
            // A job has one colour in all charts; its writes are dashed beside its reads.
            let has_both = series.windows.iter().any(|window| window.rows[row][0].requests > 0);
            let (ink, dash) = (ink(row), row / super::COLOURS);
            let beside = dash + usize::from(op == 1 && has_both);
            let label = format!("{} {word}", name(row));
            rate.push(json!({ "label": label, "ink": ink, "dash": beside, "values": rates(series, &cells) }));
            latency[op]
                .push(json!({ "label": name(row), "ink": ink, "dash": dash, "values": latencies(&cells) }));
        }
    }
    let [read, write] = latency;
    json!({
        "x": series.windows.iter().map(|window| json!(window.end_ns)).collect::<Vec<_>>(),
        "rate": rate,
        "read": read,
        "write": write,
        "cache": if has_cache(result, series) { cache(series) } else { Vec::new() },
        "waf": (0..result.sets.len()).map(|set| waf(result, series, set)).collect::<Vec<_>>(),
    })
}

/// MB/s and IOPS in each window.
fn rates(series: &JobSeries, cells: &[&Cell]) -> [Vec<Value>; 2] {
    let mut before = 0;
    let mut out = [Vec::with_capacity(cells.len()), Vec::with_capacity(cells.len())];
    for (window, cell) in series.windows.iter().zip(cells) {
        let seconds = (window.end_ns - before) as f64 / 1e9;
        before = window.end_ns;
        out[0].push(number(cell.bytes as f64 / 1e6 / seconds));
        out[1].push(number(cell.requests as f64 / seconds));
    }
    out
}

/// Mean, percentiles and maximum in each window; null where nothing completed.
fn latencies(cells: &[&Cell]) -> Vec<Vec<Value>> {
    let column = |of: &dyn Fn(&Cell) -> Option<f64>| -> Vec<Value> {
        cells.iter().map(|cell| of(cell).map_or(Value::Null, number)).collect()
    };
    let quantile = |q: f64| column(&move |cell| cell.quantile(q).map(|ns| ns as f64));
    vec![
        column(&|cell| (cell.requests > 0).then(|| cell.latency_sum_ns as f64 / cell.requests as f64)),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        column(&|cell| (cell.requests > 0).then_some(cell.latency_max_ns as f64)),
    ]
}

fn has_cache(result: &RunResult, series: &JobSeries) -> bool {
    result.has_cache() && series.windows.iter().any(|window| window.cache.is_some())
}

/// Lines of the chart of the cache; each has values in one of the three views.
fn cache(series: &JobSeries) -> Vec<Value> {
    let mut columns: [Vec<Value>; 5] = Default::default();
    let (mut before, mut from) = (CachePoint::default(), 0);
    for window in &series.windows {
        let now = window.cache.unwrap_or(before);
        let step = now.since(&before);
        let point = [
            ratio(now.dirty as f64 * 100.0, now.slots as f64),
            ratio(now.used as f64 * 100.0, now.slots as f64),
            ratio(step.counts.cleaned as f64 * 1e9, (window.end_ns - from) as f64),
            optional(step.counts.read_hit_ratio()),
            optional(step.counts.write_hit_ratio()),
        ];
        columns.iter_mut().zip(point).for_each(|(column, value)| column.push(value));
        (before, from) = (now, window.end_ns);
    }
    let nothing = vec![Value::Null; series.windows.len()];
    let line = |place: usize, (label, view): (&str, usize), column: Vec<Value>| {
        let mut values = vec![nothing.clone(); 3];
        values[view] = column;
        json!({ "label": label, "ink": format!("k{}", place + 1), "dash": 0, "values": values })
    };
    let names = [("dirty", 0), ("in use", 0), ("cleaned", 1), ("reads", 2), ("writes", 2)];
    let lines = names.into_iter().zip(columns).enumerate();
    lines.map(|(place, (name, column))| line(place, name, column)).collect()
}

fn waf(result: &RunResult, series: &JobSeries, set: usize) -> Value {
    let point = |window: &Window| window.sets.get(set).copied().unwrap_or_default();
    let ratio = |programs: u64, pages: u64| ratio(programs as f64, pages as f64);
    let mut before = SetPoint::default();
    let (mut step, mut so_far) = (Vec::new(), Vec::new());
    for window in &series.windows {
        let now = point(window);
        step.push(ratio(now.programs - before.programs, now.host_pages - before.host_pages));
        so_far.push(ratio(now.programs, now.host_pages));
        before = now;
    }
    let label = if result.sets.len() > 1 { format!("set {set}") } else { "device".to_owned() };
    let ink = if result.sets.len() > 1 { format!("k{}", set % super::COLOURS) } else { "ink".to_owned() };
    json!({ "label": label, "ink": ink, "dash": set / super::COLOURS, "values": [step, so_far] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(requests: u64, bytes: u64, latency_ns: u64) -> Cell {
        Cell {
            requests,
            bytes,
            latency_sum_ns: requests * latency_ns,
            latency_max_ns: latency_ns,
            ..Cell::default()
        }
    }

    fn series() -> JobSeries {
        let window = |end_ns, read: Cell, programs| Window {
            end_ns,
            rows: vec![[read, Cell::default()]],
            sets: vec![SetPoint { host_pages: programs / 2, programs, ..SetPoint::default() }],
            cache: None,
        };
        JobSeries {
            interval_ns: 1_000_000,
            rows: vec!["a".to_owned()],
            windows: vec![
                window(1_000_000, cell(10, 40_960, 1000), 10),
                window(2_000_000, cell(0, 0, 0), 10),
                window(2_500_000, cell(5, 20_480, 3000), 40),
            ],
        }
    }

    #[test]
    fn rates_are_over_their_own_window_and_silence_has_no_latency() {
        let series = series();
        let cells: Vec<&Cell> = series.windows.iter().map(|w| &w.rows[0][0]).collect();
        let [bytes, iops] = rates(&series, &cells);
        assert_eq!(format!("{bytes:?}"), "[Number(40.96), Number(0), Number(40.96)]");
        assert_eq!(format!("{iops:?}"), "[Number(10000), Number(0), Number(10000)]");
        let mean = &latencies(&cells)[0];
        assert_eq!((mean[0].as_u64(), mean[1].is_null(), mean[2].as_u64()), (Some(1000), true, Some(3000)));
    }
}
