//! Figures 2.2 to 2.7: whether the built-in loads show what the source shows of its traces.
//!
//! The loads were made to show it, so nearly every row is an input or calibrated and has no rule; the tests
//! of the generators check them. Only where requests of the LAMMPS load end was left to chance.

use super::super::{Context, Sabotage};
use super::lab::Load;
use super::{Done, Table};
use crate::Result;
use nandscape_core::{IoRecord, TraceError, TraceOp, TraceReader, WorkloadInfo};
use nandscape_report::RowKind;
use nandscape_trace::{OpenOptions, StatsOptions, Target, TraceStats, Workload};
use std::collections::BTreeMap;

const MIB: f64 = 1024.0 * 1024.0;
const LAMMPS: &str = "[thesis 2.2.1]";
const MACDRP: &str = "[thesis 2.2.2]";

fn workload(context: &Context<'_>, load: Load) -> Result<Workload> {
    context.check_stop()?;
    let options = OpenOptions { seed: context.seed, ..OpenOptions::default() };
    Ok(Workload::new(load.spec(), &options, Target::NONE)?)
}

fn stats(context: &Context<'_>, load: Load) -> Result<TraceStats> {
    let reader = workload(context, load)?.open()?;
    if context.is_sabotaged {
        return Ok(TraceStats::of(Box::new(WholeBlocks(reader)), StatsOptions::default())?);
    }
    Ok(TraceStats::of(reader, StatsOptions::default())?)
}

/// A load whose requests are widened to whole blocks.
struct WholeBlocks(Box<dyn TraceReader>);

impl Iterator for WholeBlocks {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        const BLOCK: u64 = 1 << 20;
        self.0.next().map(|record| {
            let record = record?;
            let (start, end) = (record.offset, record.offset + record.len);
            let offset = start / BLOCK * BLOCK;
            Ok(IoRecord { offset, len: end.next_multiple_of(BLOCK) - offset, ..record })
        })
    }
}

impl TraceReader for WholeBlocks {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo::default()
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

const CONSTANT: &str = "a constant of the generator";
const BY_CONSTANTS: &str = "follows from constants of the generator: bytes written, live data, sizes";

/// The part of figures 2.2 and 2.5 that both loads share.
fn volume(out: &mut Table, source: &str, stats: &TraceStats, written_mb: f64, range_mb: f64, live_mb: f64) {
    let name = "every request is a write";
    let is_write_only = stats.mix.writes.requests == stats.requests;
    let figures = format!("{} of {} requests", stats.mix.writes.requests, stats.requests);
    out.row(source, name).says("yes", is_write_only).kind(RowKind::Input).found(figures);
    out.row(source, "data written")
        .number("MiB", written_mb, stats.mix.writes.bytes as f64 / MIB)
        .kind(RowKind::Input)
        .note(CONSTANT);
    out.row(source, "highest address")
        .number("MiB", range_mb, stats.max_end as f64 / MIB)
        .kind(RowKind::Input)
        .note(CONSTANT);
    let note = "not printed in the source; a constant of the generator, taken from the published mapping traffic of PM_GCC, which fixes \
         the live pages of its collections";
    out.row("[thesis 4.3]", "live data")
        .number("MiB", live_mb, stats.written_bytes as f64 / MIB)
        .kind(RowKind::Input)
        .note(note);
}

pub fn fig_2_2(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Lammps)?;
    volume(out, LAMMPS, &stats, 7075.0, 358.0, 272.0);
    let share = percent(stats.page_overwrites, stats.page_writes);
    out.row(LAMMPS, "overwrites, share of the pages written")
        .says("a great many (taken as above 90 %)", share > 90.0)
        .kind(RowKind::Input)
        .found(format!("{share:.1} %; {BY_CONSTANTS}"));
    let run = stats.mix.writes.bytes as f64 / stats.sequentiality.runs.max(1) as f64 / MIB;
    out.row(LAMMPS, "mean run of consecutive writes")
        .number("blocks", 8.0, run)
        .kind(RowKind::Calibrated)
        .note("the number of extents, 34, was set to it");
    Ok(())
}

pub fn fig_2_3(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Lammps)?;
    let mut large = 0;
    for record in workload(context, Load::Lammps)?.open()? {
        large += u64::from(record?.len > 500_000);
    }
    let share = percent(large, stats.requests);
    out.row(LAMMPS, "requests larger than 500 kB")
        .says("nearly all (taken as above 95 %)", share > 95.0)
        .kind(RowKind::Input)
        .found(format!("{share:.1} %; {BY_CONSTANTS}"));
    let page = &stats.alignment[0];
    for (name, aligned) in [
        ("page-aligned starts", page.starts_aligned),
        ("page-aligned ends", page.ends_aligned),
        ("sizes of whole pages", page.lengths_aligned),
    ] {
        out.row(LAMMPS, name)
            .number("%", 100.0, percent(aligned, stats.requests))
            .kind(RowKind::Input)
            .note("the generator draws places and sizes in pages");
    }
    Ok(())
}

