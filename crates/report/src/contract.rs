//! How a workload follows the unwritten contract of SSDs, and what kind of load it is, for a terminal.

use crate::number::grouped;
use nandscape_core::units::format_bytes;
use nandscape_trace::TraceStats;
use nandscape_trace::stats::{
    AlignedSequentiality, DeathTimes, Distribution, LARGE_BYTES, Lifetimes, Locality, Pattern, Patterns,
    RequestScale, SMALL_BYTES,
};
use std::fmt::Write as _;

/// Streams that are shown; JSON has all.
const STREAMS_SHOWN: usize = 8;

pub fn render(out: &mut String, stats: &TraceStats) {
    let block_bytes = stats.alignment.get(1).map_or(0, |block| block.unit_bytes);
    let (patterns, contract) = (&stats.patterns, &stats.contract);
    if patterns.whole.requests == 0 {
        return;
    }
    let _ = writeln!(out, "\nkind of load");
    pattern(out, "whole", &patterns.whole);
    // The largest of them, in the order of their numbers.
    let mut sizes: Vec<u64> = patterns.streams.iter().map(|stream| stream.bytes).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes.get(STREAMS_SHOWN - 1).copied().unwrap_or(0);
    let shown: Vec<_> =
        patterns.streams.iter().filter(|stream| stream.bytes >= least).take(STREAMS_SHOWN).collect();
    for stream in &shown {
        pattern(out, &format!("volume {}, hint {}", stream.volume, stream.hint), stream);
    }
    let more = patterns.unlisted + (patterns.streams.len() - shown.len()) as u64;
    if more > 0 || patterns.further > 0 {
        let _ = writeln!(
            out,
            "  {:22} {} more of volume and hint, and {} requests of pairs beyond these",
            "",
            grouped(more),
            grouped(patterns.further)
        );
    }
    if patterns.written.count > 1 {
        line(out, "append-only", &append_only(patterns));
    }
    let _ = writeln!(out, "\nunwritten contract of SSDs (He et al., EuroSys 2017)");
    scale(out, &contract.request_scale);
    locality(out, &contract.locality);
    if contract.aligned_sequentiality.writes > 0 {
        sequentiality(out, &contract.aligned_sequentiality, block_bytes);
        death_times(out, &contract.death_times, block_bytes);
        lifetimes(out, &contract.lifetimes, block_bytes);
    }
}

/// Which of several streams only grow.
pub fn append_only(patterns: &Patterns) -> String {
    let (some, all) = (patterns.append_only, patterns.written);
    format!(
        "{} of {} written, {} of their bytes",
        grouped(some.count),
        grouped(all.count),
        percent(some.write_bytes, all.write_bytes)
    )
}

fn line(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:22} {text}");
}

fn pattern(out: &mut String, name: &str, pattern: &Pattern) {
    let of = |count| percent(count, pattern.requests);
    line(out, name, &format!("{} ({} reads and writes)", pattern.class, grouped(pattern.requests)));
    let mut text = format!(
        "{} large (from {}), {} small (up to {}), {} sequential",
        of(pattern.large),
        format_bytes(LARGE_BYTES),
        of(pattern.small),
        format_bytes(SMALL_BYTES),
        of(pattern.sequential)
    );
    if pattern.writes > 0 {
        let of = |count| percent(count, pattern.writes);
        let all = of(pattern.large_sequential_appends);
        let _ = write!(text, "; of the writes {} append, {all} are all three", of(pattern.appends));
    }
    line(out, "", &text);
}

fn scale(out: &mut String, scale: &RequestScale) {
    line(
        out,
        "1 request scale",
        &format!(
            "{} of the reads and writes have {} or more, {} have {} or less",
            percent(scale.large, scale.requests),
            format_bytes(LARGE_BYTES),
            percent(scale.small, scale.requests),
            format_bytes(SMALL_BYTES)
        ),
    );
    match &scale.concurrency {
        Some(together) => distribution(out, "  arrive within 100 us", together, grouped),
        None => line(out, "  arrive within 100 us", "unknown: the times are not real"),
    }
    if let Some(between) = &scale.between_flushes {
        distribution(out, "  between two flushes", between, grouped);
    }
}

