//! RocksDB on file systems over a block drive and over zones [ATC21 5.3], [ATC21 fig 10]: XFS, f2fs, f2fs on
//! zones, and a store of files on zones.
//!
//! The load is the generator `lsm` with the shape that the published script gives to RocksDB: a buffer of two
//! zones, a first level of four, levels four times as large as the one before, eight jobs. One description of
//! the flash for all: the presets, with fewer pages in a block. Tables, the time between checkpoints and that
//! of a reset are smaller by the same factor as a zone; pieces of a write and segments of f2fs are not, since
//! they have whole pages.

use crate::Result;
use crate::reproduce::{Context, Done, Reproduction, Sabotage, Table, experiment};
use nandscape_core::{Cause, SimTime, words};
use nandscape_report::{RowKind, Run};
use nandscape_sim::metrics::Sample;
use nandscape_stack::RunOptions;
use nandscape_stack::config::StackConfig;
use std::fmt::Display;
use std::sync::Arc;

const SECTION_5_3: &str = "[ATC21 5.3]";
const FIG_10: &str = "[ATC21 fig 10]";
const TABLE_2: &str = "[ATC21 table 2]";

/// Why a change of f2fs on the block drive is far from the published one.
const SOFTWARE: &str = "the published f2fs is faster than xfs with a higher write amplification, which no drive \
     gives: the cost of software is not modelled";
/// A change within so many points counts as the published one.
const POINTS: f64 = 20.0;
const IGNORED: &str = "stores ignore lifetimes and never finish zones early: zone-files puts data into any open \
     zone, f2fs has two logs instead of six";
const NO_STREAMS: &str = "the drive with streams is given no hints";
const HALF_EMPTY: &str = "the data set fills half as much, and zones are finished when half is left";
const BUFFERS: &str = "the buffer of RocksDB is smaller the larger tables are";

pub(in crate::reproduce) const FILES: Reproduction = Reproduction {
    sabotage: Some(Sabotage { what: IGNORED, turns: &["overwrite, zone-files moves little"] }),
    ..experiment(
        "atc21-fig-5",
        "RocksDB filled and overwritten on XFS, f2fs, f2fs on zones and a store of files on zones",
        SECTION_5_3,
        files,
    )
};

pub(in crate::reproduce) const STREAMS: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: NO_STREAMS,
        turns: &["write amplification of the drive falls with streams"],
    }),
    ..experiment(
        "atc21-fig-6",
        "the same with streams on the block drive, and what zones gain over them",
        FIG_10,
        streams,
    )
};

pub(in crate::reproduce) const WAF: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: HALF_EMPTY,
        turns: &["the drive moves data below xfs, and zones do not"],
    }),
    ..experiment(
        "atc21-waf",
        "write amplification of the drive while RocksDB overwrites, on the four systems",
        SECTION_5_3,
        waf,
    )
};

pub(in crate::reproduce) const TAILS: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: NO_STREAMS,
        turns: &["p99 of reads: f2fs, f2fs with streams, zone-files"],
    }),
    ..experiment(
        "atc21-tails",
        "tails of reads while RocksDB overwrites at a fixed rate, on XFS, f2fs, f2fs with streams and zones",
        FIG_10,
        tails,
    )
};

pub(in crate::reproduce) const TABLES: Reproduction = Reproduction {
    sabotage: Some(Sabotage { what: BUFFERS, turns: &["write amplification of RocksDB, all sizes alike"] }),
    ..experiment(
        "atc21-sst-size",
        "tables of RocksDB of an eighth, a quarter and half of a zone, on a store of files on zones",
        TABLE_2,
        tables,
    )
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    Xfs,
    F2fs,
    F2fsZones,
    ZoneFiles,
    XfsStreams,
    F2fsStreams,
}

words!(pub System: Xfs = "xfs", F2fs = "f2fs", F2fsZones = "f2fs-zones", ZoneFiles = "zone-files",
    XfsStreams = "xfs with streams", F2fsStreams = "f2fs with streams");

