//! Presets beside real drives: the figures of data sheets, and what others measured on the drives.
//!
//! The devices are the presets, smaller: fewer and shorter blocks, with all dies and the same
//! over-provisioning. The time of an erase is shorter by the same factor as a block, so that it stays in
//! proportion to the data. Nothing else differs, except in rows that name it: a drive's own over-provisioning
//! where that of the preset is another one, or units of 4 KiB where the preset maps whole pages.

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_report::{RowKind, Run};
use nandscape_stack::RunOptions;
use nandscape_stack::config::StackConfig;
use std::fmt::Display;
use std::sync::Arc;

const ID: &str = "drives";
/// Data-sheet figures of drives, collected by the authors of a study.
const SHEETS: &str = "[SSD-iq sheets]";
/// What the study measured: random writes of 4 KiB, 512 under way, to five times the capacity.
const WRITES: &str = "[SSD-iq writes]";
const CDM: &str = "[PM963-CDM]";
const PM983: &str = "[PM983]";

const MORE_SPARE: &str = "steady random writes, 28 % over 7 % of over-provisioning";
const FRESH_RATE: &str = "fresh random writes at the rate of sequential ones";
const SHORTER_TAIL: &str = "p99 of steady random writes, 28 % against 7 % of over-provisioning";

pub(super) const DRIVES: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "all drives have 28 % of over-provisioning, and map whole flash pages",
        turns: &[MORE_SPARE, FRESH_RATE, SHORTER_TAIL],
    }),
    ..experiment(
        ID,
        "presets beside real drives: data sheets and steady-state measurements of four drives",
        "[SSD-iq sheets], [SSD-iq writes], [PM963-CDM], [PM983]",
        rows,
    )
};

#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Blocks of a plane for random writes, which need the share of spare blocks that the drive has.
    blocks: u32,
    /// Blocks of a plane for everything else.
    few_blocks: u32,
    /// Program units of a block.
    units: u32,
    /// Overwrites of the capacity before steady writes are counted, with much and with little spare space.
    overwrites: (f64, f64),
    /// Requests of a run: random writes, random reads, one at a time, sequential.
    writes: u64,
    reads: u64,
    single: u64,
    sequential: u64,
}

const FULL: Scale = Scale {
    blocks: 683,
    few_blocks: 256,
    units: 4,
    overwrites: (2.0, 1.0),
    writes: 400_000,
    reads: 300_000,
    single: 20_000,
    sequential: 20_000,
};
/// A quick run that shows the orderings; with so few blocks write amplification is too high.
const SMALL: Scale = Scale {
    blocks: 128,
    few_blocks: 64,
    units: 2,
    overwrites: (0.6, 0.25),
    writes: 60_000,
    reads: 20_000,
    single: 1_000,
    sequential: 4_000,
};

/// What is run, and which of its figures is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    SequentialReads,
    SequentialWrites,
    RandomReads,
    ReadLatency,
    WriteLatency,
    /// Random writes of a drive that is empty. The source's were full and had erased spare space left.
    Fresh,
    /// Random writes of a drive that was filled and overwritten.
    Steady,
}

use Load::{Fresh, RandomReads, ReadLatency, SequentialReads, SequentialWrites, Steady, WriteLatency};

impl Load {
    const fn name(self) -> &'static str {
        match self {
            SequentialReads => "sequential reads",
            SequentialWrites => "sequential writes",
            RandomReads => "random reads",
            ReadLatency => "read latency at depth 1",
            WriteLatency => "write latency at depth 1",
            Fresh => "fresh random writes",
            Steady => "steady random writes",
        }
    }

    const fn is_write(self) -> bool {
        matches!(self, SequentialWrites | WriteLatency | Fresh | Steady)
    }

    const fn unit(self) -> &'static str {
        match self {
            SequentialReads | SequentialWrites => "MB/s",
            RandomReads | Fresh | Steady => "IOPS",
            ReadLatency | WriteLatency => "us",
        }
    }

    /// The job file. All loads go to the whole device.
    fn jobs(self, scale: &Scale) -> String {
        let (rw, bytes, depth, requests) = match self {
            SequentialReads => ("read", 128 << 10, 32, scale.sequential),
            SequentialWrites => ("write", 128 << 10, 32, scale.sequential),
            RandomReads => ("randread", 4 << 10, 512, scale.reads),
            ReadLatency => ("randread", 4 << 10, 1, scale.single),
            WriteLatency => ("randwrite", 4 << 10, 1, scale.single),
            Fresh | Steady => ("randwrite", 4 << 10, 512, scale.writes),
        };
        let order = if rw.starts_with("rand") { "norandommap\n" } else { "" };
        format!(
            "[load]\nfilename=ns1\nrw={rw}\n{order}bs={bytes}\niodepth={depth}\nsize=100%\nio_size={}\n",
            requests * bytes
        )
    }
}

