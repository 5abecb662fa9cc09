//! What cleaning costs those who use the cache meanwhile: latency of a load with the rate controller, beside the same without cleaning.
//!
//! No published figure: the bound is ours. The load reads and writes at a fixed rate, so that both runs do the same, and half of its blocks or more are dirty
//! when it begins, far above the controller's target.

use super::{Context, Reproduction, statement};
use crate::config::{StackConfig, Typed};
use crate::jobs::run_parsed;
use crate::run::{RunError, RunOptions};
use nandscape_core::Info;
use nandscape_jobs::JobFile;
use nandscape_report::{ReproductionRow, Run};
use serde_json::Value;

const ID: &str = "cache-cleaning";

pub(super) const CACHE_CLEANING: Reproduction = Reproduction {
    info: Info {
        name: ID,
        summary: "latency of a load while a cache cleans at a controlled rate, beside the same load without cleaning",
        source: "own bound: p99 within twice its value without cleaning",
        params: &[],
    },
    run: rows,
};

/// A load: its name, the MiB that it uses of a cache of 64 MiB, and requests a second of each direction.
const LOADS: [(&str, u32, u32); 3] =
    [("all hits", 32, 2000), ("all hits, SSD near its limit", 32, 8000), ("half of them misses", 72, 40)];

/// Virtual time of a load.
const SECONDS: u64 = 120;

fn jobs(mib: u32, rate: u32) -> String {
    format!(
        "[global]\nioengine=libaio\nbs=4k\nfilename=ns1\nsize={mib}m\n\
         [warm]\nrw=randread\niodepth=32\n\
         [dirty]\nstonewall\nrw=randwrite\niodepth=32\nnumber_ios=4000\n\
         [load]\nstonewall\nrw=randrw\niodepth=8\nrate_iops={rate}\ntime_based\nruntime={SECONDS}\n"
    )
}

fn run(mib: u32, rate: u32, cleaning: &str, context: &Context<'_>) -> Result<Run, RunError> {
    context.check_stop()?;
    let mut typed = Typed::new();
    for (key, value) in [
        ("cache.preset", "nandscape"),
        ("cache.admission", "all"),
        ("cache.device", "article-ssd"),
        ("cache.size", "64MiB"),
        ("cache.cleaning", cleaning),
        ("workload.seed", &context.seed.to_string()),
    ] {
        typed.set(key, value)?;
    }
    let config: StackConfig = typed.check()?;
    let file = JobFile::parse(ID, &jobs(mib, rate))?;
    let options = RunOptions { stop: context.stop, ..RunOptions::default() };
    let run = run_parsed(&config, &file, ID, &options)?;
    context.check_stop()?;
    match &run.result.error {
        Some(error) => Err(RunError::Failed { label: run.label, message: error.message.clone() }),
        None => Ok(run),
    }
}

/// p99 of reads and of writes of the load, in microseconds.
fn p99_us(run: &Run) -> [f64; 2] {
    let load = run.result.jobs.iter().find(|job| job.name == "load").expect("a job of the file");
    [load.read.latency_ns.p99, load.write.latency_ns.p99].map(|ns| ns as f64 / 1e3)
}

fn figure(name: String, unit: &str, measured: Value) -> ReproductionRow {
    ReproductionRow {
        id: ID.to_owned(),
        row: String::new(),
        name,
        unit: unit.to_owned(),
        published: Value::Null,
        measured,
        ratio: None,
        note: String::new(),
    }
}

fn rows(context: &Context<'_>) -> Result<Vec<ReproductionRow>, RunError> {
    let mut rows = Vec::new();
    for (name, mib, rate) in LOADS {
        let (without, with) = (run(mib, rate, "none", context)?, run(mib, rate, "pi-rate", context)?);
        let (before, after) = (p99_us(&without), p99_us(&with));
        let cleaned = |run: &Run| run.result.cache.as_ref().map_or(0, |cache| cache.report.count("cleaned"));
        for (at, direction) in ["reads", "writes"].into_iter().enumerate() {
            rows.push(figure(
                format!("{name}: p99 of {direction} without cleaning"),
                "us",
                before[at].into(),
            ));
            rows.push(figure(format!("{name}: p99 of {direction} with pi-rate"), "us", after[at].into()));
        }
        rows.push(figure(format!("{name}: blocks cleaned with pi-rate"), "", cleaned(&with).into()));
        let ratios = [after[0] / before[0], after[1] / before[1]];
        rows.push(statement(
            ID,
            "",
            format!("{name}: p99 while cleaning"),
            "within twice its value without",
            ratios.iter().all(|ratio| *ratio <= 2.0) && cleaned(&with) > cleaned(&without),
            &format!("measured: reads {:.2}, writes {:.2} times", ratios[0], ratios[1]),
        ));
    }
    Ok(rows)
}
