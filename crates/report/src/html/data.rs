//! The data of the charts, as small as a reader cannot tell: four digits, whole numbers without a fraction,
//! single requests thinned out evenly.

use super::Page;
use super::values::{number, optional, ratio};
use crate::{ReportContext, Run};
use nandscape_core::Op;
use nandscape_sim::cached::CachePoint;
use nandscape_sim::metrics::{RequestSample, Sample, Series};
use nandscape_sim::result::LatencySummary;
use serde_json::{Map, Value, json};

/// Single requests of a run in the page.
const MAX_REQUESTS: usize = 6000;

/// The requests of a series that go into the page: every k-th of those kept.
pub(super) fn kept_requests(series: &Series) -> impl Iterator<Item = &RequestSample> {
    let step = series.requests.len().div_ceil(MAX_REQUESTS).max(1);
    series.requests.iter().step_by(step)
}

/// Everything the script needs.
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
    if let Some(series) = run.jobs.as_ref().filter(|series| series.windows.len() > 1) {
        out.insert("jobs".into(), super::jobs::data(&run.result, series));
    }
    out.insert("nines-read".into(), nines(&run.result.latency_ns.read));
    out.insert("nines-write".into(), nines(&run.result.latency_ns.write));
    for (kind, map) in super::maps::maps(page, index) {
        out.insert(kind.into(), map);
    }
    Value::Object(out)
}

/// Percentiles as `[nines, ns]`: p90 is 1 nine, p99 2; p50 is 0.301. Only those that at least one request
/// exceeds.
fn nines(summary: &LatencySummary) -> Value {
    let points: Vec<Value> = crate::metrics::latency_points(summary)
        .into_iter()
        .filter_map(|(name, ns)| Some((crate::metrics::rarity(name)?, ns)))
        .filter(|(rarity, _)| summary.count as f64 >= *rarity)
        .map(|(rarity, ns)| json!([number(rarity.log10()), number(ns)]))
        .collect();
    Value::Array(points)
}

fn requests_data(series: &Series) -> Value {
    let mut index = Vec::new();
    let mut rate = Vec::new();
    let mut ops = String::new();
    for request in kept_requests(series) {
        index.push(json!(request.index));
        // A request that costs no time (a read of nothing) has no throughput.
        let seconds = request.latency_ns as f64 / 1e9;
        rate.push(number(request.bytes as f64 / 1e6 / seconds));
        ops.push(if request.op == Op::Read { 'R' } else { 'W' });
    }
    json!({ "index": index, "rate": rate, "ops": ops })
}

fn series_data(run: &Run, samples: &[Sample], by_writes: bool) -> Value {
    let columns_named = |names: &[&'static str]| -> Vec<(&str, Vec<Value>)> {
        names.iter().map(|name| (*name, Vec::with_capacity(samples.len()))).collect()
    };
    let mut columns = columns_named(&[
        "x", "rate", "rate_i", "waf", "waf_i", "map", "erases", "w50", "w99", "w999", "r50", "r99", "r999",
    ]);
    let mut before: Option<&Sample> = None;
    for sample in samples {
        for ((_, column), value) in columns.iter_mut().zip(point(sample, before, by_writes)) {
            column.push(value);
        }
        before = Some(sample);
    }
    if samples.iter().any(|sample| run.cache_at(sample).is_some()) {
        let mut of_cache = columns_named(&["rhit", "whit", "rhit_i", "whit_i", "dirty", "cleaned"]);
        let mut before = CachePoint::default();
        for sample in samples {
            let now = run.cache_at(sample).unwrap_or(before);
            for ((_, column), value) in of_cache.iter_mut().zip(cache_point(&now, &now.since(&before))) {
                column.push(value);
            }
            before = now;
        }
        columns.extend(of_cache);
    }
    Value::Object(columns.into_iter().map(|(name, column)| (name.to_owned(), Value::Array(column))).collect())
}

/// One point of the curves of a cache: hit ratio of reads and of writes so far and in the interval, dirty
/// share in per cent, blocks cleaned so far.
fn cache_point(so_far: &CachePoint, interval: &CachePoint) -> [Value; 6] {
    [
        optional(so_far.counts.read_hit_ratio()),
        optional(so_far.counts.write_hit_ratio()),
        optional(interval.counts.read_hit_ratio()),
        optional(interval.counts.write_hit_ratio()),
        ratio(so_far.dirty as f64 * 100.0, so_far.slots as f64),
        json!(so_far.counts.cleaned),
    ]
}

/// One point of every curve, in the order of the columns above.
fn point(sample: &Sample, before: Option<&Sample>, by_writes: bool) -> [Value; 13] {
    let bytes = |s: &Sample| (s.host.read_bytes + s.host.write_bytes) as f64;
    let programs = |s: &Sample| s.causes.total().programs as f64;
    let pages = |s: &Sample| s.host.write_pages as f64;
    let seconds = |s: &Sample| s.simulated_ns as f64 / 1e9;
    let since = |of: &dyn Fn(&Sample) -> f64| of(sample) - before.map_or(0.0, of);
    let quantile = |histogram: &nandscape_sim::histogram::LogHistogram, q: f64| {
        if histogram.total() == 0 { Value::Null } else { number(histogram.quantile(q) as f64) }
    };
    let x = if by_writes { sample.host.write_bytes } else { sample.host.read_bytes };
    let (write, read) = (&sample.write_latency, &sample.read_latency);
    [
        // Six digits, so that the points of a long run stay apart.
        json!((x as f64 / 1024.0).round() / 1024.0),
        ratio(bytes(sample) / 1e6, seconds(sample)),
        ratio(since(&bytes) / 1e6, since(&seconds)),
        ratio(programs(sample), pages(sample)),
        ratio(since(&programs), since(&pages)),
        number(sample.ftl.map_update_bytes as f64),
        json!(sample.causes.total().erases),
        quantile(write, 0.5),
        quantile(write, 0.99),
        quantile(write, 0.999),
        quantile(read, 0.5),
        quantile(read, 0.99),
        quantile(read, 0.999),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_a_request_beyond_it() {
        let summary =
            LatencySummary { count: 1000, p50: 5, p99_9: 9, p99_99: 9, max: 9, ..LatencySummary::default() };
        let points = nines(&summary);
        assert_eq!(points.as_array().unwrap().len(), 4, "{points}");
        assert_eq!(points[3].to_string(), "[3,9]");
    }
}
