//! What runs of one workload come to, in a few sentences that stand above their figures.

use crate::Run;
use crate::metrics::spread;
use crate::number::{Kind, grouped, printable};
use nandscape_core::units::format_bytes;
use nandscape_sim::RunResult;
use nandscape_sim::result::LatencySummary;
use nandscape_sim::trust::ALIKE_SHARE as SAME;

/// Requests from which on their 99th percentile is one.
const FEWEST: u64 = 1000;
/// Flushes from which on their mean is said.
const FEWEST_FLUSHES: u64 = 100;
/// Runs that a sentence names; of more it names the first and the last.
const NAMED: usize = 4;

/// A few sentences: how much flash is programmed, how long requests take, what that costs. Runs that
/// did not end well have no part in it.
pub(crate) fn verdict(runs: &[&Run]) -> Vec<String> {
    let complete: Vec<&Run> = runs.iter().copied().filter(|run| run.is_complete()).collect();
    if complete.is_empty() {
        return Vec::new();
    }
    if complete.iter().any(|run| run.result.cache.is_some()) {
        return caches(&complete).into_iter().chain(flushes(&complete)).collect();
    }
    let (flash, least) = match complete.as_slice() {
        [run] => (
            silence(&[run]).filter(|_| run.result.waf.bytes.is_some()).or_else(|| flash_of_one(&run.result)),
            *run,
        ),
        _ => flash_of_several(&complete),
    };
    let last = if complete.len() == 1 { lifetime(least) } else { price(least, &complete) };
    [flash, latencies(&complete), flushes(&complete), last].into_iter().flatten().collect()
}

fn name(run: &Run) -> String {
    // Of several workloads, each has sentences of its own.
    let name = printable(run.name());
    if run.result.cache.is_some() && !run.result.has_cache() {
        format!("the disk alone ({name})")
    } else {
        name
    }
}

/// A sentence that begins with an article begins with a capital; names stay as they are.
fn capitalised(text: &str) -> String {
    text.strip_prefix("the ").map_or_else(|| text.to_owned(), |rest| format!("The {rest}"))
}

fn doubts(run: &Run, check: &str) -> bool {
    run.result.trust.iter().any(|note| note.check == check)
}

/// Write amplification, or bytes programmed in all. Stacks write other bytes for the same load: a file system
/// adds its own, a store of files does not. So write amplification does not compare stacks.
fn programmed(result: &RunResult, in_all: bool) -> Option<f64> {
    let written = if in_all { result.host.write_bytes as f64 } else { 1.0 };
    let waf = spread(result, "waf_bytes").map(|spread| spread.mean).or(result.waf.bytes)?;
    Some(waf * written).filter(|bytes| *bytes > 0.0)
}

const NOTHING_ERASED: &str =
    "Nothing was erased, so this says nothing of write amplification, wear or garbage collection.";
/// Share of the capacity below which what is written says nothing of the flash.
const LITTLE: f64 = 0.01;

/// Why runs say nothing of write amplification.
pub(crate) fn silence(runs: &[&Run]) -> Option<String> {
    if runs.iter().all(|run| run.result.flash.erases == 0) {
        return Some(NOTHING_ERASED.to_owned());
    }
    let share = |run: &Run| run.result.host.write_bytes as f64 / run.result.cost.usable_bytes.max(1) as f64;
    let most = runs.iter().map(|run| share(run)).fold(0.0, f64::max);
    (most < LITTLE).then(|| {
        format!(
            "Hosts wrote {:.2} % of the capacity, too little to say anything of write amplification.",
            most * 100.0
        )
    })
}

fn flash_of_one(result: &RunResult) -> Option<String> {
    let waf = programmed(result, false)?;
    let copied = result.flash.by_cause.get("gc").map_or(0, |counts| counts.programs);
    let share = copied as f64 * 100.0 / result.flash.programs.max(1) as f64;
    Some(format!(
        "{waf:.2} bytes are programmed for each byte that hosts write, {share:.0} % of them copies by garbage collection."
    ))
}