impl System {
    const FOUR: [Self; 4] = [Self::Xfs, Self::F2fs, Self::F2fsZones, Self::ZoneFiles];

    const fn is_zoned(self) -> bool {
        matches!(self, Self::F2fsZones | Self::ZoneFiles)
    }

    const fn has_streams(self) -> bool {
        matches!(self, Self::XfsStreams | Self::F2fsStreams)
    }

    const fn stack(self) -> &'static str {
        match self {
            Self::Xfs | Self::XfsStreams => "xfs",
            Self::F2fs | Self::F2fsStreams => "f2fs",
            Self::F2fsZones => "f2fs-zones",
            Self::ZoneFiles => "zone-files",
        }
    }

    /// Tables in thousandths of a zone: 128 MiB of 1077, but [ATC21 4.2] has tables as large as zones on its
    /// store of files.
    const fn table(self) -> u32 {
        match self {
            Self::ZoneFiles => 950,
            _ => EIGHTH,
        }
    }
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    IgnoresLifetimes,
    HalfEmpty,
    /// The buffer is smaller the larger tables are.
    Buffers,
    /// Writes come at [`RATE`], a tenth of the operations are reads of single keys, and merges read from the
    /// page cache.
    Reads,
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    system: System,
    /// Thousandths of a zone.
    table: u32,
    change: Change,
    scale: Scale,
    seed: u64,
}

/// How large the device is; a stripe of program units has 4 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scale {
    zones: u32,
    /// Of a block.
    pages: u32,
    /// Keys with their values, in ten-thousandths of the zones; the tree needs more, see the row of the data
    /// set.
    keys: u32,
}

const FULL: Scale = Scale { zones: 904, pages: 16, keys: 6775 };
const SMALL: Scale = Scale { zones: 226, pages: 8, keys: 5400 };

impl Scale {
    /// Pages of 16 KiB of a stripe of blocks over 32 dies.
    const fn zone_pages(self) -> u32 {
        32 * self.pages
    }

    const fn zone_bytes(self) -> u64 {
        self.zone_pages() as u64 * PAGE
    }

    /// By how much a zone is smaller than that of 1077 MiB: of its blocks, 2154 pages are used.
    fn factor(self) -> f64 {
        f64::from(self.pages) / 2154.0
    }

    fn capacity(self) -> f64 {
        f64::from(self.zones) * self.zone_bytes() as f64
    }

    /// Keys as a share of the zones.
    fn keys(self) -> f64 {
        f64::from(self.keys) / 10_000.0
    }
}

/// 128 MiB of a zone of 1077, in thousandths.
const EIGHTH: u32 = 119;
const PAGE: u64 = 16 << 10;
/// Share of a zone that a table leaves, in whole percent and rounded up; the published script has 20.
const FINISH: u32 = 6;
/// Bytes of keys and values a second that are written beside reads: the slowest system keeps up.
const RATE: f64 = 10.0 * 1_048_576.0;
/// Bytes a second that a user of the published runs writes about, which is the clock of the journal of XFS.
const USER_RATE: f64 = 80e6;

impl Point {
    fn new(context: &Context<'_>, system: System, change: Change) -> Self {
        let scale = context.scale(FULL, SMALL);
        Self { system, table: system.table(), change, scale, seed: context.seed }
    }

    fn label(&self) -> String {
        format!("{}, tables of {} thousandths of a zone", self.system.name(), self.table)
    }

    fn pages(&self, zones: f64) -> u64 {
        (f64::from(self.scale.zone_pages()) * zones) as u64 * PAGE
    }

    /// Bytes of keys and values.
    fn keys(&self) -> u64 {
        let keys = self.scale.keys() * if self.change == Change::HalfEmpty { 0.5 } else { 1.0 };
        self.pages(keys * f64::from(self.scale.zones))
    }

    /// Bytes that a user writes each second of the load's own clock.
    fn rate(&self) -> f64 {
        if self.change == Change::Reads { RATE } else { (USER_RATE * self.scale.factor()).round() }
    }

