//! What cleaning costs those who use the cache meanwhile: latency of a load with the rate controller, beside
//! the same without cleaning and with cleaning as fast as the disk takes it.
//!
//! No published figure: the bound is ours. The load reads and writes at a fixed rate, so that all runs do the
//! same, and half of its blocks or more are dirty when it begins, far above the target of either policy.

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_report::{RowSeries, Run};
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::jobs::timeline::Window;
use nandscape_stack::RunOptions;
use std::fmt::Display;

const ID: &str = "cache-cleaning";

pub(super) const CACHE_CLEANING: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "the controller has no limit where all hit, and cleans nothing where half misses",
        turns: Sabotage::EVERY_RULE,
    }),
    ..experiment(
        ID,
        "latency of a load while a cache cleans at a controlled rate, beside the same load without cleaning",
        "own bound: p99 within twice its value without cleaning",
        |context, out| rows(context.scale(FULL, SMALL), context, out),
    )
};

#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Virtual time of a load, in seconds.
    seconds: u32,
    /// Length of an interval of the series, in seconds.
    step: u32,
}

/// What `nandscape reproduce` runs.
const FULL: Scale = Scale { seconds: 120, step: 5 };
/// What the tests run.
const SMALL: Scale = Scale { seconds: 25, step: 5 };

struct Load {
    name: &'static str,
    mib: u32,
    /// Requests a second of each direction.
    rate: u32,
    /// So many times as long, where requests are few.
    longer: u32,
    /// Which of [`WAYS`] a sabotaged run takes instead of the controller.
    spoiled: usize,
}

const LOADS: [Load; 3] = [
    Load { name: "all hits", mib: 32, rate: 2000, longer: 1, spoiled: 2 },
    Load { name: "all hits, SSD near its limit", mib: 32, rate: 8000, longer: 1, spoiled: 2 },
    Load { name: "half of them misses", mib: 72, rate: 40, longer: 5, spoiled: 0 },
];

/// Ways to clean, each with its name in the charts and its keys: the bound is on the second, measured on the
/// first.
const WAYS: [(&str, &[(&str, &str)]); 3] = [
    ("no cleaning", &[("cache.cleaning", "none")]),
    ("pi-rate", &[("cache.cleaning", "pi-rate")]),
    ("no limit", &[("cache.cleaning", "watermarks"), ("cache.clean_high", "10%"), ("cache.clean_low", "9%")]),
];

/// The way that the bound is on.
const CONTROLLED: usize = 1;

/// Share of the cache that both policies leave dirty, in per cent.
const TARGET: f64 = 10.0;

fn jobs(load: &Load, scale: Scale) -> String {
    let Load { mib, rate, longer, .. } = load;
    let seconds = scale.seconds * longer;
    format!(
        "[global]\nioengine=libaio\nbs=4k\nfilename=ns1\nsize={mib}m\n\
         [warm]\nrw=randread\niodepth=32\n\
         [dirty]\nstonewall\nrw=randwrite\niodepth=32\nnumber_ios=4000\n\
         [load]\nstonewall\nrw=randrw\niodepth=8\nrate_iops={rate}\ntime_based\nruntime={seconds}\n"
    )
}

fn run(jobs: &str, keys: &[(&str, &str)], context: &Context<'_>) -> Result<Run> {
    let mut all: Vec<(&str, &dyn Display)> = vec![
        ("cache.preset", &"nandscape"),
        ("cache.admission", &"all"),
        ("cache.device", &"article-ssd"),
        ("cache.size", &"64MiB"),
    ];
    all.extend(keys.iter().map(|(key, value)| (*key, value as &dyn Display)));
    let options = RunOptions { with_series: true, interval_ns: Some(1_000_000_000), ..RunOptions::default() };
    context.run_jobs(&context.config(None, &all)?, ID, jobs, options)
}

/// What a run did, of the load as a whole and over time.
struct Course {
    /// p99 of reads and of writes, in microseconds.
    p99_us: [f64; 2],
    /// Blocks cleaned since the beginning.
    cleaned: u64,
    /// Ends of the intervals, from the beginning of the load.
    time_s: Vec<f64>,
    /// In each interval: p99 of reads and of writes, dirty share at its end in per cent, blocks cleaned a
    /// second.
    values: [Vec<Option<f64>>; 4],
}