/// And the run that programs the least flash.
fn flash_of_several<'a>(runs: &[&'a Run]) -> (Option<String>, &'a Run) {
    let kind = |run: &Run| run.result.run.config.pointer("/stack/kind").cloned();
    let is_mixed = runs.iter().any(|run| kind(run) != kind(runs[0]));
    let mut flash: Vec<(&Run, f64)> =
        runs.iter().filter_map(|run| Some((*run, programmed(&run.result, is_mixed)?))).collect();
    flash.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(&(best, least)), Some(&(_, most))) = (flash.first(), flash.last()) else {
        return (None, runs[0]);
    };
    if flash.len() < 2 {
        return (None, best);
    }
    let writers: Vec<&Run> = flash.iter().map(|(run, _)| *run).collect();
    if let Some(text) = silence(&writers) {
        return (Some(text), best);
    }
    let amount =
        |(_, value): &(&Run, f64)| if is_mixed { format_bytes(*value as u64) } else { format!("{value:.2}") };
    let of = if is_mixed { "" } else { " bytes for each byte that hosts write" };
    if most / least - 1.0 < SAME {
        let text = format!("All program the same amount of flash, {}{of}.", amount(&flash[0]));
        return (Some(text), best);
    }
    let shown: Vec<&(&Run, f64)> =
        if flash.len() <= NAMED { flash[1..].iter().collect() } else { flash.last().into_iter().collect() };
    let others: Vec<String> = shown
        .iter()
        .map(|other| {
            let more = match other.1 / least {
                times if times >= 2.0 => format!("{times:.1} times as much"),
                times => format!("{:.1} % more", (times - 1.0) * 100.0),
            };
            format!("{} {} ({more})", name(other.0), amount(other))
        })
        .collect();
    let rest = if shown.len() + 1 < flash.len() { "; the most, " } else { "; " };
    let settled = if flash.iter().any(|(run, _)| doubts(run, "unsteady") || doubts(run, "short")) {
        " (before that had settled, see below)"
    } else {
        ""
    };
    let unclear = if is_mixed { String::new() } else { unclear(best, &flash[1..]) };
    let text = format!(
        "{} programs the least flash, {}{of}{settled}{rest}{}{unclear}.",
        name(best),
        amount(&flash[0]),
        others.join(", ")
    );
    (Some(text), best)
}