    /// Every key is written once, and then as many again.
    fn load(&self) -> String {
        let pages = |zones: f64| self.pages(zones);
        let table = pages(f64::from(self.table) / 1000.0);
        let larger = if self.change == Change::Buffers { f64::from(self.table / EIGHTH) } else { 1.0 };
        let reads = if self.change == Change::Reads { ",read=10%,merge_reads=false" } else { "" };
        format!(
            "lsm:span={},turns=2,table={table},memory={},base={},ratio=4,jobs=8,piece={},rate={:.0}{reads}",
            self.keys(),
            pages(1.875 / larger),
            pages(3.75),
            pages(1.0 / 128.0),
            self.rate(),
        )
    }

    fn config(&self, context: &Context<'_>) -> Result<StackConfig> {
        let Scale { zones, pages, .. } = self.scale;
        let preset = match self.system {
            system if system.is_zoned() => "zns-atc21",
            system if system.has_streams() => "zns-atc21-streams",
            _ => "zns-atc21-block-7op",
        };
        let whole = context.config(Some("zns-atc21"), &[])?;
        let zone = self.scale.zone_bytes();
        let blocks = whole.geometry.blocks_per_plane * zones / 1771;
        let reset = format!("{:.0}ns", 1_580_000.0 * self.scale.factor());
        let checkpoint = format!("{:.0}us", 60e6 * self.scale.factor());
        // For checkpoints and tables of f2fs, as the stack has it by itself at full scale.
        let conventional = (blocks / 64).max(6);
        let (segment, piece) = (zone / 32, zone / 128);
        let ignores = self.change == Change::IgnoresLifetimes;
        let finish = match self.change {
            Change::IgnoresLifetimes => 0,
            Change::HalfEmpty => 60,
            _ => FINISH,
        };
        let (placement, logs) = (if ignores { "none" } else { "learned" }, if ignores { 2 } else { 6 });
        let mut keys: Vec<(&str, &dyn Display)> = vec![
            ("device.pages_per_block", &pages),
            ("device.blocks_per_plane", &blocks),
            ("device.endurance", &"endless"),
            ("zone.capacity", &zone),
            ("zone.size", &zone),
            ("zone.count", &zones),
            ("zone.reset_time", &reset),
        ];
        match self.system {
            System::Xfs => {}
            System::XfsStreams => keys.push(("host.policy", &"write-hint")),
            System::F2fs | System::F2fsStreams | System::F2fsZones => {
                keys.extend([("f2fs.checkpoint", &checkpoint as &dyn Display), ("f2fs.logs", &logs)]);
                if self.system.is_zoned() {
                    keys.push(("zone.conventional", &conventional));
                } else {
                    keys.extend([
                        ("f2fs.segment", &segment as &dyn Display),
                        ("f2fs.discard_granularity", &piece),
                    ]);
                }
                if self.system.has_streams() {
                    keys.push(("f2fs.streams", &true));
                }
            }
            System::ZoneFiles => {
                keys.extend([
                    ("ftl.finish_threshold", &finish as &dyn Display),
                    ("ftl.placement", &placement),
                ]);
            }
        }
        let depth = if self.change == Change::Reads { 0 } else { 32 };
        keys.push(("workload.depth", &depth));
        let stack = self.system.stack();
        keys.insert(0, ("stack.kind", &stack));
        Ok(context.config(Some(preset), &keys)?)
    }

    fn run(&self, context: &Context<'_>) -> Result<Run> {
        let filled = SimTime((self.keys() as f64 / self.rate() * 1e9) as u64);
        let options = RunOptions { marks: &[filled], ..RunOptions::default() };
        context.replay(&self.config(context)?, &self.load(), self.label(), options)
    }
}

/// A system that was filled and then overwritten.
struct Measured {
    system: System,
    run: Arc<Run>,
}

impl Measured {
    fn all(context: &Context<'_>, points: &[(System, Change)]) -> Result<Vec<Self>> {
        let points: Vec<Point> =
            points.iter().map(|&(system, change)| Point::new(context, system, change)).collect();
        let runs = context.files.all(&points, |point| point.run(context))?;
        let each = points.iter().zip(runs);
        Ok(each.map(|(point, run)| Self { system: point.system, run }).collect())
    }

