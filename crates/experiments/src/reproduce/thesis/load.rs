//! Figures 2.2 to 2.7: whether the built-in loads show what the source shows of its traces.

use super::super::Context;
use super::lab::Load;
use super::{Done, Table};
use crate::Result;
use nandscape_core::TraceOp;
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
    Ok(TraceStats::of(workload(context, load)?.open()?, StatsOptions::default())?)
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The part of figures 2.2 and 2.5 that both loads share.
fn volume(out: &mut Table, source: &str, stats: &TraceStats, written_mb: f64, range_mb: f64, live_mb: f64) {
    let name = "every request is a write";
    let figures = format!("{} of {} requests", stats.mix.writes.requests, stats.requests);
    out.row(source, name).says("yes", stats.mix.writes.requests == stats.requests).found(figures);
    out.row(source, "data written").number("MiB", written_mb, stats.mix.writes.bytes as f64 / MIB);
    out.row(source, "highest address").number("MiB", range_mb, stats.max_end as f64 / MIB);
    let note = "not printed in the source; follows from PM_GCC's mapping traffic, which fixes the live pages of its collections";
    out.row("[thesis 4.3]", "live data").number("MiB", live_mb, stats.written_bytes as f64 / MIB).note(note);
}

pub fn fig_2_2(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Lammps)?;
    volume(out, LAMMPS, &stats, 7075.0, 358.0, 272.0);
    let share = percent(stats.page_overwrites, stats.page_writes);
    out.row(LAMMPS, "overwrites, share of the pages written")
        .says("a great many (taken as above 90 %)", share > 90.0)
        .found(format!("{share:.1} %"));
    let run = stats.mix.writes.bytes as f64 / stats.sequentiality.runs.max(1) as f64 / MIB;
    out.row(LAMMPS, "mean run of consecutive writes").number("blocks", 8.0, run);
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
        .found(format!("{share:.1} %"));
    let page = &stats.alignment[0];
    for (name, aligned) in [
        ("page-aligned starts", page.starts_aligned),
        ("page-aligned ends", page.ends_aligned),
        ("sizes of whole pages", page.lengths_aligned),
    ] {
        out.row(LAMMPS, name).number("%", 100.0, percent(aligned, stats.requests));
    }
    Ok(())
}

pub fn fig_2_4(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Lammps)?;
    let block = &stats.alignment[1];
    let share = percent(block.longer_than_unit, stats.requests);
    out.row(LAMMPS, "requests larger than a block").number("%", 90.0, share);
    halves(out, LAMMPS, &stats);
    Ok(())
}

/// Starts and ends: half on a block border, half in the middle of a block.
fn halves(out: &mut Table, source: &str, stats: &TraceStats) {
    let block = &stats.alignment[1];
    // 64 bins over the 1 MiB block: bin 0 starts at the border, bin 32 at 512 KiB, each 16 KiB wide, half a
    // page.
    for (name, bins) in [("starts", &block.start_bins), ("ends", &block.end_bins)] {
        let border = percent(bins[0], stats.requests);
        let middle = percent(bins[32], stats.requests);
        out.row(source, format!("{name} on a block border")).number("%", 50.0, border);
        out.row(source, format!("{name} 512 KiB into a block")).number("%", 50.0, middle);
    }
}

pub fn fig_2_5(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Macdrp)?;
    volume(out, MACDRP, &stats, 8256.0, 93.0, 87.6);
    let most = most_in_sight(context)?;
    out.row(MACDRP, "most writes of one address in a zoomed piece of 112 requests")
        .number("writes", 7.0, most);
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
        .found(format!("{share:.1} %"));
    let page = &stats.alignment[0];
    for (name, aligned) in [("starts", page.starts_aligned), ("ends", page.ends_aligned)] {
        let share = percent(aligned, stats.requests);
        out.row(MACDRP, format!("page-aligned {name}"))
            .says("almost all, a few not (taken as 95 % to below 100 %)", (95.0..100.0).contains(&share))
            .found(format!("{share:.1} %"));
    }
    Ok(())
}

pub fn fig_2_7(context: &Context<'_>, out: &mut Table) -> Done {
    let stats = stats(context, Load::Macdrp)?;
    halves(out, MACDRP, &stats);
    Ok(())
}