/// Which other runs the seeds do not tell from the best.
fn unclear(best: &Run, others: &[(&Run, f64)]) -> String {
    let waf = |run: &Run| spread(&run.result, "waf_bytes");
    let reaches = |run: &Run| waf(best).zip(waf(run)).is_some_and(|(best, other)| other.min <= best.max);
    let names: Vec<String> =
        others.iter().filter(|(run, _)| reaches(run)).take(NAMED).map(|(run, _)| name(run)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; the ranges over the seeds overlap with {}", names.join(", "))
}

type Summary = fn(&RunResult) -> &LatencySummary;

/// A kind of request with enough of them, in all runs.
fn percentile(runs: &[&Run]) -> Option<(&'static str, Summary)> {
    let kinds: [(&str, Summary); 2] =
        [("writes", |r| &r.latency_ns.write), ("reads", |r| &r.latency_ns.read)];
    kinds.into_iter().find(|(_, of)| runs.iter().all(|run| of(&run.result).count >= FEWEST))
}

fn latencies(runs: &[&Run]) -> Option<String> {
    let (what, of) = percentile(runs)?;
    let key = format!("latency_ns.{}.p99", what.trim_end_matches('s'));
    let p99 = |run: &Run| {
        spread(&run.result, &key).map_or_else(|| of(&run.result).p99 as f64, |spread| spread.mean)
    };
    let mut times: Vec<(&Run, f64)> = runs.iter().map(|run| (*run, p99(run))).collect();
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (first, last) = (times[0], times[times.len() - 1]);
    let time = |(run, ns): (&Run, f64)| match what {
        "writes" if ns == 0.0 => Kind::Nanos.show_alone(ns) + " (they wait in memory to be written)",
        _ => waited(run, ns),
    };
    Some(if last.1 - first.1 < SAME * last.1 {
        let all = if runs.len() > 1 { " on all" } else { "" };
        format!("99 % of the {what} end within {}{all}.", time(last))
    } else {
        let [soon, late] = [first.0, last.0].map(name);
        let (first, last) = (time(first), time(last));
        format!("99 % of the {what} end on {soon} within {first}, on {late} within {last}.")
    })
}

/// A latency of a run, and whether most of it may be that of a queue.
fn waited(run: &Run, ns: f64) -> String {
    let is_queue = ns > 0.0 && (doubts(run, "overrun") || doubts(run, "coarse-time"));
    Kind::Nanos.show_alone(ns) + if is_queue { " (much of it in a queue, see below)" } else { "" }
}

/// How long flushes take, where a run waits longer for them than for writes.
fn flushes(runs: &[&Run]) -> Option<String> {
    let total = |of: &LatencySummary| of.mean * of.count as f64;
    let mut times = Vec::new();
    for run in runs {
        let flush = run.result.latency_ns.flush.as_ref().filter(|flush| flush.count >= FEWEST_FLUSHES)?;
        let mean = spread(&run.result, "latency_ns.flush.mean").map_or(flush.mean, |spread| spread.mean);
        times.push((*run, mean, total(flush) > total(&run.result.latency_ns.write)));
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((first, least, _), (last, most, _)) = (*times.first()?, *times.last()?);
    let (soon, late) = (waited(first, least), waited(last, most));
    times.iter().any(|(_, _, is_long)| *is_long).then(|| {
        if most - least < SAME * most {
            let all = if runs.len() > 1 { " on all" } else { "" };
            format!("Flushes take {late} in the mean{all}.")
        } else {
            format!("Flushes take {soon} in the mean on {}, {late} on {}.", name(first), name(last))
        }
    })
}

fn lifetime(run: &Run) -> Option<String> {
    let life = &run.result.lifetime;
    let (writes, years) = life.drive_writes.zip(life.years_at_1_dwpd)?;
    if silence(&[run]).is_some() {
        return None;
    }
    Some(format!(
        "Loads like this may write the capacity {} times until the flash is worn: {years:.1} years at once a day.",
        grouped(writes as u64)
    ))
}

/// What the run with the least flash costs and gives beside the one with the largest capacity.
fn price(best: &Run, runs: &[&Run]) -> Option<String> {
    let usable = |run: &Run| run.result.cost.usable_bytes;
    let largest = runs.iter().copied().max_by_key(|run| usable(run))?;
    let (less, most) = (usable(best) as f64, usable(largest) as f64);
    if less <= 0.0 || 1.0 - less / most < SAME {
        return None;
    }
    let life = |run: &Run| run.result.lifetime.drive_writes.filter(|_| silence(&[run]).is_none());
    let lasts = match (life(best), life(largest)) {
        (Some(best), Some(other)) => format!(
            "; it may be written {} times until it is worn, instead of {}",
            grouped(best as u64),
            grouped(other as u64)
        ),
        _ => String::new(),
    };
    let [name, other] = [best, largest].map(name);
    Some(format!("{name} has {:.0} % less capacity than {other}{lasts}.", (1.0 - less / most) * 100.0))
}

/// The mean of all reads and writes.
fn mean(result: &RunResult) -> Option<f64> {
    let (read, write) = (&result.latency_ns.read, &result.latency_ns.write);
    let count = read.count + write.count;
    let sum = read.mean * read.count as f64 + write.mean * write.count as f64;
    (count > 0).then(|| sum / count as f64)
}

fn caches(runs: &[&Run]) -> Option<String> {
    let mut times: Vec<(&Run, f64)> =
        runs.iter().filter_map(|run| Some((*run, mean(&run.result)?))).collect();
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let &(best, soonest) = times.first()?;
    let shown = Kind::Nanos.show_alone(soonest);
    let hits = match best.result.cache.as_ref().filter(|_| best.result.has_cache()) {
        Some(cache) => {
            let hits = cache.hit_ratio.map_or(String::new(), |ratio| format!("{:.1} %", ratio * 100.0));
            let written = format_bytes(cache.report.fast.write_bytes);
            format!("; it has {hits} of the requests in the cache and writes {written} to flash for that")
        }
        None => String::new(),
    };
    let Some(&(last, latest)) = times.get(1..).and_then(<[_]>::last) else {
        return Some(format!("Requests take {shown} in the mean{hits}."));
    };
    if latest - soonest < SAME * latest {
        return Some(format!("Requests take {shown} in the mean on all{hits}."));
    }
    let done = done_first(runs, best).unwrap_or_default();
    let [best, last] = [best, last].map(name);
    let latest = Kind::Nanos.show_alone(latest);
    let text =
        format!("{best} answers soonest, after {shown} in the mean; {last} after {latest}{hits}.{done}");
    Some(capitalised(&text))
}

/// By how much a run is over earlier that is named for it.
const EARLIER: f64 = 0.1;

/// The run that is over first, where that is not the one that answers soonest: a mean has reads and writes,
/// and requests wait for flushes too.
fn done_first(runs: &[&Run], soonest: &Run) -> Option<String> {
    let time = |run: &Run| run.result.speed.time.simulated_ns as f64;
    let first = runs.iter().copied().min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let is_other = time(first) < (1.0 - EARLIER) * time(soonest);
    let shown = |run: &Run| Kind::Nanos.show_alone(time(run));
    is_other.then(|| {
        let sentence = format!(
            "{} is done first, after {}, flushes included; {} after {}.",
            name(first),
            shown(first),
            name(soonest),
            shown(soonest)
        );
        format!(" {}", capitalised(&sentence))
    })
}
