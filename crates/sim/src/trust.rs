//! How far a result can be trusted: checks that look at a run once it is over.
//!
//! A check finds that some figures do not mean what a reader takes them for: nothing was collected, requests
//! only waited for each other, a percentile is of a handful of requests. It changes nothing; its note stands
//! above the figures.

mod arrivals;
mod rounds;

pub use arrivals::Arrivals;
pub use rounds::Rounds;

use crate::result::{LatencySummary, RunResult, TrustNote};
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_core::{Cause, Info};

/// What checks look at.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The result, without notes of trust.
    pub result: &'a RunResult,
    /// The workloads whose requests arrive at their time stamps.
    pub stamped: &'a [Stamped],
    /// Programs over what was written, where that was followed.
    pub rounds: Option<&'a Rounds>,
}

/// A workload whose requests arrive at their time stamps.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// The job of a job file that it is, and how many requests that may have under way.
    pub job: Option<(String, u32)>,
    /// How its requests arrived.
    pub arrivals: Arrivals,
    /// The reader spread the requests of a second over it.
    pub spreads_seconds: bool,
}

impl Stamped {
    /// A message with the name of the job, and the option by which it would ignore its times.
    fn tell(&self, message: impl FnOnce(&str) -> String) -> String {
        match &self.job {
            Some((name, _)) => format!("job '{name}': {}", message("replay_no_stall=1 with iodepth=32")),
            None => message("--depth 32"),
        }
    }
}