    /// When the last key had been written for the first time.
    fn filled(&self) -> &Sample {
        &self.run.series.as_ref().expect("a mark was asked for").marks[0]
    }

    fn fill_s(&self) -> f64 {
        self.filled().simulated_ns as f64 / 1e9
    }

    fn overwrite_s(&self) -> f64 {
        self.run.result.speed.time.simulated_ns as f64 / 1e9 - self.fill_s()
    }

    /// Pages that were programmed while it was overwritten: by the drive for itself, by the store for itself,
    /// and all.
    fn programs(&self) -> [f64; 3] {
        let filled = self.filled().causes;
        let flash = &self.run.result.flash;
        let more = |cause: Cause| {
            let all = flash.by_cause.get(cause.name()).map_or(0, |counts| counts.programs);
            (all - filled.get(cause).programs) as f64
        };
        let all = (flash.programs - filled.total().programs) as f64;
        let (collected, cleaned) = (more(Cause::Gc), more(Cause::Clean));
        match self.system {
            System::ZoneFiles => [more(Cause::Finish), collected, all],
            _ => [collected, cleaned, all],
        }
    }

    /// Bytes programmed over bytes that reached the drive, while it was overwritten.
    fn device_waf(&self) -> f64 {
        let [drive, _, all] = self.programs();
        let into = match self.system {
            // Blocks that do not fill a page are rounded up by the drive.
            System::Xfs | System::XfsStreams => {
                (self.run.result.host.write_bytes - self.filled().host.write_bytes) as f64 / PAGE as f64
            }
            _ => all - drive,
        };
        all / into
    }

    /// What the store moves for each page that it is given.
    fn moved(&self) -> f64 {
        let [drive, store, all] = self.programs();
        store / (all - drive - store)
    }
}

/// How much faster the first is, in percent, by the time it takes.
fn gain(fast: f64, slow: f64) -> f64 {
    (slow / fast - 1.0) * 100.0
}

fn points_off(published: f64) -> std::ops::RangeInclusive<f64> {
    published - POINTS..=published + POINTS
}

/// Both times, and why a change that has to do with f2fs is far from the published one.
fn seconds(name: &str, published: f64, fast: f64, slow: f64) -> String {
    let is_far = !points_off(published).contains(&gain(fast, slow));
    let why = if is_far && name.contains("f2fs") { format!("; {SOFTWARE}") } else { String::new() };
    format!("{fast:.1} s and {slow:.1} s{why}")
}

/// What was put in.
fn inputs(context: &Context<'_>, full: &Measured, out: &mut Table) {
    let scale = context.scale(FULL, SMALL);
    let live = full.run.result.between.objects.as_ref().map_or(f64::NAN, |objects| objects.live_bytes as f64);
    out.row(SECTION_5_3, "data set, of the zones")
        .number("%", 80.0, live / scale.capacity() * 100.0)
        .kind(RowKind::Input)
        .note(format!(
            "at the end, by the choice of keys of {:.0} % of the zones; {} zones of {} MiB, 14 active; tables of 0.119 of \
             a zone (128 MiB), of 0.95 on zone-files, which finishes zones with less than {FINISH} % left",
            scale.keys() * 100.0,
            scale.zones,
            scale.zone_bytes() >> 20,
        ));
}

