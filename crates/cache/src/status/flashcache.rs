//! `FlashCache`.

use super::{Facts, Page, Printer, exact_percent, percent};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::admission::Bypass;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "flashcache",
        summary: "groups of fields, as dmsetup prints them",
        source: "FlashCache; [cache-article flashcache]",
        params: &[],
    },
    table,
    status,
};

/// What the original calls LRU, of which alone it prints the lists.
const TWO_LISTS: &str = "two-list";
const CUT: &str = "the original cuts to whole percent";

const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::WriteBack => "WRITE_BACK",
        Mode::WriteThrough => "WRITE_THROUGH",
        Mode::WriteAround => "WRITE_AROUND",
        // The original makes this an option of write-back.
        Mode::WriteOnly => "WRITE_ONLY",
        Mode::PassThrough => "PASS_THROUGH",
    }
}

/// What creating a cache prints: the parameters in sectors of 512 bytes, and the memory that its blocks take
/// at 16 bytes each. `cache_sectors` is the size asked for, 0 for all of the device; `main_memory_bytes` is
/// the machine's.
pub fn created(name: &str, facts: &Facts<'_>, cache_sectors: u64, main_memory_bytes: u64) -> Page {
    let mut page = Page::default();
    page.put("cachedev", name, &format!("cachedev {name}"));
    page.put("ssd_devname", facts.fast_name, &format!(", ssd_devname {}", facts.fast_name));
    page.put("disk_devname", facts.disk_name, &format!(", disk_devname {}", facts.disk_name));
    let mode = mode_name(facts.mode);
    page.put("cache mode", mode, &format!(" cache mode {mode}"));
    let (block, metadata) = (facts.block_bytes / 512, facts.metadata_block_bytes / 512);
    page.put("block_size", block, &format!(" block_size {block}"));
    page.put("md_block_size", metadata, &format!(", md_block_size {metadata}"));
    page.put("cache_size", cache_sectors, &format!(", cache_size {cache_sectors}\n"));
    let bytes = facts.gauges.slots * 16;
    let (shown, all) = ((bytes + (1 << 19)) >> 20, main_memory_bytes >> 20);
    page.put(
        "metadata memory",
        shown,
        &format!("FlashCache metadata will use {shown}MB of your {all}MB main memory"),
    );
    let tenths = (bytes * 10 + (1 << 19)) >> 20;
    page.truth(
        format!("{}.{} MiB", tenths / 10, tenths % 10),
        "16 bytes a block, which is what a block takes on the cache device; this cache's own memory is in its status",
    );
    page
}

fn table(facts: &Facts<'_>) -> Page {
    let gauges = &facts.gauges;
    let mut page = Page::starting(facts.mapped("flashcache") + "conf:\n\t");
    page.paren_apart("ssd dev", facts.fast_name).raw(", ").paren_apart("disk dev", facts.disk_name);
    page.raw(" ").paren("cache mode", mode_name(facts.mode));
    page.raw("\n\t").paren_unit("capacity", facts.capacity_bytes() >> 20, "M");
    page.raw(", ").paren("associativity", if facts.ways == 0 { gauges.slots } else { facts.ways.into() });
    page.raw(", ").paren_unit("data block size", u64::from(facts.block_bytes) >> 10, "K");
    page.raw(" ").paren_unit("metadata block size", facts.metadata_block_bytes.into(), "b");
    if facts.cluster_bytes > 0 {
        page.raw("\n\t").paren_unit("disk assoc", facts.cluster_bytes >> 10, "K");
    }
    page.raw("\n\t").paren_unit("skip sequential thresh", facts.skip_sequential_bytes >> 10, "K");
    page.raw("\n\t").paren("total blocks", gauges.slots).raw(", ").paren("cached blocks", gauges.used);
    page.raw(", ").paren("cache percent", percent(gauges.used, gauges.slots));
    page.truth(exact_percent(gauges.used, gauges.slots), CUT);
    page.raw("\n\t").paren("dirty blocks", gauges.dirty);
    page.raw(", ").paren("dirty percent", percent(gauges.dirty, gauges.slots));
    page.truth(exact_percent(gauges.dirty, gauges.slots), CUT);
    page.raw("\n\t").paren("nr_queued", gauges.queued);
    page.raw("\nSize Hist: ");
    sizes(&mut page, facts);
    page
}

