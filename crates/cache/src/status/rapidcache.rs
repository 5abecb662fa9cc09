//! `RapidCache`, of `RapidDisk` 2.9.

use super::{Facts, Page, Printer, flashcache};
use nandscape_core::Info;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "rapidcache",
        summary: "groups of fields, as dmsetup prints them",
        source: "RapidCache 2.9; [cache-article rapiddisk]",
        params: &[],
    },
    table,
    status,
};

fn table(facts: &Facts<'_>) -> Page {
    let gauges = &facts.gauges;
    let mut page = Page::starting(facts.mapped("rxcache") + "conf:\n\t");
    page.paren_apart("rxd dev", facts.fast_name).raw(", ").paren_apart("disk dev", facts.disk_name);
    let mode = facts.mode.name().replace('-', "").to_uppercase();
    page.raw(" ").paren_apart("mode", mode);
    page.raw("\n\t").paren_unit("capacity", facts.capacity_bytes() >> 20, "M");
    page.raw(", ").paren("associativity", if facts.ways == 0 { gauges.slots } else { facts.ways.into() });
    page.raw(", ").paren_unit("block size", u64::from(facts.block_bytes) >> 10, "K");
    page.raw("\n\t").paren("total blocks", gauges.slots).raw(", ").paren("cached blocks", gauges.used);
    page.raw("\n Size Hist: ");
    flashcache::sizes(&mut page, facts);
    page
}

fn status(facts: &Facts<'_>) -> Page {
    let counters = facts.counters;
    let mut page = Page::starting(facts.mapped("rxcache") + "stats: \n\t");
    page.paren("reads", counters.read_pieces).raw(", ").paren("writes", counters.write_pieces);
    page.raw("\n\t").paren("cache hits", counters.read_piece_hits);
    if counters.write_piece_hits > 0 {
        page.truth(
            counters.piece_hits().to_string(),
            "the original counts no write as a hit, even of a cached block",
        );
    }
    page.raw(" ").paren("replacement", counters.read_replacements);
    page.raw(", ").paren("write replacement", counters.write_replacements);
    page.raw("\n\t").paren("read invalidates", counters.read_invalidates);
    page.raw(", ").paren("write invalidates", counters.write_invalidates);
    page.raw("\n\t").paren("uncached reads", counters.bypass.total_reads());
    page.raw(", ").paren("uncached writes", counters.bypass.total_writes());
    page.raw("\n\t")
        .paren("disk reads", counters.disk_reads)
        .raw(", ")
        .paren("disk writes", counters.disk_writes);
    page.raw("\n\t")
        .paren("cache reads", counters.fast_reads)
        .raw(", ")
        .paren("cache writes", counters.fast_writes);
    page
}
