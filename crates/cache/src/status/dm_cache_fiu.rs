//! dm-cache of FIU (2006).

use super::{Facts, Page, Printer, TableLine, exact_percent, percent};
use nandscape_core::Info;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "dm-cache-fiu",
        summary: "a line each, as dmsetup prints it, and the table line that makes the cache",
        source: "dm-cache of FIU; [cache-article dm-cache]",
        params: &[],
    },
    table,
    status,
};

fn table(facts: &Facts<'_>) -> Page {
    let mut page = Page::starting(facts.mapped("cache") + "conf: ");
    page.paren_unit("capacity", facts.capacity_bytes() >> 20, "M");
    page.raw(", ")
        .paren("associativity", if facts.ways == 0 { facts.gauges.slots } else { facts.ways.into() });
    page.raw(", ").paren_unit("block size", u64::from(facts.block_bytes) >> 10, "K");
    let policy = if facts.mode.makes_dirty() { "write-back" } else { "write-through" };
    page.raw(", ").put("policy", policy, policy);
    if let Some(line) = TableLine::of(facts) {
        page.beside("table", line.to_string());
    }
    page
}

fn status(facts: &Facts<'_>) -> Page {
    let counters = facts.counters;
    let (hits, pieces) = (counters.piece_hits(), counters.read_pieces + counters.write_pieces);
    let mut page = Page::starting(facts.mapped("cache") + "stats: ");
    page.paren("reads", counters.read_pieces).raw(", ").paren("writes", counters.write_pieces);
    page.raw(", ").put("cache hits", hits, &format!("cache hits({hits}, "));
    let shown = format!("0.{}", percent(hits, pieces));
    page.put("cache hit ratio", shown.as_str(), &format!("{shown})"));
    page.truth(exact_percent(hits, pieces), "what stands after '0.' are whole percent, cut");
    page.raw(",").paren("replacement", counters.replacements());
    page.raw(", ").paren("replaced dirty blocks", counters.dirty_replacements);
    page
}