fn locality(out: &mut String, locality: &Locality) {
    let caches: Vec<String> = locality
        .coverage
        .iter()
        .map(|cache| format!("{}: {:.1} %", format_bytes(cache.bytes), cache.hits * 100.0))
        .collect();
    line(out, "2 locality", &format!("hits of a mapping cache that covers {}", caches.join(", ")));
    distribution(out, "  until the next use", &locality.reuse_bytes, format_bytes);
}

fn sequentiality(out: &mut String, runs: &AlignedSequentiality, block_bytes: u64) {
    let of = |count| percent(count, runs.writes);
    let whole = format!(
        "{} of the bytes fill erase blocks of {} from border to border in one run",
        percent(runs.whole_block_bytes, runs.write_bytes),
        format_bytes(block_bytes)
    );
    line(out, "3 aligned sequence", &whole);
    let borders = format!(
        "start on a page border {}, on a block border {}; end there {} and {}",
        of(runs.starts_on_page),
        of(runs.starts_on_block),
        of(runs.ends_on_page),
        of(runs.ends_on_block)
    );
    line(out, "  writes", &borders);
    distribution(out, "  sequential runs", &runs.run_bytes, format_bytes);
}

fn death_times(out: &mut String, deaths: &DeathTimes, block_bytes: u64) {
    if deaths.groups == 0 {
        line(
            out,
            "4 death times",
            &format!("less than one group of {} was written", format_bytes(block_bytes)),
        );
        return;
    }
    let groups = format!(
        "{} groups of {} written together, {} with deaths, {} dead",
        grouped(deaths.groups),
        format_bytes(block_bytes),
        grouped(deaths.with_deaths),
        grouped(deaths.dead)
    );
    line(out, "4 death times", &groups);
    if deaths.with_deaths > 0 {
        let spread = format!(
            "mean {:.2}, p50 {:.2}, p90 {:.2} (0: a group dies at once; 1: page by page from the beginning)",
            deaths.spread_mean, deaths.spread_p50, deaths.spread_p90
        );
        line(out, "  spread of deaths", &spread);
    }
    if deaths.groups > deaths.dead {
        let live = format!(
            "{:.1} % of the pages of the {} groups that are not dead",
            deaths.live_mean * 100.0,
            grouped(deaths.groups - deaths.dead)
        );
        line(out, "  live at the end", &live);
    }
}

fn lifetimes(out: &mut String, lives: &Lifetimes, block_bytes: u64) {
    let of = |count| percent(count, lives.died + lives.alive);
    let died = format!(
        "of the 4 KiB pages written {} were overwritten, {} discarded, {} live at the end",
        of(lives.overwritten),
        of(lives.died - lives.overwritten),
        of(lives.alive)
    );
    line(out, "5 data lifetime", &died);
    distribution(out, "  written until death", &lives.lifetime_bytes, format_bytes);
    if let Some(gini) = lives.gini {
        let skew = format!(
            "80 % in {} of the {} written ranges of {} (Gini {gini:.2}; 0: even)",
            percent(lives.ranges_of_80_percent, lives.ranges),
            grouped(lives.ranges),
            format_bytes(block_bytes)
        );
        line(out, "  overwrites", &skew);
    }
}

/// Statistics of a number of things, on a line.
pub fn distribution(out: &mut String, name: &str, d: &Distribution, show: fn(u64) -> String) {
    if d.count > 0 {
        let mean = show(d.mean.round() as u64);
        let _ = writeln!(
            out,
            "  {name:22} min {}, mean {mean}, p50 {}, p90 {}, p99 {}, max {}",
            show(d.min),
            show(d.p50),
            show(d.p90),
            show(d.p99),
            show(d.max)
        );
    }
}

/// A part as a share of the whole.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}
