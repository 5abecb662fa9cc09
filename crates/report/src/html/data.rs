//! The data of the charts, as small as a reader cannot tell: four digits, whole numbers without a fraction,
//! single requests thinned out evenly.

use super::Page;
use super::elements::{kept_requests, rate};
use super::over_data::columns as columns_of_charts;
use super::values::number;
use crate::metrics::nines;
use crate::phases::phases;
use crate::{ReportContext, Run};
use nandscape_core::Op;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::metrics::{Sample, Series};
use serde_json::{Map, Value, json};

pub(super) fn data(page: &Page<'_>, context: &ReportContext) -> Value {
    let groups: Vec<Value> = page
        .groups
        .iter()
        .map(|group| {
            // A workload that writes nothing is drawn over what it reads.
            let writes = group.members.iter().any(|i| page.runs[*i].result.host.write_bytes > 0);
            json!({
                "name": group.spec,
                "runs": group.members,
                "axis": if writes { "host data written" } else { "host data read" },
            })
        })
        .collect();
    let mut runs = Vec::new();
    for group in &page.groups {
        let writes = group.members.iter().any(|i| page.runs[*i].result.host.write_bytes > 0);
        runs.extend(group.members.iter().map(|i| (*i, run_data(page, *i, writes))));
    }
    runs.sort_by_key(|(i, _)| *i);
    json!({
        "groups": groups,
        "runs": runs.into_iter().map(|(_, run)| run).collect::<Vec<_>>(),
        "caches": super::caches::charts(&context.advice),
        "sweep": context.sweep.as_ref().map(super::sweep::data),
        "figures": super::figures::charts(&context.reproduction),
        "workloads": super::stats::charts(&context.workload_stats),
    })
}

fn run_data(page: &Page<'_>, index: usize, by_writes: bool) -> Value {
    let run: &Run = &page.runs[index];
    let mut out = Map::new();
    out.insert("label".into(), json!(crate::number::printable(run.name())));
    out.insert("colour".into(), json!(page.colours[index]));
    if let Some(series) = &run.series {
        if series.samples.len() > 1 {
            out.insert("series".into(), series_data(run, &series.samples, by_writes));
        }
        if !series.requests.is_empty() {
            out.insert("requests".into(), requests_data(series));
        }
    }
    let phases: Vec<Value> =
        phases(run).iter().map(|phase| phase_data(run, phase.at_ns, by_writes)).collect();
    if !phases.is_empty() {
        out.insert("phases".into(), phases.into());
    }
    if let Some(series) = run.jobs.as_ref().filter(|series| series.windows.len() > 1) {
        out.insert("jobs".into(), super::jobs::data(&run.result, series));
    }
    let points = |summary| -> Value {
        nines(summary).into_iter().map(|(nines, ns)| json!([number(nines), number(ns)])).collect()
    };
    out.insert("nines-read".into(), points(&run.result.latency_ns.read));
    out.insert("nines-write".into(), points(&run.result.latency_ns.write));
    for (kind, map) in super::maps::maps(page, index) {
        out.insert(kind.into(), map);
    }
    if let Some(zones) = run.result.between.zones.as_ref().and_then(super::zones::data) {
        out.insert("zones".into(), zones);
    }
    Value::Object(out)
}

fn requests_data(series: &Series) -> Value {
    let mut index = Vec::new();
    let mut rates = Vec::new();
    let mut ops = String::new();
    for request in kept_requests(series) {
        index.push(json!(request.index));
        rates.push(number(rate(request)));
        ops.push(if request.op == Op::Read { 'R' } else { 'W' });
    }
    json!({ "index": index, "rate": rates, "ops": ops })
}

/// Place of a point over the data, in MiB with six digits, so that the points of a long run stay apart.
fn over_data(sample: &Sample, by_writes: bool) -> Value {
    let bytes = if by_writes { sample.host.write_bytes } else { sample.host.read_bytes };
    json!((bytes as f64 / 1024.0).round() / 1024.0)
}

/// When a phase begins, and over which data.
fn phase_data(run: &Run, at_ns: u64, by_writes: bool) -> Value {
    let samples = run.series.iter().flat_map(|series| &series.samples);
    let sample = samples.into_iter().find(|sample| sample.simulated_ns >= at_ns);
    json!({ "ns": at_ns, "x": sample.map(|sample| over_data(sample, by_writes)) })
}

fn series_data(run: &Run, samples: &[Sample], by_writes: bool) -> Value {
    let x = samples.iter().map(|sample| over_data(sample, by_writes)).collect();
    let mut columns = Map::from_iter([("x".to_owned(), x)]);
    let quantile = |histogram: &LogHistogram, q: f64| {
        if histogram.total() == 0 { Value::Null } else { number(histogram.quantile(q) as f64) }
    };
    for (name, q) in [("50", 0.5), ("99", 0.99), ("999", 0.999)] {
        let of = |of: fn(&Sample) -> &LogHistogram| samples.iter().map(|one| quantile(of(one), q)).collect();
        columns.insert(format!("w{name}"), of(|sample| &sample.write_latency));
        columns.insert(format!("r{name}"), of(|sample| &sample.read_latency));
    }
    columns.extend(
        columns_of_charts(run, samples).into_iter().map(|(name, values)| (name.to_owned(), values.into())),
    );
    Value::Object(columns)
}