/// `step` windows of the series are an interval.
fn course(run: &Run, step: usize) -> Course {
    let load = run.result.jobs.iter().find(|job| job.name == "load").expect("a job of the file");
    let series = run.jobs.as_ref().expect("asked for");
    let row = series.rows.iter().position(|name| name == "load").expect("a job of the file");
    let is_load = |window: &Window| window.rows[row].iter().any(|cell| cell.requests > 0);
    let first = series.windows.iter().position(is_load).unwrap_or(series.windows.len());
    let (before, windows) = series.windows.split_at(first);
    let begin_ns = before.last().map_or(0, |window| window.end_ns);
    let cleaned = |window: &Window| window.cache.map_or(0, |cache| cache.counts.cleaned);
    let (mut from_ns, mut so_far) = (begin_ns, before.last().map_or(0, cleaned));
    let mut course = Course {
        p99_us: [load.read.latency_ns.p99, load.write.latency_ns.p99].map(|ns| ns as f64 / 1e3),
        cleaned: run.result.cache.as_ref().map_or(0, |cache| cache.report.counters.cleaned),
        time_s: Vec::new(),
        values: Default::default(),
    };
    for step in windows.chunks_exact(step) {
        let last = step.last().expect("a step has windows");
        let p99_us = |direction: usize| {
            let mut histogram = LogHistogram::default();
            for window in step {
                histogram.add_sparse(&window.rows[row][direction].buckets);
            }
            (histogram.total() > 0).then(|| histogram.quantile(0.99) as f64 / 1e3)
        };
        let seconds = (last.end_ns - from_ns) as f64 / 1e9;
        let point = [
            p99_us(0),
            p99_us(1),
            last.cache.map(|cache| cache.dirty as f64 * 100.0 / cache.slots as f64),
            Some((cleaned(last) - so_far) as f64 / seconds),
        ];
        course.time_s.push((last.end_ns - begin_ns) as f64 / 1e9);
        course.values.iter_mut().zip(point).for_each(|(column, value)| column.push(value));
        (from_ns, so_far) = (last.end_ns, cleaned(last));
    }
    course
}

const CHARTS: [(&str, &str); 4] = [
    ("p99 of reads", "us"),
    ("p99 of writes", "us"),
    ("dirty share of the cache", "%"),
    ("blocks cleaned", "blocks/s"),
];

/// Adds a measured figure, or a limit, with its line in a chart of a load.
fn figure(
    out: &mut Table,
    load: &str,
    chart: usize,
    line: &str,
    is_bound: bool,
    value: f64,
    (time_s, values): (&[f64], &[Option<f64>]),
) {
    let (name, unit) = CHARTS[chart];
    out.row("", format!("{load}: {name}, {line}")).figure(unit, value).series(RowSeries {
        part: load.to_owned(),
        chart: name.to_owned(),
        line: line.to_owned(),
        is_bound,
        axis: String::new(),
        at: time_s.to_vec(),
        values: values.to_vec(),
    });
}

fn rows(scale: Scale, context: &Context<'_>, out: &mut Table) -> Done {
    for load in LOADS {
        let jobs = jobs(&load, scale);
        let mut courses = Vec::new();
        for (way, (_, keys)) in WAYS.into_iter().enumerate() {
            let keys = if context.is_sabotaged && way == CONTROLLED { WAYS[load.spoiled].1 } else { keys };
            courses.push(course(&run(&jobs, keys, context)?, (scale.step * load.longer) as usize));
        }
        of_load(load.name, &courses, f64::from(scale.seconds * load.longer), out);
    }
    Ok(())
}

fn of_load(load: &str, courses: &[Course], seconds: f64, out: &mut Table) {
    let (with, without) = (&courses[CONTROLLED], &courses[0]);
    let ratios = [0, 1].map(|direction| with.p99_us[direction] / without.p99_us[direction]);
    let cleans = with.cleaned as f64 >= 1.1 * without.cleaned as f64 && with.cleaned > 0;
    let holds = ratios.iter().all(|ratio| *ratio <= 2.0) && cleans;
    out.row("", format!("{load}: p99 while cleaning with pi-rate"))
        .says("within twice its value without, while 10 % more is cleaned or more", holds)
        .found(format!(
            "reads {:.2}, writes {:.2} times; {} blocks cleaned, without {}",
            ratios[0], ratios[1], with.cleaned, without.cleaned
        ));
    for chart in 0..CHARTS.len() {
        for ((way, _), course) in WAYS.iter().zip(courses) {
            let value = match chart {
                0 | 1 => course.p99_us[chart],
                2 => course.values[chart].last().copied().flatten().unwrap_or(f64::NAN),
                _ => course.cleaned as f64 / seconds,
            };
            let points = (course.time_s.as_slice(), course.values[chart].as_slice());
            figure(out, load, chart, way, false, value, points);
        }
        let (line, bound) = match chart {
            0 | 1 => ("twice that of no cleaning", 2.0 * courses[0].p99_us[chart]),
            2 => ("target", TARGET),
            _ => continue,
        };
        figure(out, load, chart, line, true, bound, (&[0.0, seconds], &[Some(bound); 2]));
    }
}
