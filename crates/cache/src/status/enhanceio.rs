//! `EnhanceIO`: the files `config`, `stats`, `errors` and the size histogram. Left out is what concerns the
//! original's own machinery and has no counterpart here (`do_clean`, `clean_index`, `uncached_map_*`,
//! `ssd_readfill_unplugs`, allocation errors, flags).

use super::{Facts, Page, Printer, exact_percent, percent};
use crate::mode::Mode;
use nandscape_core::Info;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "enhanceio",
        summary: "a name and a number a line; reads, writes and hits in sectors of 512 bytes",
        source: "EnhanceIO's files config, stats, errors and io_hist",
        params: &[],
    },
    table,
    status,
};

const WIDTH: usize = 26;
const SECTORS: &str = "bytes; the original counts sectors of 512 bytes under this name";
const CUT: &str = "the original cuts to whole percent";

fn table(facts: &Facts<'_>) -> Page {
    let mut page = Page::default();
    for (name, value) in [("src_name", facts.disk_name), ("ssd_name", facts.fast_name)] {
        page.put(name, value, &format!("{name:<10} {value}\n"));
    }
    for (name, value) in [("src_size", facts.volume_bytes / 512), ("ssd_size", facts.gauges.slots)] {
        page.put(name, value, &format!("{name:<10} {value}\n"));
    }
    page.truth(
        facts.capacity_bytes().to_string(),
        "bytes; the original counts blocks here, and sectors in src_size",
    );
    let ways = if facts.ways == 0 { facts.gauges.slots } else { facts.ways.into() };
    let row = |page: &mut Page, name, number: u64| {
        page.put(name, number, &format!("{name:<10} {number:>10}\n"));
    };
    row(&mut page, "set_size", ways);
    row(&mut page, "block_size", facts.block_bytes.into());
    row(&mut page, "mode", mode_number(facts.mode));
    page.truth(
        facts.mode.name(),
        "the original gives a number: 1 write-back, 2 read-only (write-around), 3 write-through",
    );
    row(&mut page, "eviction", eviction_number(facts.eviction));
    page.truth(facts.eviction, "the original gives a number: 1 FIFO, 2 LRU, 3 random");
    row(&mut page, "num_sets", facts.sets());
    row(&mut page, "num_blocks", facts.gauges.slots);
    // Blocks are named by 24 bits within their set, so few sets need the larger record.
    let metadata = if facts.sets() < 32_768 { "large" } else { "small" };
    page.put("metadata", metadata, &format!("metadata        {metadata}\n"));
    page.put("state", facts.health.name(), &format!("state        {}\n", facts.health.name()));
    page
}

/// 0 for a mode that the original does not have.
const fn mode_number(mode: Mode) -> u64 {
    match mode {
        Mode::WriteBack => 1,
        Mode::WriteAround => 2,
        Mode::WriteThrough => 3,
        Mode::WriteOnly | Mode::PassThrough => 0,
    }
}

/// 0 for a policy that the original does not have.
fn eviction_number(name: &str) -> u64 {
    match name {
        "fifo" => 1,
        "lru" => 2,
        "rand" => 3,
        _ => 0,
    }
}

fn status(facts: &Facts<'_>) -> Page {
    let (counters, gauges) = (facts.counters, &facts.gauges);
    let mut page = Page::default();
    page.row(WIDTH, "reads", counters.read_bytes / 512).truth(counters.read_bytes.to_string(), SECTORS);
    page.row(WIDTH, "writes", counters.write_bytes / 512).truth(counters.write_bytes.to_string(), SECTORS);
    let hits = [
        ("read_hits", "read_hit_pct", counters.read_hit_bytes, counters.read_bytes),
        ("write_hits", "write_hit_pct", counters.write_hit_bytes, counters.write_bytes),
        ("dirty_write_hits", "dirty_write_hit_pct", counters.dirty_write_hit_bytes, counters.write_bytes),
    ];
    for (name, share, part, whole) in hits {
        page.row(WIDTH, name, part / 512).truth(part.to_string(), SECTORS);
        page.row(WIDTH, share, percent(part, whole)).truth(exact_percent(part, whole), CUT);
    }
    let rows = [
        ("cached_blocks", gauges.used),
        ("rd_replace", counters.read_replacements),
        ("wr_replace", counters.write_replacements),
        ("noroom", counters.no_room),
        ("cleanings", counters.cleanings),
        ("md_write_dirty", counters.dirtied),
        ("md_write_clean", counters.cleaned),
        ("md_ssd_writes", counters.metadata_writes),
        ("nr_blocks", gauges.slots),
        ("nr_dirty", gauges.dirty),
        ("nr_sets", facts.sets()),
        ("uncached_reads", counters.bypass.total_reads()),
        ("uncached_writes", counters.bypass.total_writes()),
        ("disk_reads", counters.disk_read_bytes / 512),
        ("disk_writes", counters.disk_write_bytes / 512),
        ("ssd_reads", counters.fast_read_bytes / 512),
        ("ssd_writes", counters.fast_write_bytes / 512),
        ("ssd_readfills", counters.fill_bytes / 512),
        ("readdisk", counters.disk_reads),
    ];
    for (name, value) in rows {
        page.row(WIDTH, name, value);
    }
    page.row(WIDTH, "writedisk", counters.disk_reads);
    page.truth(counters.disk_writes.to_string(), "the original prints readdisk again");
    let rows = [
        ("readcache", counters.fast_reads),
        ("readfill", counters.fill_writes),
        ("writecache", counters.fast_writes),
        ("readcount", counters.reads),
        ("writecount", counters.writes),
        ("kb_reads", counters.read_bytes / 1024),
        ("kb_writes", counters.write_bytes / 1024),
        ("rdtime_ms", counters.read_ns / 1_000_000),
        ("wrtime_ms", counters.write_ns / 1_000_000),
    ];
    for (name, value) in rows {
        page.row(WIDTH, name, value);
    }
    let errors = [
        ("disk_read_errors", counters.disk_read_errors),
        ("disk_write_errors", counters.disk_write_errors),
        ("ssd_read_errors", counters.fast_read_errors),
        ("ssd_write_errors", counters.fast_write_errors),
    ];
    for (name, count) in errors {
        page.put(name, count, &format!("{name:<19} {count:>4}\n"));
    }
    for (bytes, count) in counters.request_sizes.steps() {
        page.put(&format!("size {bytes}"), count, &format!("{bytes:<5} {count:>12}\n"));
    }
    page
}
