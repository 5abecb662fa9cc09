//! The cache of a run: what it is, what was found in it, what went to either side; and its lines in the text.

use crate::Run;
use crate::number::{grouped, ratio};
use crate::table::{Head, Table};
use nandscape_core::units::format_bytes;
use nandscape_sim::result::CacheResult;

/// One line: design, shape and both sides.
pub(crate) fn describe(cache: &CacheResult) -> String {
    let report = &cache.report;
    if cache.is_disk_alone() {
        return format!("none, {} alone", cache.disk);
    }
    format!(
        "{}: {}, {} slots of {} on {}, in front of {}",
        cache.preset,
        report.mode,
        grouped(report.slots),
        format_bytes(report.block_bytes),
        cache.device,
        cache.disk
    )
}

/// What people ask of a cache: name and value, in the order of a page.
pub(crate) fn facts(cache: &CacheResult) -> Vec<(&'static str, String)> {
    let report = &cache.report;
    let counts = &report.counters;
    let asked = |each: [u64; 3]| {
        let [hits, part, misses] = each.map(grouped);
        format!("{hits} hits, {part} in part, {misses} misses")
    };
    let traffic = |counts: &nandscape_core::command::HostCounts| {
        format!(
            "read {} in {}, written {} in {}, {} flush{}",
            format_bytes(counts.read_bytes),
            grouped(counts.reads),
            format_bytes(counts.write_bytes),
            grouped(counts.writes),
            grouped(counts.flushes),
            if counts.flushes == 1 { "" } else { "es" }
        )
    };
    let hits = [(cache.read_hit_ratio, "reads"), (cache.write_hit_ratio, "writes")];
    let hits = hits.into_iter().filter_map(|(hits, of)| hits.map(|hits| format!("{hits:.3} of {of}")));
    let mut out = vec![
        ("hit ratio", hits.collect::<Vec<_>>().join(", ")),
        ("read requests", asked([counts.read_hits, counts.read_partial_hits, counts.read_misses])),
        ("write requests", asked([counts.write_hits, counts.write_partial_hits, counts.write_misses])),
        (
            "slots",
            format!(
                "{} of {} used, {} dirty ({})",
                grouped(report.used),
                grouped(report.slots),
                grouped(report.dirty),
                format_bytes(report.dirty_bytes)
            ),
        ),
        (
            "replaced",
            format!(
                "{} for reads, {} for writes, {} of them dirty",
                grouped(counts.read_replacements),
                grouped(counts.write_replacements),
                grouped(counts.dirty_replacements)
            ),
        ),
        (
            "cleaned",
            format!("{} blocks in {} writes", grouped(counts.cleaned), grouped(counts.cleaning_writes)),
        ),
        (
            "metadata",
            format!("{} commits, {}", grouped(counts.metadata_commits), format_bytes(counts.metadata_bytes)),
        ),
        ("disk", traffic(&report.disk())),
        ("cache device", traffic(&report.fast)),
    ];
    let asks_for = |name: &str| match name {
        "hit ratio" => counts.reads + counts.writes > 0,
        "read requests" => counts.reads > 0,
        "write requests" => counts.writes > 0,
        _ => true,
    };
    out.retain(|(name, _)| asks_for(name));
    let past = report.bypass.iter().map(|(why, bypass)| {
        let pieces = grouped(bypass.read_pieces + bypass.write_pieces);
        format!("{pieces} for {why} ({})", format_bytes(bypass.bytes))
    });
    let past: Vec<String> = past.collect();
    if !past.is_empty() {
        out.push(("past the cache", past.join(", ")));
    }
    if cache.device_write_ratio.is_some() {
        let [device, disk] = [cache.device_write_ratio, cache.disk_write_ratio].map(ratio);
        let line =
            format!("{device} bytes to the cache device and {disk} to the disk for each byte of the host");
        out.push(("written", line));
    }
    if let Some(waf) = cache.device_waf {
        out.push(("flash", format!("{waf:.3} bytes programmed for each byte that the cache wrote")));
    }
    out.push(("memory", format_bytes(report.memory_bytes)));
    out
}

/// The cache of a run; empty if it has none.
pub(crate) fn cache_text(run: &Run, width: Option<usize>) -> String {
    let Some(cache) = run.result.cache.as_ref().filter(|cache| !cache.is_disk_alone()) else {
        return String::new();
    };
    let facts = facts(cache);
    let mut table = Table::new();
    table.column(Head::text("  cache"), facts.iter().map(|(name, _)| format!("  {name}")));
    table.column(Head::text(""), facts.into_iter().map(|(_, value)| value));
    format!("\n{}", table.render(width))
}