/// A check.
pub struct Check {
    /// Its name as documents have it, and what it finds.
    pub info: Info,
    look: fn(&Facts<'_>) -> Option<String>,
}

/// Every check of a single run, in the order of its notes.
pub static CHECKS: &[Check] = &[
    check("no-gc", "hosts wrote, and nothing was erased or copied", "", no_gc),
    check("instant-reads", "half of the reads took no time: nothing was there", "", instant_reads),
    check(
        "coarse-time",
        "time stamps have steps of 1 ms or more, and several requests share one or were spread over a second",
        "",
        coarse_time,
    ),
    check("overrun", "1 % of the requests found more than 1024 others under way", "", overrun),
    check(
        "late",
        "1 % of the requests of a recording (read_iolog) were issued after their time, for want of iodepth",
        "",
        late,
    ),
    check("short", "hosts wrote less than the capacity of the device", "[SNIA-PTS]", short),
    check("unsteady", "write amplification of the fifths of a run had not settled", "[SNIA-PTS]", unsteady),
    check("slc-cache", "hosts wrote, and the SLC cache was never emptied", "", slc_cache),
    check("few-samples", "fewer than 1000 reads, or writes: too few for a 99th percentile", "", few_samples),
];

/// Checks that whoever builds the device or compares runs makes, in the order in which they are listed.
pub static OTHER_CHECKS: &[Info] = &[WORN, FEW_BLOCKS, ALIKE, OTHER_REQUESTS, OTHER_SETTINGS];

/// The check of a device that a run wears out.
pub const WORN: Info = other("worn", "a block spent half of its endurance or more");

/// The check of a device that is a smaller one of its kind.
pub const FEW_BLOCKS: Info = other(
    "few-blocks",
    "a scaled device has too few spare blocks: collection waits, or writes go to fewer dies",
);

/// Figures of runs that differ by less than this share are taken as the same.
pub const ALIKE_SHARE: f64 = 0.005;

/// The check of several runs.
pub const ALIKE: Info = other("indistinguishable", "figures of several runs differ by less than 0.5 %");

/// The check of runs that are read from documents; those of one comparison have the same requests.
pub const OTHER_REQUESTS: Info =
    other("other-requests", "runs of one workload, read from documents, had different requests");

/// The check of runs that are read from documents and differ in more than their labels say.
pub const OTHER_SETTINGS: Info = other(
    "other-settings",
    "runs of one workload, read from documents, differ in device, disk, sets or how the workload was run",
);

const fn other(name: &'static str, summary: &'static str) -> Info {
    Info { name, summary, source: "", params: &[] }
}

const fn check(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    look: fn(&Facts<'_>) -> Option<String>,
) -> Check {
    Check { info: Info { name, summary, source, params: &[] }, look }
}

/// What the check of the steady state finds in rounds of its own.
pub(crate) fn never_steady(message: String) -> TrustNote {
    TrustNote { check: "unsteady".to_owned(), message }
}

/// Notes of all checks on a run.
pub fn judge(facts: &Facts<'_>) -> Vec<TrustNote> {
    let notes = CHECKS.iter().filter_map(|check| {
        let message = (check.look)(facts)?;
        Some(TrustNote { check: check.info.name.to_owned(), message })
    });
    notes.collect()
}

/// Whether garbage was collected, be it that a victim was not emptied.
fn collected(result: &RunResult) -> bool {
    result.flash.erases > 0 || result.layer.gc.moved_pages > 0
}

fn no_gc(facts: &Facts<'_>) -> Option<String> {
    let result = facts.result;
    let has_flash = result.cost.total_blocks > 0 && !result.flash.by_cause.is_empty();
    if !has_flash || result.host.write_bytes == 0 || collected(result) {
        return None;
    }
    let advice = if result.cache.is_some() {
        "a smaller device (--fit, --scale) is full sooner"
    } else if result.between.objects.is_some() {
        "--fit 90% makes a device that a recording fills, --scale does that for other loads"
    } else {
        "--fit 90% makes a device that a trace fills, --scale and --precondition do that for other loads"
    };
    Some(format!(
        "nothing was erased: {} were written to a device of {}, so write amplification, wear and latencies are those of a \
         new device; {advice}, and --repeat writes more",
        format_bytes(result.host.write_bytes),
        format_bytes(result.cost.usable_bytes),
    ))
}

fn instant_reads(facts: &Facts<'_>) -> Option<String> {
    let reads = &facts.result.latency_ns.read;
    let is_instant = facts.result.cost.total_blocks > 0 && reads.count > 0 && reads.p50 == 0;
    is_instant.then(|| {
        "half of the reads, or more, took no time, since nothing was ever written there; --precondition fill writes \
         the whole device before"
            .to_owned()
    })
}

/// A step of the time stamps from which on it is coarse, in nanoseconds.
const COARSE_NS: u64 = 1_000_000;
/// Requests that share a time stamp, in the mean, from which on stamps are coarse.
const SHARED: f64 = 2.0;

fn coarse_time(facts: &Facts<'_>) -> Option<String> {
    let look = |stamped: &Stamped| {
        if stamped.spreads_seconds {
            return Some(stamped.tell(|option| {
                format!(
                    "time stamps are whole seconds, and the requests of each second were spread evenly over it: bursts and \
                     pauses within a second are lost, and with them their latencies; {option} replays without time \
                     stamps"
                )
            }));
        }
        let (step, shared) = (stamped.arrivals.step_ns(), stamped.arrivals.requests_per_stamp());
        (step >= COARSE_NS && shared >= SHARED).then(|| {
            stamped.tell(|option| {
                format!(
                    "time stamps are multiples of {} ms, and {shared:.0} requests share one in the mean: they arrive at \
                     once, and their latencies are those of their queue; {option} replays without time stamps",
                    step / 1_000_000
                )
            })
        })
    };
    all(facts.stamped.iter().filter_map(look))
}

/// Several messages as one.
fn all(messages: impl Iterator<Item = String>) -> Option<String> {
    let messages: Vec<String> = messages.collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// Requests under way that no host keeps at a device.
const CROWD: u64 = Arrivals::CROWD as u64;
/// Share of requests that find a crowd, from which on latencies say nothing of the device.
const CROWDED: f64 = 0.01;

fn overrun(facts: &Facts<'_>) -> Option<String> {
    let look = |stamped: &Stamped| {
        let arrivals = &stamped.arrivals;
        let crowded = arrivals.crowded_share();
        if crowded < CROWDED {
            return None;
        }
        let span = arrivals.span_ns().max(1) as f64;
        let took = facts.result.speed.time.simulated_ns as f64;
        // A run of several jobs takes as long as the longest.
        let slower = if stamped.job.is_none() && took > span * 1.01 {
            format!(
                ", and the last one was done after {:.1} times the span of their time stamps",
                took / span
            )
        } else {
            String::new()
        };
        Some(stamped.tell(|option| {
            format!(
                "requests arrived faster than the device could complete them: {:.0} % found more than {CROWD} others \
                 under way, {} at most{slower}; latencies are those of the queue; {option} keeps as many requests under \
                 way as hosts do",
                crowded * 100.0,
                arrivals.most(),
            )
        }))
    };
    all(facts.stamped.iter().filter_map(look))
}

/// Share of late requests from which on arrivals are not those of the recording.
const LATE: f64 = 0.01;

fn late(facts: &Facts<'_>) -> Option<String> {
    let look = |stamped: &Stamped| {
        let (name, depth) = stamped.job.as_ref()?;
        let (share, latest_ns) = (stamped.arrivals.late_share(), stamped.arrivals.latest_ns());
        let why = match depth {
            0 => "since it waits for fsync or thinktime".to_owned(),
            depth => format!("since iodepth={depth} were under way (without iodepth all wait in the device)"),
        };
        (share >= LATE).then(|| {
            format!(
                "job '{name}' issued {:.0} % of its requests after their time, {} at most, {why}: latencies lack the time \
                 that those waited in the host",
                share * 100.0,
                format_ns(latest_ns),
            )
        })
    };
    all(facts.stamped.iter().filter_map(look))
}

fn short(facts: &Facts<'_>) -> Option<String> {
    facts.rounds?;
    let result = facts.result;
    let (written, capacity) = (result.host.write_bytes, result.cost.usable_bytes);
    if !collected(result) || written == 0 || written >= capacity {
        return None;
    }
    Some(format!(
        "hosts wrote {}, {:.1} % of the capacity: write amplification and wear are those of what the device held before \
         more than of this load; a load {} times as long writes the capacity once",
        format_bytes(written),
        written as f64 / capacity as f64 * 100.0,
        capacity.div_ceil(written)
    ))
}

/// Largest spread of the write amplification of the fifths of a run, over their mean, that is steady, and
/// largest change along the line through them: the SNIA's definition.
const SPREAD: f64 = 0.2;
const SLOPE: f64 = 0.1;

/// Whether figures of two rounds or more are within [`SPREAD`] of each other and change by at most [`SLOPE`]
/// along the line through them.
pub(crate) fn is_steady(rounds: &[f64]) -> bool {
    let n = rounds.len() as f64;
    let mean = rounds.iter().sum::<f64>() / n;
    let most = rounds.iter().copied().fold(f64::MIN, f64::max);
    let least = rounds.iter().copied().fold(f64::MAX, f64::min);
    let middle = (n - 1.0) / 2.0;
    let along: f64 = (0..).zip(rounds).map(|(x, waf)| (f64::from(x) - middle) * (waf - mean)).sum();
    let squares: f64 = (0..rounds.len()).map(|x| (x as f64 - middle).powi(2)).sum();
    let change = (along / squares * (n - 1.0)).abs();
    most - least <= SPREAD * mean && change <= SLOPE * mean
}

fn unsteady(facts: &Facts<'_>) -> Option<String> {
    if facts.result.flash.erases == 0 {
        return None;
    }
    let fifths = facts.rounds?.fifths()?;
    if is_steady(&fifths) {
        return None;
    }
    let shown: Vec<String> = fifths.iter().map(|waf| format!("{waf:.2}")).collect();
    Some(format!(
        "write amplification still changed: the fifths of what was written have {} in bytes (steady is within {:.0} % of \
         each other and {:.0} % along the line through them); --until steady or --repeat writes more",
        shown.join(", "),
        SPREAD * 100.0,
        SLOPE * 100.0,
    ))
}

fn slc_cache(facts: &Facts<'_>) -> Option<String> {
    let result = facts.result;
    let slc = result.layer.slc.filter(|slc| slc.capacity_bytes > 0)?;
    let wrote = result.host.write_pages;
    if wrote == 0 || result.flash.cause(Cause::Fold).erases > 0 {
        return None;
    }
    let capacity = format_bytes(slc.capacity_bytes);
    if slc.host_pages >= wrote {
        return Some(format!(
            "all that hosts wrote went to the SLC cache of {capacity}, and nothing of it was folded: rates and \
             latencies are those of the cache, and write amplification lacks the copies that follow; a load that \
             writes more than the cache shows the drive behind it"
        ));
    }
    Some(format!(
        "{:.1} % of what hosts wrote went to the SLC cache of {capacity} and the rest past it: the cache was never \
         emptied, since hosts were not idle; figures of writes mix both, and a drive that had rested first would \
         take a cache full at its higher rate; the time stamps of a trace (--depth 0) have pauses",
        slc.host_pages as f64 / wrote as f64 * 100.0,
    ))
}

/// Requests that a percentile needs above it.
const ABOVE: u64 = 10;

fn few_samples(facts: &Facts<'_>) -> Option<String> {
    let latency = &facts.result.latency_ns;
    let is_few = |summary: &LatencySummary| summary.count > 0 && summary.count < ABOVE * 100;
    let few: Vec<String> = [("reads", &latency.read), ("writes", &latency.write)]
        .into_iter()
        .filter(|(_, summary)| is_few(summary))
        .map(|(what, summary)| format!("{} {what}", summary.count))
        .collect();
    if few.is_empty() {
        return None;
    }
    Some(format!(
        "{}: fewer than {ABOVE} of them are above the 99th percentile, which may be anything",
        few.join(" and ")
    ))
}