/// Of Figure 2.4.
pub const ON_BORDERS: Sabotage = Sabotage {
    what: "the load keeps no half blocks: every request covers whole blocks",
    turns: Sabotage::EVERY_RULE,
};

pub fn fig_2_4(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Lammps)?;
    let block = &stats.alignment[1];
    let share = percent(block.longer_than_unit, stats.requests);
    out.row(LAMMPS, "requests larger than a block")
        .number("%", 90.0, share)
        .kind(RowKind::Input)
        .note("69 of 76 requests, a constant of the generator");
    let starts = "layouts are drawn until 45 to 55 % of the starts lie on a border";
    halves(out, LAMMPS, &stats, [RowKind::Calibrated, RowKind::Measured], [starts, "left to chance"]);
    Ok(())
}

/// Starts and ends: half on a block border, half in the middle of a block.
fn halves(out: &mut Table, source: &str, stats: &TraceStats, kinds: [RowKind; 2], notes: [&str; 2]) {
    let block = &stats.alignment[1];
    let ends = [("starts", &block.start_bins), ("ends", &block.end_bins)];
    for (((name, bins), kind), note) in ends.into_iter().zip(kinds).zip(notes) {
        // 64 bins over the 1 MiB block: bin 0 starts at the border, bin 32 at 512 KiB, each 16 KiB wide, half
        // a page.
        for (place, bin) in [("on a block border", bins[0]), ("512 KiB into a block", bins[32])] {
            out.row(source, format!("{name} {place}"))
                .number("%", 50.0, percent(bin, stats.requests))
                .near()
                .kind(kind)
                .note(note);
        }
    }
}

pub fn fig_2_5(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Macdrp)?;
    volume(out, MACDRP, &stats, 8256.0, 93.0, 87.6);
    let most = most_in_sight(context)?;
    out.row(MACDRP, "most writes of one address in a zoomed piece of 112 requests")
        .number("writes", 7.0, most)
        .kind(RowKind::Input)
        .note("each group of blocks is gone through up to 7 times, a constant of the generator");
    Ok(())
}

/// Most often that one start address is written within any 112 requests in a row: seven times a group of 16
/// halves, the piece that the source's second plot shows.
fn most_in_sight(context: &Context<'_>) -> Result<f64> {
    const PIECE: usize = 112;
    let mut starts = Vec::new();
    for record in workload(context, Load::Macdrp)?.open()? {
        let record = record?;
        if record.op == TraceOp::Write {
            starts.push(record.offset);
        }
    }
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut most = 0;
    for (index, start) in starts.iter().enumerate() {
        let count = counts.entry(*start).or_insert(0);
        *count += 1;
        most = most.max(*count);
        if index + 1 >= PIECE
            && let Some(count) = counts.get_mut(&starts[index + 1 - PIECE])
        {
            *count -= 1;
        }
    }
    Ok(f64::from(most))
}

pub fn fig_2_6(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Macdrp)?;
    let half = stats.common_sizes.iter().find(|size| size.bytes == 512 << 10).map_or(0, |size| size.requests);
    let share = percent(half, stats.requests);
    out.row(MACDRP, "requests of 512 KiB")
        .says("nearly all (taken as above 95 %)", share > 95.0)
        .kind(RowKind::Input)
        .found(format!("{share:.1} %; {BY_CONSTANTS}"));
    let page = &stats.alignment[0];
    for (name, aligned) in [("starts", page.starts_aligned), ("ends", page.ends_aligned)] {
        let share = percent(aligned, stats.requests);
        out.row(MACDRP, format!("page-aligned {name}"))
            .says("almost all, a few not (taken as 95 % to below 100 %)", (95.0..100.0).contains(&share))
            .kind(RowKind::Input)
            .found(format!(
                "{share:.1} %; 225 unaligned requests, set to what the published mapping traffic of the page maps leaves \
                 beside 8 B for each page of 8256 MiB"
            ));
    }
    Ok(())
}

pub fn fig_2_7(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Macdrp)?;
    let note = "each block is written in two halves, by the generator";
    halves(out, MACDRP, &stats, [RowKind::Input; 2], [note; 2]);
    Ok(())
}