/// A run: a load on a preset, with a key of it changed in rows that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    preset: &'static str,
    changed: Option<(&'static str, &'static str)>,
    load: Load,
}

impl Point {
    /// Overwrites bring a drive with little spare space into its steady state sooner.
    fn has_much_spare(&self) -> bool {
        self.preset == MAX || self.changed == MAX_SPACE
    }

    fn config(&self, scale: &Scale, context: &Context<'_>) -> Result<StackConfig> {
        let whole = context.config(Some(self.preset), &[])?;
        let is_random_write = matches!(self.load, Fresh | Steady);
        let blocks = if is_random_write { scale.blocks } else { scale.few_blocks };
        let pages = scale.units * whole.timing_options.program_pages;
        let erase_ns = whole.timing.erase_ns * u64::from(pages) / u64::from(whole.geometry.pages_per_block);
        let erase = format!("{erase_ns}ns");
        let overwrites = if self.has_much_spare() { scale.overwrites.0 } else { scale.overwrites.1 };
        let before = match self.load {
            SequentialWrites | Fresh => "none".to_owned(),
            Steady => format!("fill+uniform:{overwrites}x"),
            _ => "fill".to_owned(),
        };
        let mut keys: Vec<(&str, &dyn Display)> = vec![
            ("device.blocks_per_plane", &blocks),
            ("device.pages_per_block", &pages),
            ("device.timing.erase", &erase),
            ("device.endurance", &"endless"),
            ("workload.precondition", &before),
        ];
        if let Some((key, value)) = &self.changed {
            keys.push((key, value));
        }
        if context.is_sabotaged {
            keys.extend([("ftl.op", &"0.28" as &dyn Display), ("ftl.unit", &"page")]);
        }
        Ok(context.config(Some(self.preset), &keys)?)
    }

    fn run(&self, scale: &Scale, context: &Context<'_>) -> Result<Run> {
        let config = self.config(scale, context)?;
        context.run_jobs(&config, ID, &self.load.jobs(scale), RunOptions::default())
    }
}

/// What came out of a run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    iops: f64,
    bytes_per_s: f64,
    mean_us: f64,
    p99_ms: f64,
    waf: f64,
}

impl Measured {
    fn new(point: &Point, run: &Run) -> Self {
        let job = &run.result.jobs[0];
        let seen = if point.load.is_write() { &job.write } else { &job.read };
        Self {
            iops: seen.iops,
            bytes_per_s: seen.bytes_per_s,
            mean_us: seen.latency_ns.mean / 1e3,
            p99_ms: seen.latency_ns.p99 as f64 / 1e6,
            waf: run.result.waf.bytes.unwrap_or(1.0),
        }
    }

    fn figure(&self, load: Load) -> f64 {
        match load {
            SequentialReads | SequentialWrites => self.bytes_per_s / 1e6,
            RandomReads | Fresh | Steady => self.iops,
            ReadLatency | WriteLatency => self.mean_us,
        }
    }
}

/// A published figure of a drive.
#[derive(Clone, Copy, Debug)]
struct Figure {
    load: Load,
    /// The 99th percentile in ms instead of the load's own figure.
    is_p99: bool,
    source: &'static str,
    published: f64,
    changed: Option<(&'static str, &'static str)>,
    kind: RowKind,
    /// Said if the ratio is far from 1.
    why: &'static str,
}

/// A drive, and the preset of its class.
#[derive(Clone, Copy, Debug)]
struct Drive {
    name: &'static str,
    preset: &'static str,
    figures: &'static [&'static [Figure]],
}

const MAX: &str = "dc-tlc-28op";
const PRO: &str = "dc-tlc-7op";
const PM963: &str = "pm963-1920g";
/// What each drive wrote at its full rate after it was filled, before the rate fell [SSD-iq writes]: 363, 204
/// and 119 GB beside 800, 960 and 960 GB.
const MAX_SPACE: Option<(&str, &str)> = Some(("ftl.op", "0.454"));
const PRO_SPACE: Option<(&str, &str)> = Some(("ftl.op", "0.213"));
const PM9A3_SPACE: Option<(&str, &str)> = Some(("ftl.op", "0.124"));
const UNITS: Option<(&str, &str)> = Some(("ftl.unit", "4KiB"));

