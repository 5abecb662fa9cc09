//! A cache in a stat document, for people. All its counters are in `nandscape cache status`.

use super::{row, share};
use nandscape_core::units::format_bytes;
use nandscape_policies::admission::Bypass;
use nandscape_report::grouped;
use nandscape_volumes::CacheStat;

/// What stands in the place of the rows about flash.
pub fn rows(out: &mut String, cache: &CacheStat) {
    let (gauges, counters) = (&cache.gauges, &cache.counters);
    let of = |path: &std::path::Path| path.display().to_string();
    let (fast, mode) = (of(&cache.fast), cache.mode.name());
    row(out, "cache", &format!("{fast}, {}, {mode}, {}", cache.preset, cache.health));
    if let Some(trouble) = &cache.trouble {
        row(out, "", trouble);
    }
    let used = gauges.used * u64::from(cache.block_bytes);
    let [in_use, slots, dirty] = [gauges.used, gauges.slots, gauges.dirty].map(grouped);
    let blocks = format!("{in_use} of {slots} blocks ({})", format_bytes(used));
    let dirty = format!("{dirty} of them dirty ({})", format_bytes(gauges.dirty_bytes));
    row(out, "cached", &format!("{blocks}, {dirty}"));
    for volume in &cache.volumes {
        let place = format!("{}, {}", of(&volume.disk), format_bytes(volume.bytes));
        let [blocks, dirty] = [volume.blocks, volume.dirty_blocks].map(grouped);
        let blocks = format!("{blocks} blocks, {dirty} dirty");
        row(out, &format!("  {}", volume.name), &format!("{place}, {blocks}"));
    }
    let [reads, writes] = [cache.read_hit_ratio, cache.write_hit_ratio].map(share);
    row(out, "hits", &format!("{reads} of the reads, {writes} of the writes"));
    let past = Bypass::ALL.iter().filter_map(|why| {
        let bytes = counters.bypass.bytes[why.index()];
        (bytes > 0).then(|| format!("{} {}", format_bytes(bytes), why.name()))
    });
    let past: Vec<String> = past.collect();
    if !past.is_empty() {
        row(out, "past the cache", &past.join(", "));
    }
    let disks =
        [counters.disk_reads, counters.disk_read_bytes, counters.disk_writes, counters.disk_write_bytes];
    let fast =
        [counters.fast_reads, counters.fast_read_bytes, counters.fast_writes, counters.fast_write_bytes];
    for (name, [reads, read, writes, written]) in [("to the disks", disks), ("to the cache device", fast)] {
        let [reads, writes] = [reads, writes].map(grouped);
        let [read, written] = [read, written].map(format_bytes);
        row(out, name, &format!("{reads} reads ({read}), {writes} writes ({written})"));
    }
}