fn files(context: &Context<'_>, out: &mut Table) -> Done {
    let change = if context.is_sabotaged { Change::IgnoresLifetimes } else { Change::None };
    let all = Measured::all(context, &System::FOUR.map(|system| (system, change)))?;
    let [xfs, f2fs, zoned, store] = &all[..] else { unreachable!("one a system") };
    inputs(context, store, out);
    for (name, fast, slow, published) in [
        ("overwrite, zone-files over xfs", store, xfs, 183.0),
        ("overwrite, f2fs-zones over xfs", zoned, xfs, 42.0),
        ("overwrite, f2fs-zones over f2fs", zoned, f2fs, 33.0),
    ] {
        out.row(SECTION_5_3, name)
            .number("%", published, gain(fast.overwrite_s(), slow.overwrite_s()))
            .within(points_off(published))
            .note(seconds(name, published, fast.overwrite_s(), slow.overwrite_s()));
    }
    let times: Vec<f64> = [store, zoned, f2fs, xfs].iter().map(|system| system.overwrite_s()).collect();
    let blocks = times[2].min(times[3]);
    out.row(SECTION_5_3, "overwrite: zone-files, f2fs-zones, then both on the block drive")
        .says("in this order", times[0] < times[1] && times[1] < blocks)
        .found(format!("{:.1}, {:.1}, {:.1} (f2fs), {:.1} s (xfs)", times[0], times[1], times[2], times[3]));
    out.row("", "overwrite, zone-files moves little")
        .says("ours: less than a fifth of what it is given", store.moved() < 0.2)
        .found(format!("{:.2} pages a page", store.moved()));
    for system in &all {
        out.row("", format!("{}, moved by itself", system.system.name()))
            .figure("pages a page", system.moved())
            .note(format!("while overwriting; filled in {:.1} s", system.fill_s()));
    }
    Ok(())
}

/// A system with streams, or without them to spoil what they bring.
fn streamed(context: &Context<'_>, system: System) -> System {
    match system {
        System::XfsStreams if context.is_sabotaged => System::Xfs,
        System::F2fsStreams if context.is_sabotaged => System::F2fs,
        system => system,
    }
}

fn streams(context: &Context<'_>, out: &mut Table) -> Done {
    let systems = [System::Xfs, System::XfsStreams, System::F2fs, System::F2fsStreams, System::F2fsZones];
    let all = Measured::all(context, &systems.map(|system| (streamed(context, system), Change::None)))?;
    let [xfs, xfs_streams, f2fs, f2fs_streams, zoned] = &all[..] else { unreachable!("one a system") };
    for (name, fast, slow, published) in [
        ("xfs with streams over without", xfs_streams, xfs, [11.0, 16.0]),
        ("f2fs with streams over without", f2fs_streams, f2fs, [24.0, 4.0]),
        ("f2fs-zones over f2fs with streams", zoned, f2fs_streams, [17.0, 44.0]),
    ] {
        let times =
            [("fill", fast.fill_s(), slow.fill_s()), ("overwrite", fast.overwrite_s(), slow.overwrite_s())];
        for ((part, fast, slow), published) in times.into_iter().zip(published) {
            let found = gain(fast, slow);
            out.row(FIG_10, format!("{part}, {name}"))
                .number("%", published, found)
                .within(points_off(published))
                .note(seconds(name, published, fast, slow));
        }
    }
    let falls = |with: &Measured, without: &Measured| with.device_waf() < 0.98 * without.device_waf();
    out.row(FIG_10, "write amplification of the drive falls with streams")
        .says("on both systems, by 2 % at least", falls(xfs_streams, xfs) && falls(f2fs_streams, f2fs))
        .found(format!(
            "{:.2} and {:.2} (xfs), {:.2} and {:.2} (f2fs)",
            xfs.device_waf(),
            xfs_streams.device_waf(),
            f2fs.device_waf(),
            f2fs_streams.device_waf()
        ));
    Ok(())
}

fn waf(context: &Context<'_>, out: &mut Table) -> Done {
    let change = if context.is_sabotaged { Change::HalfEmpty } else { Change::None };
    let all = Measured::all(context, &System::FOUR.map(|system| (system, change)))?;
    inputs(context, &all[3], out);
    let drives: Vec<f64> = all.iter().map(Measured::device_waf).collect();
    out.row(SECTION_5_3, "the drive moves data below xfs, and zones do not")
        .says("at least 1.4, and at most 1.1", drives[0] > 1.4 && drives[2].max(drives[3]) < 1.1)
        .found(format!("{:.2}; {:.2} and {:.2}", drives[0], drives[2], drives[3]));
    for (system, published) in all.iter().zip([2.0, 2.4, 1.0, 1.0]) {
        out.row(SECTION_5_3, system.system.name())
            .number("", published, system.device_waf())
            .within(published - 0.3..=published + 0.3)
            .note(format!("of the drive; the system itself moves {:.2} pages a page", system.moved()));
    }
    Ok(())
}

