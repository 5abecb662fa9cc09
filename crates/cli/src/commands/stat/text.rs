//! A stat document for people.

use super::{cached, requests, row};
use crate::console::Screen;
use nandscape_core::OpCounts;
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_engine::{Latencies, Stat};
use nandscape_report::grouped;
use nandscape_sim::result::LatencySummary;
use nandscape_volumes::CacheStat;
use std::fmt::Write;

pub fn table(stat: &Stat) -> String {
    let mut out = String::new();
    let text = &mut out;
    // Of another version: it is left out.
    let cache = stat.cached.clone().and_then(|cached| serde_json::from_value::<CacheStat>(cached).ok());
    head(text, stat);
    since_start(text, stat);
    recent(text, stat);
    if let Some(cache) = &cache {
        cached::rows(text, cache);
    } else {
        causes(text, stat);
        latencies(text, "latency in the model", &stat.service.latency_ns);
    }
    latencies(text, "latency in real time", &stat.service.real_latency_ns);
    row(text, "waiting for the stack", &quantiles(&stat.service.queue.wait_ns));
    state(text, stat);
    if let Some(zones) = &stat.zones {
        for line in super::zones::strip(zones, &Screen { height: usize::MAX, ..Screen::of_stdout() }) {
            out += &line;
            out.push('\n');
        }
    }
    out
}

fn head(out: &mut String, stat: &Stat) {
    let clock = match stat.server.clock.depth {
        Some(depth) => format!("free clock, {depth} outstanding in the model"),
        None => "paced by the model".to_owned(),
    };
    let up = format_ns((stat.server.uptime_s * 1e9) as u64);
    row(out, "server", &format!("pid {}, up {up}, {clock}", stat.server.pid));
    let layer = stat.config.pointer("/ftl/kind").and_then(serde_json::Value::as_str);
    for namespace in &stat.namespaces {
        let size = format_bytes(namespace.capacity_bytes);
        let page = format_bytes(namespace.page_bytes.into());
        let text = match layer {
            _ if stat.cached.is_some() => format!("{size} in cache blocks of {page}"),
            layer => format!("{size} in pages of {page}, {}", layer.unwrap_or("?")),
        };
        row(out, &namespace.name, &text);
    }
}

fn since_start(out: &mut String, stat: &Stat) {
    row(out, "requests", &requests(&stat.host));
    // Files take no time of the model.
    if stat.cached.is_some() {
        return;
    }
    let model_s = stat.speed.time.simulated_ns as f64 / 1e9;
    let speeds = speeds(stat.speed.throughput.read_bytes_per_s, stat.speed.throughput.write_bytes_per_s);
    row(out, "in the model's time", &format!("{model_s:.3} s, {speeds}"));
    let interval = &stat.interval;
    let recent = amplification(stat, interval.flash.programs, interval.host.write_bytes);
    let [waf, in_pages, recent] = [stat.waf.bytes, stat.waf.pages, recent].map(ratio);
    let last = format!("{recent} in the last {:.0} s", interval.seconds);
    row(out, "write amplification", &format!("{waf} since the start ({in_pages} in pages), {last}"));
}

/// Bytes of so many programs of this flash over bytes that hosts wrote meanwhile; none without writes.
pub(super) fn amplification(stat: &Stat, programs: u64, written: u64) -> Option<f64> {
    let each = stat.waf.program_bytes(stat.host.write_bytes, stat.flash.programs)?;
    (written > 0).then(|| programs as f64 * each / written as f64)
}

fn speeds(read: f64, written: f64) -> String {
    format!("{}/s read, {}/s written", format_bytes(read as u64), format_bytes(written as u64))
}

fn recent(out: &mut String, stat: &Stat) {
    let interval = &stat.interval;
    let speeds = speeds(interval.read_bytes_per_s, interval.write_bytes_per_s);
    let mut text = format!("{} requests/s, {speeds}", grouped(interval.requests_per_s.round() as u64));
    if stat.cached.is_none() {
        let flash = &interval.flash;
        let [programs, erases] = [flash.programs, flash.erases].map(grouped);
        write!(text, ", {programs} programs, {erases} erases").expect("a string takes everything");
    }
    row(out, &format!("last {:.0} s", interval.seconds), &text);
}

