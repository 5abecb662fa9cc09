//! Statistics of a workload for a terminal (`trace stats`).

use crate::contract::{self, distribution, percent};
use crate::number::{grouped, printable};
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_trace::TraceStats;
use nandscape_trace::stats::{Alignment, Amount};
use std::fmt::Write as _;

/// What a workload looks like, as text of about 100 columns.
pub fn render_workload_text(name: &str, stats: &TraceStats) -> String {
    let mut out = String::new();
    let info = &stats.info;
    let _ = writeln!(
        out,
        "workload {} ({}, {} requests)\n",
        printable(name),
        printable(&info.format),
        grouped(stats.requests)
    );
    mix(&mut out, stats);
    space(&mut out, stats);
    sizes(&mut out, stats);
    alignment(&mut out, &stats.alignment);
    time(&mut out, stats);
    if info.skipped > 0 {
        let _ = writeln!(out, "  skipped                {} records that are not I/O", grouped(info.skipped));
    }
    if info.time_reversals > 0 {
        let _ = writeln!(
            out,
            "  time went back         {} times; clamped or sorted by the reader",
            grouped(info.time_reversals)
        );
    }
    contract::render(&mut out, stats);
    out
}

fn mix(out: &mut String, stats: &TraceStats) {
    let mix = &stats.mix;
    let bytes: u64 = mix.reads.bytes + mix.writes.bytes + mix.appends.bytes;
    let rows: [(&str, Amount, bool); 8] = [
        ("reads", mix.reads, true),
        ("writes", mix.writes, true),
        ("zone appends", mix.appends, true),
        ("zone operations", mix.zone_ops, false),
        ("object operations", mix.object_ops, false),
        ("discards", mix.trims, false),
        ("write zeroes", mix.write_zeroes, false),
        ("flushes", mix.flushes, false),
    ];
    for (name, amount, is_data) in rows.into_iter().filter(|(_, amount, _)| amount.requests > 0) {
        let share = if is_data {
            format!(", {} of the bytes read and written", percent(amount.bytes, bytes))
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "  {name:22} {} requests ({}), {}{share}",
            grouped(amount.requests),
            percent(amount.requests, stats.requests),
            format_bytes(amount.bytes)
        );
    }
}

fn space(out: &mut String, stats: &TraceStats) {
    let _ = writeln!(
        out,
        "  addresses              {} to {} B",
        grouped(stats.min_offset),
        grouped(stats.max_end)
    );
    let _ = writeln!(
        out,
        "  touched                {} (written {}), in 4 KiB pages",
        format_bytes(stats.touched_bytes),
        format_bytes(stats.written_bytes)
    );
    let _ = writeln!(
        out,
        "  overwrites             {} of the 4 KiB pages written had been written before",
        percent(stats.page_overwrites, stats.page_writes)
    );
    if let Some(largest) = stats.windows.iter().max_by_key(|w| w.pages) {
        let _ = writeln!(
            out,
            "  working set            at most {} in {} requests in a row",
            format_bytes(largest.pages * 4096),
            grouped(largest.requests)
        );
    }
}

fn sizes(out: &mut String, stats: &TraceStats) {
    distribution(out, "read sizes", &stats.read_sizes, format_bytes);
    distribution(out, "write sizes", &stats.write_sizes, format_bytes);
    let total = stats.sizes.count;
    let common: Vec<String> = stats
        .common_sizes
        .iter()
        .take(5)
        .map(|s| format!("{} ({})", format_bytes(s.bytes), percent(s.requests, total)))
        .collect();
    if !common.is_empty() {
        let _ = writeln!(out, "  most common sizes      {}", common.join(", "));
    }
}

fn alignment(out: &mut String, alignment: &[Alignment]) {
    for (a, name) in alignment.iter().zip(["page", "block"]) {
        let total: u64 = a.start_bins.iter().sum();
        let half = a.start_bins.get(a.start_bins.len() / 2).copied().unwrap_or(0);
        let _ = writeln!(
            out,
            "  {:22} starts aligned {} (half a {name} off {}), ends {}, lengths {}, longer than one {}",
            format!("{name} of {}", format_bytes(a.unit_bytes)),
            percent(a.starts_aligned, total),
            percent(half, total),
            percent(a.ends_aligned, total),
            percent(a.lengths_aligned, total),
            percent(a.longer_than_unit, total)
        );
    }
}

fn time(out: &mut String, stats: &TraceStats) {
    let s = &stats.sequentiality;
    let data = stats.sizes.count;
    let _ = writeln!(
        out,
        "  sequential             {} of reads and writes start where the last one ended, {} where one of the last 32 did; \
         longest run {}",
        percent(s.continues_last, data),
        percent(s.continues_recent, data),
        format_bytes(s.longest_run_bytes)
    );
    let real = if stats.info.has_real_times { "" } else { " (not real times)" };
    let _ = writeln!(
        out,
        "  time                   {} from first to last arrival{real}",
        format_ns(stats.last_ns.saturating_sub(stats.first_ns))
    );
    if stats.inter_arrival_ns.max > 0 {
        distribution(out, "between arrivals", &stats.inter_arrival_ns, format_ns);
    }
}
