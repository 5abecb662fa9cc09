//! A cache in a stat document, for people. All its counters are in `nandscape cache status`.

use super::row;
use nandscape_core::units::format_bytes;
use nandscape_policies::admission::Bypass;
use nandscape_volumes::CacheStat;

/// What stands in the place of the rows about flash.
pub fn rows(out: &mut String, cache: &CacheStat) {
    let (gauges, counters) = (&cache.gauges, &cache.counters);
    let of = |path: &std::path::Path| path.display().to_string();
    row(
        out,
        "cache",
        &format!("{}, {}, {}, {}", of(&cache.fast), cache.preset, cache.mode.name(), cache.health),
    );
    if let Some(trouble) = &cache.trouble {
        row(out, "", trouble);
    }
    let used = gauges.used * u64::from(cache.block_bytes);
    let blocks = format!("{} of {} blocks ({})", gauges.used, gauges.slots, format_bytes(used));
    let dirty = format!("{} of them dirty ({})", gauges.dirty, format_bytes(gauges.dirty_bytes));
    row(out, "cached", &format!("{blocks}, {dirty}"));
    for volume in &cache.volumes {
        let place = format!("{}, {}", of(&volume.disk), format_bytes(volume.bytes));
        row(
            out,
            &format!("  {}", volume.name),
            &format!("{place}, {} blocks, {} dirty", volume.blocks, volume.dirty_blocks),
        );
    }
    let share =
        |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0));
    row(
        out,
        "hits",
        &format!(
            "{} of the reads, {} of the writes",
            share(cache.read_hit_ratio),
            share(cache.write_hit_ratio)
        ),
    );
    let past = Bypass::ALL.iter().filter_map(|why| {
        let bytes = counters.bypass.bytes[why.index()];
        (bytes > 0).then(|| format!("{} {}", format_bytes(bytes), why.name()))
    });
    let past: Vec<String> = past.collect();
    if !past.is_empty() {
        row(out, "past the cache", &past.join(", "));
    }
    for (name, reads, writes) in [
        (
            "to the disks",
            (counters.disk_reads, counters.disk_read_bytes),
            (counters.disk_writes, counters.disk_write_bytes),
        ),
        (
            "to the cache device",
            (counters.fast_reads, counters.fast_read_bytes),
            (counters.fast_writes, counters.fast_write_bytes),
        ),
    ] {
        let [read, written] = [reads.1, writes.1].map(format_bytes);
        row(out, name, &format!("{} reads ({read}), {} writes ({written})", reads.0, writes.0));
    }
}