fn tails(context: &Context<'_>, out: &mut Table) -> Done {
    let systems = [
        (System::F2fs, 9435.0),
        (System::F2fsStreams, 6529.0),
        (System::ZoneFiles, 3734.0),
        (System::Xfs, f64::NAN),
    ];
    let points =
        systems.map(|(system, _)| Point::new(context, streamed(context, system), Change::Reads)).to_vec();
    let runs = context.files.all(&points, |point| point.run(context))?;
    let reads: Vec<_> = runs.iter().map(|run| &run.result.latency_ns.read).collect();
    let us = |ns: u64| ns as f64 / 1e3;
    for ((system, published), read) in systems.iter().zip(&reads) {
        let row = out.row(FIG_10, format!("p99 of reads, {}", system.name()));
        let row = if published.is_nan() {
            row.figure("us", us(read.p99))
        } else {
            row.number("us", *published, us(read.p99))
        };
        row.note(
            "published: of operations of RocksDB with 32 readers at full speed; ours: of single reads of 4 KiB while \
             10 MiB/s are written (chosen)",
        );
    }
    let p99 = [0, 1, 2].map(|index: usize| us(reads[index].p99));
    out.row(FIG_10, "p99 of reads: f2fs, f2fs with streams, zone-files")
        .says("in this order, the highest first", p99[0] > p99[1] && p99[1] > p99[2])
        .found(format!("{:.0}, {:.0}, {:.0} us", p99[0], p99[1], p99[2]));
    let store = us(reads[2].p99_9);
    for (index, name, published) in [(3, "xfs", 2.0), (0, "f2fs", 4.0)] {
        let other = us(reads[index].p99_9);
        out.row(SECTION_5_3, format!("p99.9 of reads, {name} over zone-files"))
            .number("", published, other / store)
            .within(published..=f64::INFINITY)
            .note(format!("{other:.0} and {store:.0} us"));
    }
    Ok(())
}

fn tables(context: &Context<'_>, out: &mut Table) -> Done {
    let change = if context.is_sabotaged { Change::Buffers } else { Change::None };
    let sizes = [
        (EIGHTH, "128 MiB", 11.9, 15_430.0),
        (238, "256 MiB", 12.0, 15_461.0),
        (475, "512 MiB", 12.0, 14_918.0),
    ];
    let points: Vec<Point> = sizes
        .iter()
        .map(|&(table, ..)| Point { table, ..Point::new(context, System::ZoneFiles, change) })
        .collect();
    let runs = context.files.all(&points, |point| point.run(context))?;
    let scale = context.scale(FULL, SMALL);
    let written = 2.0 * scale.keys() * scale.capacity();
    let waf = |run: &Run| run.result.host.write_bytes as f64 / written;
    let seconds = |run: &Run| run.result.speed.time.simulated_ns as f64 / 1e9;
    for ((_, size, published, time), run) in sizes.iter().zip(&runs) {
        out.row(TABLE_2, format!("write amplification of RocksDB, {size}"))
            .number("", *published, waf(run))
            .within(published * 0.85..=published * 1.15)
            .note("bytes written to files, the log among them, over those of keys and values");
        out.row(TABLE_2, format!("time, {size} over 128 MiB"))
            .number("", time / sizes[0].3, seconds(run) / seconds(&runs[0]))
            .within(time / sizes[0].3 - 0.1..=time / sizes[0].3 + 0.1)
            .note(format!("{:.1} s; published for a larger device {time:.0} s", seconds(run)));
    }
    let (least, most) = crate::reproduce::extremes(runs.iter().map(|run| waf(run)));
    out.row(TABLE_2, "write amplification of RocksDB, all sizes alike")
        .says("within 5 %", most < 1.05 * least)
        .found(format!("{least:.2} to {most:.2}"));
    Ok(())
}
