//! A stat document for people.

use super::{cached, row};
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_engine::{Latencies, Stat};
use nandscape_sim::result::LatencySummary;
use nandscape_volumes::CacheStat;
use std::fmt::Write;

/// The whole of it.
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
    let host = &stat.host;
    row(
        out,
        "requests",
        &format!(
            "{} reads ({}), {} writes ({}), {} trims, {} flushes",
            host.reads,
            format_bytes(host.read_bytes),
            host.writes,
            format_bytes(host.write_bytes),
            host.trims,
            host.flushes
        ),
    );
    // Files take no time of the model.
    if stat.cached.is_some() {
        return;
    }
    let model_s = stat.speed.time.simulated_ns as f64 / 1e9;
    row(
        out,
        "in the model's time",
        &format!(
            "{model_s:.3} s, {}/s read, {}/s written",
            format_bytes(stat.speed.throughput.read_bytes_per_s as u64),
            format_bytes(stat.speed.throughput.write_bytes_per_s as u64)
        ),
    );
    row(
        out,
        "write amplification",
        &format!(
            "{} since the start ({} by bytes), {} in the last {:.0} s",
            ratio(stat.waf.pages),
            ratio(stat.waf.bytes),
            ratio(stat.interval.waf),
            stat.interval.seconds
        ),
    );
}

fn recent(out: &mut String, stat: &Stat) {
    let interval = &stat.interval;
    let mut text = format!(
        "{:.0} requests/s, {}/s read, {}/s written",
        interval.requests_per_s,
        format_bytes(interval.read_bytes_per_s as u64),
        format_bytes(interval.write_bytes_per_s as u64)
    );
    if stat.cached.is_none() {
        let flash = &interval.flash;
        write!(text, ", {} programs, {} erases", flash.programs, flash.erases)
            .expect("a string takes everything");
    }
    row(out, &format!("last {:.0} s", interval.seconds), &text);
}

fn causes(out: &mut String, stat: &Stat) {
    let flash = &stat.flash;
    row(
        out,
        "flash",
        &format!("{} programs, {} reads, {} erases", flash.programs, flash.reads, flash.erases),
    );
    for (cause, counts) in &flash.by_cause {
        if (counts.programs, counts.reads, counts.erases) != (0, 0, 0) {
            let counts =
                format!("{} programs, {} reads, {} erases", counts.programs, counts.reads, counts.erases);
            row(out, &format!("  {cause}"), &counts);
        }
    }
    row(
        out,
        "garbage collection",
        &format!("{} runs, {} pages moved", stat.layer.gc.runs, stat.layer.gc.moved_pages),
    );
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
    format!(
        "p50 {}, p99 {}, p99.9 {}, max {}, mean {}",
        format_ns(latency.p50),
        format_ns(latency.p99),
        format_ns(latency.p99_9),
        format_ns(latency.max),
        format_ns(latency.mean as u64)
    )
}

/// What may be wrong, or become so.
fn state(out: &mut String, stat: &Stat) {
    let (space, wear) = (&stat.space, &stat.wear);
    if stat.cached.is_none() {
        row(
            out,
            "space",
            &format!(
                "{} of {} blocks erased, {} bad; {} hold data ({:.1} %)",
                space.free_blocks,
                space.total_blocks,
                space.bad_blocks,
                format_bytes(space.live_bytes),
                100.0 * space.live_pages as f64 / space.logical_pages.max(1) as f64
            ),
        );
        row(
            out,
            "erases of a block",
            &format!(
                "{} to {}, mean {:.2}, deviation {:.2}",
                wear.erases_min, wear.erases_max, wear.erases_mean, wear.erases_stddev
            ),
        );
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
        row(
            out,
            "start",
            &format!(
                "set {set} {end}, checkpoint {}, {} pages scanned, {} torn",
                found.checkpoint, found.scanned_pages, found.torn_pages
            ),
        );
    }
    if let Some(recording) = &stat.recording {
        let state = match (&recording.error, recording.is_running) {
            (Some(error), _) => error.as_str(),
            (None, true) => "running",
            (None, false) => "ended",
        };
        row(
            out,
            "recording",
            &format!(
                "{}: {} commands, {}, {state}",
                recording.path,
                recording.commands,
                format_bytes(recording.file_bytes)
            ),
        );
    }
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}
