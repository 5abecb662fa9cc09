//! nandscape's own: every counter under its own name, grouped, with ratios that are what they say.

use super::{Facts, Page, Printer, exact_percent};
use crate::counters::Counters;
use nandscape_core::{Info, units};
use nandscape_policies::admission::Bypass;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "nandscape",
        summary: "ratios, reasons of bypasses, and every counter that is not 0",
        source: "",
        params: &[],
    },
    table,
    status,
};

const WIDTH: usize = 26;

fn size(page: &mut Page, name: &str, bytes: u64) {
    page.put(name, bytes, &format!("{name:<WIDTH$} {:>12}\n", units::format_bytes(bytes)));
}

fn table(facts: &Facts<'_>) -> Page {
    let mut page = Page::default();
    page.row(WIDTH, "cache", facts.fast_name).row(WIDTH, "disk", facts.disk_name);
    page.row(WIDTH, "mode", facts.mode.name());
    size(&mut page, "volume_bytes", facts.volume_bytes);
    size(&mut page, "cache_bytes", facts.capacity_bytes());
    size(&mut page, "block_bytes", facts.block_bytes.into());
    page.row(WIDTH, "slots", facts.gauges.slots);
    if facts.ways == 0 {
        page.row(WIDTH, "ways", "all");
    } else {
        page.row(WIDTH, "ways", facts.ways).row(WIDTH, "sets", facts.sets());
    }
    if facts.cluster_bytes > 0 {
        size(&mut page, "cluster_bytes", facts.cluster_bytes);
    }
    page.row(WIDTH, "eviction", facts.eviction).row(WIDTH, "admission", facts.admission);
    if facts.skip_sequential_bytes > 0 {
        size(&mut page, "skip_sequential_bytes", facts.skip_sequential_bytes);
    }
    page.row(WIDTH, "cleaning", facts.cleaning).row(WIDTH, "metadata", facts.metadata);
    // A cache that is not running holds none.
    if facts.gauges.memory_bytes > 0 {
        size(&mut page, "memory_bytes", facts.gauges.memory_bytes);
    }
    page
}

fn status(facts: &Facts<'_>) -> Page {
    let (counters, gauges) = (facts.counters, &facts.gauges);
    let mut page = Page::default();
    page.row(WIDTH, "state", facts.health.name());
    page.row(WIDTH, "used", gauges.used).row(WIDTH, "used_share", exact_percent(gauges.used, gauges.slots));
    page.row(WIDTH, "dirty", gauges.dirty).row(
        WIDTH,
        "dirty_share",
        exact_percent(gauges.dirty, gauges.slots),
    );
    size(&mut page, "dirty_bytes", gauges.dirty_bytes);
    page.row(WIDTH, "queued", gauges.queued);
    for (name, part, whole) in shares(counters) {
        page.row(WIDTH, name, exact_percent(part, whole));
    }
    let written = counters.fast_write_bytes + counters.metadata_bytes;
    page.row(WIDTH, "fast_written_per_host_write", ratio(written, counters.write_bytes));
    for why in Bypass::ALL {
        let i = why.index();
        let pieces = counters.bypass.read_pieces[i] + counters.bypass.write_pieces[i];
        if pieces > 0 {
            page.row(WIDTH, &format!("bypass_{}", why.name()), pieces);
            size(&mut page, &format!("bypass_{}_bytes", why.name()), counters.bypass.bytes[i]);
        }
    }
    for (name, value) in counters.fields().filter(|(_, value)| *value > 0) {
        page.row(WIDTH, name, value);
    }
    page
}

/// Shares of hits: of requests, of pieces and of bytes.
fn shares(counters: &Counters) -> [(&'static str, u64, u64); 5] {
    [
        ("read_hit_share", counters.read_hits + counters.bypassed_read_hits, counters.reads),
        ("write_hit_share", counters.write_hits + counters.bypassed_write_hits, counters.writes),
        ("read_piece_hit_share", counters.read_piece_hits, counters.read_pieces),
        ("write_piece_hit_share", counters.write_piece_hits, counters.write_pieces),
        ("read_byte_hit_share", counters.read_hit_bytes, counters.read_bytes),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "three decimals are shown")]
fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 { "none".to_owned() } else { format!("{:.3}", part as f64 / whole as f64) }
}
