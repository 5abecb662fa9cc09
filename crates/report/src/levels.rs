//! Recordings of one run at several levels beside each other: what kind of load each level sees.

use crate::contract::{append_only, percent};
use crate::number::{grouped, printable};
use crate::table::{Head, Table};
use nandscape_core::units::format_bytes;
use nandscape_trace::TraceStats;
use nandscape_trace::stats::{LARGE_BYTES, Pattern};

/// A recording, and the level that it was taken at.
#[derive(Clone, Debug)]
pub struct Level {
    /// Name of the workload.
    pub workload: String,
    /// Where its requests were seen, such as `files` or `blocks`.
    pub level: &'static str,
    /// What it looks like.
    pub stats: TraceStats,
}

/// A figure of a load: its name, and its text.
type Figure = (&'static str, fn(&Level) -> String);

fn of(level: &Level) -> &Pattern {
    &level.stats.patterns.whole
}

fn shares(count: u64, bytes: u64, level: &Level) -> String {
    format!("{} ({} of bytes)", percent(count, of(level).requests), percent(bytes, of(level).bytes))
}

static FIGURES: &[Figure] = &[
    ("level", |level| level.level.to_owned()),
    ("kind of load", |level| of(level).class.clone()),
    ("reads and writes", |level| {
        format!("{}, {}", grouped(of(level).requests), format_bytes(of(level).bytes))
    }),
    ("writes", |level| format!("{}, {}", grouped(of(level).writes), format_bytes(of(level).write_bytes))),
    ("flushes", |level| grouped(level.stats.mix.flushes.requests)),
    ("large", |level| shares(of(level).large, of(level).large_bytes, level)),
    ("small", |level| percent(of(level).small, of(level).requests)),
    ("sequential", |level| shares(of(level).sequential, of(level).sequential_bytes, level)),
    ("appends, of writes", |level| percent(of(level).appends, of(level).writes)),
    ("at the end, of writes", |level| percent(of(level).growing, of(level).writes)),
    ("all three, of writes", |level| percent(of(level).large_sequential_appends, of(level).writes)),
    ("append-only", |level| append_only(&level.stats.patterns)),
];

/// A column for each recording. The rules are those of `trace stats`. The table is made to
/// fit a terminal of `width` columns.
pub fn render_levels_text(levels: &[Level], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.column(Head::text(""), FIGURES.iter().map(|(name, _)| (*name).to_owned()));
    for level in levels {
        let cells = FIGURES.iter().map(|(_, text)| text(level));
        table.column(Head { is_left: true, ..Head::number("", &printable(&level.workload), "") }, cells);
    }
    let large = format_bytes(LARGE_BYTES);
    format!(
        "{}\nlarge: {large} or more; sequential: starts where one of the last 32 of the same direction and stream \
         ended; append:\noverwrites no live page; at the end: at or behind the end of all written before; append-only: \
         volumes or files, by\nhint, of whose writes 80 % are at the end\n",
        table.render(width)
    )
}
