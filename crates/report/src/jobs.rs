//! Jobs of a job file and the NVM sets they ran on, as tables for a terminal.

use crate::metrics::{latency_points, latency_weight};
use crate::number::{Kind, printable};
use crate::table::{Head, Table, Weight};
use nandscape_sim::result::{DirectionResult, JobResult, LatencySummary, RunResult, SetResult};

/// One line of the table: a job and a direction that it used.
pub(crate) struct Line<'a> {
    pub job: &'a JobResult,
    pub direction: &'static str,
    pub figures: &'a DirectionResult,
}

/// A line for each job and direction with requests, in the order of the jobs.
pub(crate) fn lines(result: &RunResult) -> Vec<Line<'_>> {
    result
        .jobs
        .iter()
        .flat_map(|job| {
            [("read", &job.read), ("write", &job.write), ("trim", &job.trim)]
                .into_iter()
                .filter(|(_, figures)| figures.requests > 0)
                .map(move |(direction, figures)| Line { job, direction, figures })
        })
        .collect()
}

/// Name of a row, with the number of jobs it stands for.
pub(crate) fn label(job: &JobResult) -> String {
    let name = printable(&job.name);
    if job.members > 1 { format!("{name} x{}", job.members) } else { name }
}

const LATENCIES: [&str; 7] = ["mean", "p50", "p99", "p99.9", "p99.99", "p99.9999", "max"];

/// The table of jobs; `None` for a workload without jobs.
pub(crate) fn jobs_table(result: &RunResult) -> Option<Table> {
    if result.jobs.is_empty() {
        return None;
    }
    let lines = lines(result);
    let mut table = Table::new();
    table.column(Head::text("  job"), lines.iter().map(|l| format!("  {}", label(l.job))));
    table.column(Head::text("on"), lines.iter().map(|l| printable(&l.job.namespaces.join(","))));
    table.column(Head::text("op"), lines.iter().map(|l| l.direction.to_owned()));
    let mut figures = |group: &str, name: &str, kind: Kind, value: &dyn Fn(&Line<'_>) -> f64| {
        let weight = if group.is_empty() { Weight::Useful } else { latency_weight(name) };
        let head = Head::number(group, name, "").weighing(weight);
        table.figures(head, kind, lines.iter().map(|line| Some(value(line))));
    };
    figures("", "requests", Kind::Count, &|l| l.figures.requests as f64);
    figures("", "IOPS", Kind::Count, &|l| l.figures.iops);
    figures("", "bandwidth", Kind::Rate, &|l| l.figures.bytes_per_s);
    for (at, (name, _)) in latency_points(&LatencySummary::default()).into_iter().enumerate() {
        if LATENCIES.contains(&name) {
            figures("latency", name, Kind::Nanos, &|l| latency_points(&l.figures.latency_ns)[at].1);
        }
    }
    Some(table)
}

/// The table of sets; `None` where there is only one.
pub(crate) fn sets_table(result: &RunResult) -> Option<Table> {
    if result.sets.len() < 2 {
        return None;
    }
    let mut table = Table::new();
    let sets = &result.sets;
    table.column(Head::text("  set"), sets.iter().map(|s| format!("  {}", s.set)));
    let names = |s: &SetResult| printable(&s.namespaces.join(","));
    table.column(Head::text("namespaces"), sets.iter().map(names));
    let mut figures = |name: &str, kind: Kind, value: &dyn Fn(&SetResult) -> Option<f64>| {
        table.figures(Head::number("", name, ""), kind, sets.iter().map(value));
    };
    figures("written", Kind::Bytes, &|s| Some(s.host.write_bytes as f64));
    figures("read", Kind::Bytes, &|s| Some(s.host.read_bytes as f64));
    figures("WAF", Kind::Ratio, &|s| s.waf_bytes);
    figures("programs", Kind::Count, &|s| Some(s.flash.programs as f64));
    figures("erases", Kind::Count, &|s| Some(s.flash.erases as f64));
    figures("GC moved", Kind::Count, &|s| Some(s.gc.moved_pages as f64));
    Some(table)
}