fn causes(out: &mut String, stat: &Stat) {
    let flash = &stat.flash;
    let counts = |programs: u64, reads: u64, erases: u64| {
        let [programs, reads, erases] = [programs, reads, erases].map(grouped);
        format!("{programs} programs, {reads} reads, {erases} erases")
    };
    row(out, "flash", &counts(flash.programs, flash.reads, flash.erases));
    for (cause, of) in flash.by_cause.iter().filter(|(_, counts)| **counts != OpCounts::default()) {
        row(out, &format!("  {cause}"), &counts(of.programs, of.reads, of.erases));
    }
    let [runs, moved] = [stat.layer.gc.runs, stat.layer.gc.moved_pages].map(grouped);
    row(out, "garbage collection", &format!("{runs} runs, {moved} pages moved"));
}

fn latencies(out: &mut String, name: &str, latencies: &Latencies) {
    let kinds = [
        ("read", &latencies.read),
        ("write", &latencies.write),
        ("trim", &latencies.trim),
        ("flush", &latencies.flush),
    ];
    let measured: Vec<_> = kinds.into_iter().filter(|(_, latency)| latency.count > 0).collect();
    for (at, (kind, latency)) in measured.into_iter().enumerate() {
        row(out, if at == 0 { name } else { "" }, &format!("{kind:<6}{}", quantiles(latency)));
    }
}

fn quantiles(latency: &LatencySummary) -> String {
    let [p50, p99, p99_9, max, mean] =
        [latency.p50, latency.p99, latency.p99_9, latency.max, latency.mean as u64].map(format_ns);
    format!("p50 {p50}, p99 {p99}, p99.9 {p99_9}, max {max}, mean {mean}")
}

/// What may be wrong, or become so.
fn state(out: &mut String, stat: &Stat) {
    let (space, wear) = (&stat.space, &stat.wear);
    if stat.cached.is_none() {
        let [free, total] = [space.free_blocks, space.total_blocks].map(grouped);
        let blocks = format!("{free} of {total} blocks erased");
        let data = 100.0 * space.live_pages as f64 / space.logical_pages.max(1) as f64;
        let data = format!("{} hold data ({data:.1} %)", format_bytes(space.live_bytes));
        row(out, "space", &format!("{blocks}, {} bad; {data}", space.bad_blocks));
        if let Some(files) = &stat.space.objects {
            let [live, moved] = [files.live_bytes, files.moved_bytes].map(format_bytes);
            let held = format!("{} in {} extents, {live}", files.objects, files.extents);
            row(out, "files", &format!("{held}; space amplification {}", ratio(files.space_amplification())));
            let zones = format!("{} emptied, {} finished early", files.resets, files.finishes);
            let waited = format_ns(files.waited_ns);
            row(out, "reclaim", &format!("zones: {zones}, {moved} moved; writers waited {waited}"));
        }
        let cost =
            [stat.cost.dram_bytes, stat.cost.host_dram_bytes, stat.cost.usable_bytes].map(format_bytes);
        let [device, host, usable] = cost;
        row(out, "cost", &format!("DRAM of the device {device}, of the host {host}; usable {usable}"));
        let (min, max) = (wear.erases_min, wear.erases_max);
        let spread = format!("mean {:.2}, deviation {:.2}", wear.erases_mean, wear.erases_stddev);
        row(out, "erases of a block", &format!("{min} to {max}, {spread}"));
    }
    if let Some(pace) = stat.service.pace {
        let late = format!("{} of {} late; {}", pace.late, pace.answers, quantiles(&pace.late_ns));
        row(out, "answers", &late);
    }
    for (set, why) in &stat.faults.read_only {
        row(out, "read-only", &format!("set {set}: {why}"));
    }
    for (name, count) in &stat.faults.errors {
        row(out, "failed requests", &format!("{count} {name}"));
    }
    if stat.faults.checksum_errors + stat.faults.torn_pages > 0 {
        row(
            out,
            "bad pages read",
            &format!("{} checksum, {} torn", stat.faults.checksum_errors, stat.faults.torn_pages),
        );
    }
    for (set, found) in stat.faults.recovery.iter().enumerate() {
        let end = if found.was_clean { "clean" } else { "not clean" };
        let (at, scanned, torn) = (&found.checkpoint, found.scanned_pages, found.torn_pages);
        let text = format!("set {set} {end}, checkpoint {at}, {scanned} pages scanned, {torn} torn");
        row(out, "start", &text);
    }
    if let Some(recording) = &stat.recording {
        let state = match (&recording.error, recording.is_running) {
            (Some(error), _) => error.as_str(),
            (None, true) => "running",
            (None, false) => "ended",
        };
        let bytes = format_bytes(recording.file_bytes);
        let commands = grouped(recording.commands);
        let text = format!("{}: {commands} commands, {bytes}, {state}", recording.path);
        row(out, "recording", &text);
    }
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}
