//! bcache: the files below `bcache/` and `bcache/stats_total/` of a backing device, one a line.

use super::{Facts, Page, Printer, exact_percent, percent};
use crate::mode::Mode;
use nandscape_core::Info;

pub(super) const PRINTER: Printer = Printer {
    info: Info {
        name: "bcache",
        summary: "names and values of the files that bcache has in sysfs",
        source: "bcache in Linux: stats_total and the settings beside it",
        params: &[],
    },
    table,
    status,
};

const WIDTH: usize = 26;
const ROUNDED: &str = "bytes; the original cuts to one decimal";

/// A size as bcache prints it: binary units, one decimal, cut.
fn short(bytes: u64) -> String {
    let units = b"\0kMGTPE";
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    if unit == 0 {
        return bytes.to_string();
    }
    let shift = 10 * unit;
    let tenth = (((bytes >> (shift - 10)) & 1023) * 10) >> 10;
    format!("{}.{tenth}{}", bytes >> shift, char::from(units[unit]))
}

fn size(page: &mut Page, name: &str, bytes: u64) {
    let shown = short(bytes);
    page.row(WIDTH, name, shown.as_str());
    if bytes >= 1024 {
        page.truth(bytes.to_string(), ROUNDED);
    }
}

/// The choices, with the one that holds in brackets.
fn choice(names: &[&str], held: &str) -> String {
    let marked =
        names.iter().map(|name| if *name == held { format!("[{name}]") } else { (*name).to_owned() });
    marked.collect::<Vec<_>>().join(" ")
}

/// What the original calls a policy.
fn replacement(eviction: &str) -> &str {
    if eviction == "rand" { "random" } else { eviction }
}

fn table(facts: &Facts<'_>) -> Page {
    let mode = match facts.mode {
        Mode::WriteBack => "writeback",
        Mode::WriteThrough => "writethrough",
        Mode::WriteAround => "writearound",
        Mode::PassThrough => "none",
        Mode::WriteOnly => "writeonly",
    };
    let mut page = Page::default();
    page.row(WIDTH, "cache_mode", choice(&["writethrough", "writeback", "writearound", "none"], mode));
    if facts.mode == Mode::WriteOnly {
        page.truth(mode, "the original has no such mode");
    }
    size(&mut page, "sequential_cutoff", facts.skip_sequential_bytes);
    size(&mut page, "block_size", facts.block_bytes.into());
    page.row(
        WIDTH,
        "cache_replacement_policy",
        choice(&["lru", "fifo", "random"], replacement(facts.eviction)),
    );
    let state = if facts.gauges.dirty > 0 { "dirty" } else { "clean" };
    page.row(WIDTH, "state", state);
    page
}

fn status(facts: &Facts<'_>) -> Page {
    let counters = facts.counters;
    let hits = counters.read_hits + counters.write_hits;
    let partial = counters.read_partial_hits + counters.write_partial_hits;
    let misses = counters.read_misses + counters.write_misses + partial;
    let mut page = Page::default();
    size(&mut page, "bypassed", counters.bypass.total_bytes());
    page.row(WIDTH, "cache_hits", hits);
    page.row(WIDTH, "cache_misses", misses);
    if partial > 0 {
        page.truth((misses - partial).to_string(), "the original counts a partial hit as a miss");
    }
    page.row(WIDTH, "cache_hit_ratio", percent(hits, hits + misses));
    page.truth(
        exact_percent(hits, hits + misses),
        "the original cuts to whole percent, of requests that were not bypassed",
    );
    page.row(WIDTH, "cache_bypass_hits", counters.bypassed_read_hits + counters.bypassed_write_hits);
    page.row(WIDTH, "cache_bypass_misses", counters.bypassed_read_misses + counters.bypassed_write_misses);
    for name in ["cache_miss_collisions", "cache_readaheads"] {
        page.row(WIDTH, name, 0_u64).not_modelled();
    }
    size(&mut page, "dirty_data", facts.gauges.dirty_bytes);
    size(&mut page, "written", counters.fast_write_bytes);
    size(&mut page, "metadata_written", counters.metadata_bytes);
    let dirty = facts.dirty_of_all.max(facts.gauges.dirty);
    let available = facts.gauges.slots - dirty.min(facts.gauges.slots);
    page.row(WIDTH, "cache_available_percent", percent(available, facts.gauges.slots));
    page.truth(
        exact_percent(available, facts.gauges.slots),
        "slots that are not dirty, of all volumes; the original cuts to whole percent",
    );
    page.row(WIDTH, "io_errors", counters.fast_read_errors + counters.fast_write_errors);
    page
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn sizes_have_one_decimal_that_is_cut() {
        let cases = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0k"),
            (1025 + 1023 - 2, "1.9k"),
            (3 << 19, "1.5M"),
            (20 << 30, "20.0G"),
            (u64::MAX, "15.9E"),
        ];
        for (bytes, text) in cases {
            assert_eq!(short(bytes), text, "{bytes}");
        }
    }
}