const WHY_OTHER_SPACE: &str = "the preset has less spare space than the drive";
const WHY_SMALL: &str = "so small a device keeps few blocks erased; with more it programs more";
const WHY_SUCCESSOR: &str = "the figure is that of the PM983, the successor";
const WHY_TAIL: &str = "the drive paces its writes better: its p99 is at most 2 % above its median";
const WHY_PAGES: &str = "the preset maps pages of 16 KiB: a write of 4 KiB reads and programs a whole page";
const WHY_LINK: &str = "the preset has the link's rate as its only limit; the drive reads less";
const WHY_HOST: &str = "the figure was measured under Windows and includes its time";

const fn figure(load: Load, source: &'static str, published: f64) -> Figure {
    Figure { load, is_p99: false, source, published, changed: None, kind: RowKind::Measured, why: "" }
}

impl Figure {
    const fn p99(published_ms: f64) -> Self {
        Self {
            is_p99: true,
            published: published_ms,
            kind: RowKind::Calibrated,
            ..figure(Steady, WRITES, 0.0)
        }
    }

    const fn with(self, changed: Option<(&'static str, &'static str)>) -> Self {
        Self { changed, ..self }
    }

    const fn calibrated(self) -> Self {
        Self { kind: RowKind::Calibrated, ..self }
    }

    const fn why(self, why: &'static str) -> Self {
        Self { why, ..self }
    }
}

/// What the sheets of both 7450 have.
const SHEET_OF_7450: [Figure; 5] = [
    figure(SequentialReads, SHEETS, 6800.0),
    figure(SequentialWrites, SHEETS, 1400.0).calibrated(),
    figure(RandomReads, SHEETS, 530_000.0),
    figure(ReadLatency, SHEETS, 80.0).calibrated(),
    figure(WriteLatency, SHEETS, 15.0).calibrated().why("the preset aims at 10 to 15 us"),
];

const DRIVES_OF: [Drive; 4] = [
    Drive {
        name: "Micron 7450 MAX 800 GB",
        preset: MAX,
        figures: &[
            &SHEET_OF_7450,
            &[
                figure(Fresh, WRITES, 355_000.0),
                figure(Steady, SHEETS, 145_000.0).why(WHY_OTHER_SPACE),
                figure(Steady, SHEETS, 145_000.0).with(MAX_SPACE),
                figure(Steady, WRITES, 160_000.0).with(MAX_SPACE),
                Figure::p99(3.21).with(MAX_SPACE).why(WHY_TAIL),
            ],
        ],
    },
    Drive {
        name: "Micron 7450 PRO 960 GB",
        preset: PRO,
        figures: &[
            &SHEET_OF_7450,
            &[
                figure(Fresh, WRITES, 354_000.0),
                figure(Steady, SHEETS, 85_000.0).why(WHY_OTHER_SPACE),
                figure(Steady, SHEETS, 85_000.0).with(PRO_SPACE),
                figure(Steady, WRITES, 94_200.0).with(PRO_SPACE),
                Figure::p99(5.52).with(PRO_SPACE).why(WHY_TAIL),
            ],
        ],
    },
    Drive {
        name: "Samsung PM9A3 960 GB",
        preset: PRO,
        figures: &[&[
            figure(SequentialReads, SHEETS, 6500.0),
            figure(SequentialWrites, SHEETS, 1500.0),
            figure(RandomReads, SHEETS, 580_000.0).why("32 dies of 60 us a read serve 533,000 at most"),
            figure(Steady, SHEETS, 70_000.0).with(PM9A3_SPACE).why(WHY_SMALL),
            figure(Steady, WRITES, 71_400.0).with(PM9A3_SPACE).why(WHY_SMALL),
            Figure::p99(7.17).with(PM9A3_SPACE).why(WHY_TAIL),
        ]],
    },
    Drive {
        name: "Samsung PM963 1.92 TB",
        preset: PM963,
        figures: &[&[
            figure(SequentialReads, CDM, 2383.0).why(WHY_LINK),
            figure(SequentialWrites, CDM, 1305.0).calibrated(),
            figure(RandomReads, CDM, 470_000.0).calibrated(),
            figure(ReadLatency, CDM, 88.2),
            figure(WriteLatency, CDM, 23.6).why(WHY_HOST),
            figure(Fresh, CDM, 283_000.0).why(WHY_PAGES),
            figure(Fresh, CDM, 283_000.0).with(UNITS),
            figure(Steady, PM983, 50_000.0).why(WHY_PAGES),
            figure(Steady, PM983, 50_000.0).with(UNITS).why(WHY_SUCCESSOR),
        ]],
    },
];