/// Sizes of pieces, which is what a device-mapper target sees.
pub(super) fn sizes(page: &mut Page, facts: &Facts<'_>) {
    for (bytes, count) in facts.counters.piece_sizes.steps() {
        page.put(&format!("size {bytes}"), count, &format!("{bytes}:{count} "));
    }
}

fn status(facts: &Facts<'_>) -> Page {
    let counters = facts.counters;
    let (reads, writes) = (counters.read_pieces, counters.write_pieces);
    let mut page = Page::starting(facts.mapped("flashcache") + "stats: \n\t");
    page.paren("reads", reads).raw(", ").paren("writes", writes);
    let hits = [
        ("read hits", counters.read_piece_hits, ", ", "read hit percent", reads),
        ("write hits", counters.write_piece_hits, " ", "write hit percent", writes),
        ("dirty write hits", counters.dirty_write_piece_hits, " ", "dirty write hit percent", writes),
    ];
    for (name, hits, between, share, all) in hits {
        page.raw("\n\t").paren(name, hits).raw(between).paren(share, percent(hits, all));
        page.truth(exact_percent(hits, all), CUT);
    }
    page.raw("\n\t").paren("replacement", counters.read_replacements);
    page.raw(", ").paren("write replacement", counters.write_replacements);
    page.raw("\n\t").paren("write invalidates", counters.write_invalidates);
    page.raw(", ").paren("read invalidates", counters.read_invalidates);
    page.raw("\n\t").paren("pending enqueues", counters.waits);
    page.raw(", ").paren("pending inval", 0_u64).not_modelled();
    page.raw("\n\t").paren("metadata dirties", counters.dirtied);
    page.raw(", ").paren("metadata cleans", counters.cleaned);
    page.raw("\n\t").paren("metadata batch", counters.metadata_batched);
    page.raw(" ").paren("metadata ssd writes", counters.metadata_writes);
    page.raw("\n\t").paren("cleanings", counters.cleanings);
    page.raw(" ").paren("fallow cleanings", counters.idle_cleanings);
    page.raw("\n\t").paren("no room", counters.no_room);
    page.raw(" ")
        .paren("front merge", counters.front_merges)
        .raw(" ")
        .paren("back merge", counters.back_merges);
    page.raw("\n\t")
        .paren("disk reads", counters.disk_reads)
        .raw(", ")
        .paren("disk writes", counters.disk_writes);
    page.raw(" ").paren("ssd reads", counters.fast_reads).raw(" ").paren("ssd writes", counters.fast_writes);
    page.raw("\n\t").paren("uncached reads", counters.bypass.total_reads());
    page.raw(", ").paren("uncached writes", counters.bypass.total_writes());
    page.raw(", ").paren("uncached IO requeue", counters.requeued_past_cache);
    page.raw("\n\t").paren("disk read errors", counters.disk_read_errors);
    page.raw(", ").paren("disk write errors", counters.disk_write_errors);
    page.raw(" ").paren("ssd read errors", counters.fast_read_errors);
    page.raw(" ").paren("ssd write errors", counters.fast_write_errors);
    let sequential = Bypass::Sequential.index();
    page.raw("\n\t").paren("uncached sequential reads", counters.bypass.read_pieces[sequential]);
    page.raw(", ").paren("uncached sequential writes", counters.bypass.write_pieces[sequential]);
    for (before, name) in [("\n\t", "pid_adds"), (", ", "pid_dels"), (", ", "pid_drops"), (" ", "pid_expiry")]
    {
        page.raw(before).paren(name, 0_u64).not_modelled();
    }
    if facts.eviction == TWO_LISTS {
        let (hot, used) = (facts.gauges.favoured, facts.gauges.used);
        page.raw("\n\t").paren("lru hot blocks", hot);
        page.raw(", ").paren("lru warm blocks", used.saturating_sub(hot));
        page.raw("\n\t").paren("lru promotions", counters.promotions);
        page.raw(", ").paren("lru demotions", counters.demotions);
    }
    page
}
