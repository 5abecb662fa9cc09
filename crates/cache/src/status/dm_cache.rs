//! dm-cache of Linux since 3.9.

use super::{Facts, Health, Page, Printer};
use crate::mode::Mode;
use nandscape_core::Info;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "dm-cache",
        summary: "one line of values without names, as dmsetup prints it",
        source: "Linux, device-mapper/cache",
        params: &[],
    },
    table,
    status,
};

/// The original's metadata block, in bytes.
const METADATA_BLOCK: u64 = 4096;

const fn feature(mode: Mode) -> &'static str {
    match mode {
        Mode::WriteBack | Mode::WriteOnly => "writeback",
        Mode::WriteThrough | Mode::WriteAround => "writethrough",
        Mode::PassThrough => "passthrough",
    }
}

fn features(page: &mut Page, facts: &Facts<'_>) {
    page.word("#features", 1_u32).word("feature", feature(facts.mode));
    if matches!(facts.mode, Mode::WriteOnly | Mode::WriteAround) {
        page.truth(facts.mode.name(), "the original has no such mode; this is its next of kin");
    }
}

fn table(facts: &Facts<'_>) -> Page {
    let mut page = Page::starting(facts.mapped("cache").trim_end());
    page.word("metadata dev", facts.fast_name)
        .word("cache dev", facts.fast_name)
        .word("origin dev", facts.disk_name);
    page.word("block size", facts.block_bytes / 512);
    features(&mut page, facts);
    page.word("policy", facts.eviction).word("#policy args", 0_u32);
    page
}

fn status(facts: &Facts<'_>) -> Page {
    let (counters, gauges) = (facts.counters, &facts.gauges);
    let mut page = Page::starting(facts.mapped("cache").trim_end());
    if facts.health == Health::Failed {
        page.word("metadata mode", "Fail");
        return page;
    }
    page.word("metadata block size", METADATA_BLOCK / 512);
    let (used, total) =
        (gauges.metadata_used_bytes.div_ceil(METADATA_BLOCK), gauges.metadata_total_bytes / METADATA_BLOCK);
    page.word("metadata blocks", format!("{used}/{total}"));
    page.word("cache block size", facts.block_bytes / 512);
    page.word("cache blocks", format!("{}/{}", gauges.used, gauges.slots));
    page.word("read hits", counters.read_piece_hits);
    page.word("read misses", counters.read_pieces - counters.read_piece_hits.min(counters.read_pieces));
    page.word("write hits", counters.write_piece_hits);
    page.word("write misses", counters.write_pieces - counters.write_piece_hits.min(counters.write_pieces));
    page.word("demotions", counters.replacements());
    page.word("promotions", counters.read_insertions + counters.write_insertions);
    page.word("dirty", gauges.dirty);
    features(&mut page, facts);
    // Blocks that may move at a time are the engine's business here.
    page.word("#core args", 0_u32);
    page.word("policy", facts.eviction).word("#policy args", 0_u32);
    page.word("metadata mode", if facts.health == Health::Degraded { "ro" } else { "rw" });
    page.word("needs_check", if facts.health == Health::Degraded { "needs_check" } else { "-" });
    page
}