impl Drive {
    fn figures(&self) -> impl Iterator<Item = &'static Figure> {
        self.figures.iter().copied().flatten()
    }

    fn point(&self, figure: &Figure) -> Point {
        Point { preset: self.preset, changed: figure.changed, load: figure.load }
    }
}

/// Runs by what distinguishes them, each done once.
struct Measure {
    points: Vec<Point>,
    runs: Vec<Arc<Run>>,
}

impl Measure {
    fn new(scale: &Scale, context: &Context<'_>) -> Result<Self> {
        let mut points: Vec<Point> =
            DRIVES_OF.iter().flat_map(|drive| drive.figures().map(|figure| drive.point(figure))).collect();
        points.push(Point { preset: PRO, changed: None, load: Steady });
        points.sort_unstable();
        points.dedup();
        let runs = context.drives.all(&points, |point| point.run(scale, context))?;
        Ok(Self { points, runs })
    }

    fn get(
        &self,
        preset: &'static str,
        changed: Option<(&'static str, &'static str)>,
        load: Load,
    ) -> Measured {
        let point = Point { preset, changed, load };
        let at = self.points.binary_search(&point).expect("a row's run was done");
        Measured::new(&point, &self.runs[at])
    }
}

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    let measure = Measure::new(&context.scale(FULL, SMALL), context)?;
    for drive in &DRIVES_OF {
        for figure in drive.figures() {
            published(out, drive, figure, &measure);
        }
    }
    rules(out, &measure);
    Ok(())
}

fn published(out: &mut Table, drive: &Drive, figure: &Figure, measure: &Measure) {
    let seen = measure.get(drive.preset, figure.changed, figure.load);
    let changed = figure.changed.map_or_else(String::new, |(key, value)| format!(", {key}={value}"));
    let from = if figure.source == WRITES || figure.load != Steady { "" } else { " of the sheet" };
    let (what, unit, value) = if figure.is_p99 {
        ("p99 of steady random writes", "ms", seen.p99_ms)
    } else {
        (figure.load.name(), figure.load.unit(), seen.figure(figure.load))
    };
    let row = out.row(figure.source, format!("{}, {what}{from}{changed}", drive.name));
    let row = row.number(unit, figure.published, value).kind(figure.kind);
    if figure.load == Steady && !figure.is_p99 {
        let programmed = seen.bytes_per_s * seen.waf;
        let most = measure.get(drive.preset, None, SequentialWrites).bytes_per_s;
        let why = if figure.why.is_empty() { "" } else { "; " };
        row.note(format!(
            "write amplification {:.2}, {:.2} GB/s programmed, {:.0} % of what sequential writes do{why}{}",
            seen.waf,
            programmed / 1e9,
            100.0 * programmed / most,
            figure.why
        ));
    } else {
        row.note(figure.why);
    }
}

/// Orderings that every drive keeps.
fn rules(out: &mut Table, measure: &Measure) {
    let [much, little] = [MAX, PRO].map(|preset| measure.get(preset, None, Steady));
    let found = format!("{:.0} against {:.0} writes/s", much.iops, little.iops);
    out.row("", MORE_SPARE).says("at least twice as many", much.iops >= 2.0 * little.iops).found(found);
    let found = format!("{:.1} against {:.1} ms", much.p99_ms, little.p99_ms);
    out.row("", SHORTER_TAIL).says("at most half", much.p99_ms <= 0.5 * little.p99_ms).found(found);

    let [own_much, own_little] =
        [(MAX, MAX_SPACE), (PRO, PRO_SPACE)].map(|(preset, space)| measure.get(preset, space, Steady));
    out.row(WRITES, "steady random writes, 7450 MAX over 7450 PRO, each with its own over-provisioning")
        .number("", 160_000.0 / 94_200.0, own_much.iops / own_little.iops)
        .note("the model loses more of its dies' time where it copies more");

    let fresh = measure.get(MAX, None, Fresh);
    let sequential = measure.get(MAX, None, SequentialWrites);
    let share = fresh.bytes_per_s / sequential.bytes_per_s;
    let found = format!("{share:.3} of {:.0} MB/s", sequential.bytes_per_s / 1e6);
    out.row(WRITES, FRESH_RATE).says("within a tenth, in bytes", (0.9..=1.1).contains(&share)).found(found);
    let found = format!("{:.0} against {:.0} writes/s", much.iops, fresh.iops);
    out.row(WRITES, "a cliff from fresh to steady random writes")
        .says("steady writes below half of fresh ones", much.iops < 0.5 * fresh.iops)
        .found(found);
}
