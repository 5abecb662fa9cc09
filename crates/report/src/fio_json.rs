//! Results of a job file in the shape of `fio --output-format=json`, so that scripts made for fio read them.
//!
//! The shape is that of fio 3.33. What has no meaning in virtual time (processor use, page faults, wall-clock
//! stamps) is 0. Submission takes no time, so `slat_ns` is empty and `lat_ns` equals `clat_ns`.

use crate::Run;
use nandscape_sim::result::{
    DirectionResult, JobResult, LatencyPoint, LatencySummary, RateSamples, RunResult,
};
use serde_json::{Map, Value, json};

/// The document of one run.
pub fn render_fio_json(run: &Run) -> String {
    let result = &run.result;
    let jobs: Vec<Value> = result.jobs.iter().map(|job| job_value(result, job)).collect();
    let document = json!({
        "fio version": format!("fio-3.33 (nandscape {})", result.run.version),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "global options": result.run.job_defaults,
        "jobs": jobs,
        "disk_util": [],
    });
    let mut text = serde_json::to_string_pretty(&document).expect("a value without unusual keys");
    text.push('\n');
    text
}

fn job_value(result: &RunResult, job: &JobResult) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("jobname", json!(job.name));
    put("groupid", json!(job.group));
    if !job.description.is_empty() {
        put("desc", json!(job.description));
    }
    put("error", json!(i32::from(result.error.is_some())));
    put("eta", json!(0));
    put("elapsed", json!(job.runtime_ns / 1_000_000_000 + 1));
    put("job options", json!(job.options));
    for (name, pick) in DIRECTIONS {
        put(name, direction(result, job, *pick));
    }
    put(
        "sync",
        json!({
            "total_ios": job.sync.latency_ns.count,
            "lat_ns": latency(&job.sync.latency_ns, job.sync.latency_stddev_ns, &job.sync.percentiles),
        }),
    );
    put("job_runtime", json!(millis(job.runtime_ns)));
    for key in ["usr_cpu", "sys_cpu"] {
        put(key, json!(0.0));
    }
    for key in ["ctx", "majf", "minf"] {
        put(key, json!(0));
    }
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
    let depths = levels.iter().zip(&job.depth_levels).map(|(key, v)| ((*key).to_owned(), json!(v)));
    put("iodepth_level", Value::Object(depths.collect()));
    // Requests are submitted and completed one by one.
    let batches = || json!({"0": 0.0, "4": 100.0, "8": 0.0, "16": 0.0, "32": 0.0, "64": 0.0, ">=64": 0.0});
    put("iodepth_submit", batches());
    put("iodepth_complete", batches());
    for (key, from, to, unit_ns) in
        [("latency_ns", 0, 10, 1), ("latency_us", 10, 20, 1_000), ("latency_ms", 20, 32, 1_000_000)]
    {
        let classes = job.latency_levels.get(from..to).unwrap_or_default().iter().map(|class| {
            let name = match class.up_to_ns {
                u64::MAX => ">=2000".to_owned(),
                ns => (ns / unit_ns).to_string(),
            };
            (name, json!(class.percent))
        });
        put(key, Value::Object(classes.collect()));
    }
    put("latency_depth", json!(job.depth));
    put("latency_target", json!(0));
    put("latency_percentile", json!(100.0));
    put("latency_window", json!(0));
    Value::Object(out)
}

type Pick = fn(&JobResult) -> &DirectionResult;
const DIRECTIONS: &[(&str, Pick)] =
    &[("read", |job| &job.read), ("write", |job| &job.write), ("trim", |job| &job.trim)];

const fn millis(ns: u64) -> u64 {
    ns.div_ceil(1_000_000)
}

fn direction(result: &RunResult, job: &JobResult, pick: Pick) -> Value {
    let figures = pick(job);
    let has_run = figures.requests > 0;
    let group = result.jobs.iter().filter(|other| other.group == job.group);
    let group_bytes_per_s: f64 = group.map(|other| pick(other).bytes_per_s).sum();
    let (bw, iops) = (&figures.bandwidth_samples, &figures.iops_samples);
    let share = if group_bytes_per_s > 0.0 { (bw.mean * 100.0 / group_bytes_per_s).min(100.0) } else { 0.0 };
    let kib = |samples: &RateSamples| {
        [samples.min, samples.max, samples.mean, samples.stddev].map(|bytes| bytes / 1024.0)
    };
    let [bw_min, bw_max, bw_mean, bw_dev] = kib(bw);
    let of = |wanted: bool| if wanted { figures.percentiles.as_slice() } else { &[] };
    let lat = |wanted| latency(&figures.latency_ns, figures.latency_stddev_ns, of(wanted));
    json!({
        "io_bytes": figures.bytes,
        "io_kbytes": figures.bytes / 1024,
        "bw_bytes": figures.bytes_per_s as u64,
        "bw": (figures.bytes_per_s / 1024.0) as u64,
        "iops": figures.iops,
        "runtime": if has_run { millis(job.runtime_ns) } else { 0 },
        "total_ios": figures.requests,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency(&LatencySummary::default(), 0.0, &[]),
        "clat_ns": lat(job.percentiles_of.completion),
        "lat_ns": lat(job.percentiles_of.total),
        "bw_min": bw_min as u64,
        "bw_max": bw_max as u64,
        "bw_agg": share,
        "bw_mean": bw_mean,
        "bw_dev": bw_dev,
        "bw_samples": bw.count,
        "iops_min": iops.min as u64,
        "iops_max": iops.max as u64,
        "iops_mean": iops.mean,
        "iops_stddev": iops.stddev,
        "iops_samples": iops.count,
    })
}

fn latency(summary: &LatencySummary, stddev: f64, percentiles: &[LatencyPoint]) -> Value {
    let mut out = Map::new();
    out.insert("min".to_owned(), json!(summary.min));
    out.insert("max".to_owned(), json!(summary.max));
    out.insert("mean".to_owned(), json!(summary.mean));
    out.insert("stddev".to_owned(), json!(stddev));
    out.insert("N".to_owned(), json!(summary.count));
    if summary.count > 0 && !percentiles.is_empty() {
        let points = percentiles.iter().map(|point| (format!("{:.6}", point.percent), json!(point.ns)));
        out.insert("percentile".to_owned(), Value::Object(points.collect()));
    }
    Value::Object(out)
}
