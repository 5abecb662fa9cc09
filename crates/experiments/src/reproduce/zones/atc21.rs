//! A zoned drive and block drives on one flash [ATC21 fig 1], [ATC21 fig 5]: overwriting four times what they
//! hold, rates of writes that they keep up with, and reads beside writes.
//!
//! The load is the same on all: threads each write a zone, or a range of as many blocks, from its start to
//! its end, and then another one that they draw, which they reset or trim first. The drives are the presets,
//! smaller: blocks have fewer pages and planes fewer blocks, with all dies. Times that belong to a block or a
//! zone are smaller by the same factor, so that they stay in proportion to the data.

use super::band;
use super::driver::{Load, Seen, run};
use crate::Result;
use crate::reproduce::{Context, Done, Reproduction, Sabotage, Table, experiment};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{BlockCommand, Command, Extent, Geometry, Hint, Op, SimTime, Subsystem, units};
use nandscape_report::{RowKind, RowSeries};
use nandscape_stack::{RunError, build_subsystem};
use rayon::prelude::*;
use std::cell::RefCell;
use std::fmt::Display;

const FIG_1: &str = "[ATC21 fig 1]";
const FIG_5: &str = "[ATC21 fig 5]";
const TABLE_3: &str = "[ATC21 table 3]";

const KIB: u64 = 1024;
const MIB: f64 = 1_048_576.0;
const MS: u64 = 1_000_000;
/// Pages of a block here, and by how much blocks and zones are fewer.
const SMALL_PAGES: u32 = 72;
const FEWER: u32 = 9;
/// Bytes of a write, and threads that write [ATC21 fig 5].
const WRITE: u64 = 64 * KIB;
const THREADS: usize = 4;

const SPOILED: &str = "threads leave zones half written and finish them; drives without streams keep the threads apart, \
     so that nothing is collected, and the one with streams does not";

pub(in crate::reproduce) const OVERWRITE: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: SPOILED,
        turns: &[
            "zones over 7 %",
            "zones over 28 %",
            "7 % over-provisioning, knee",
            "28 % over-provisioning, knee",
            "all drives alike until the media are full, then steady",
            "7 % with a stream for each thread",
        ],
    }),
    ..experiment(
        "atc21-fig-1",
        "overwriting a drive four times: block drives with 7 % and 28 % over-provisioning, and zones",
        "[ATC21 fig 1], [ATC21 table 3]",
        overwrite,
    )
};

pub(in crate::reproduce) const TARGETS: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: SPOILED,
        turns: &[
            "7 % over-provisioning, highest target",
            "28 % over-provisioning, highest target",
            "zones, highest target",
        ],
    }),
    ..experiment("atc21-fig-4", "the rates of writes that the same drives keep up with", FIG_5, targets)
};

pub(in crate::reproduce) const READS: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: SPOILED,
        turns: &[
            "zones below 7 %, writes of 50 MiB/s",
            "zones below 7 %, writes of 150 MiB/s",
            "zones below 7 %, writes of 300 MiB/s",
            "zones below 28 %, writes of 150 MiB/s",
            "zones below 28 %, writes of 300 MiB/s",
            "reads of zones, of 28 % and of 7 %, in this order at every rate",
        ],
    }),
    ..experiment("atc21-read-latency", "random reads of the same drives beside writes", FIG_5, reads)
};

#[derive(Clone, Copy, Debug)]
struct Case {
    preset: &'static str,
    name: &'static str,
    /// What it has for the host [ATC21 table 3].
    host_tb: f64,
    /// Every thread has a stream.
    has_streams: bool,
}

const ZONES: Case = Case { preset: "zns-atc21", name: "zones", host_tb: 2.0, has_streams: false };
const LITTLE: Case =
    Case { preset: "zns-atc21-block-7op", name: "7 % over-provisioning", host_tb: 1.92, has_streams: false };
const MUCH: Case =
    Case { preset: "zns-atc21-block-28op", name: "28 % over-provisioning", host_tb: 1.6, ..LITTLE };
const STREAMS: Case = Case {
    preset: "zns-atc21-streams",
    name: "7 % with a stream for each thread",
    has_streams: true,
    ..LITTLE
};

const TAKES: &str =
    "calibrated: device.timing.intake_bytes_per_s; the raw measurements of the product have 1146 MiB/s";
const COLLECTS: &str = "calibrated: ftl.gc_low, one value for both block drives";
/// Share of a target that counts as kept.
const KEPT: f64 = 0.97;

/// A thread and what it writes.
#[derive(Clone, Copy, Debug)]
struct Thread {
    range: u32,
    /// Next byte in it; `None` before it is emptied.
    at: Option<u64>,
}

/// Who writes what.
#[derive(Clone, Debug)]
struct Writers {
    threads: [Thread; THREADS],
    /// Ranges that have been written once or are being written for the first time: the first ones.
    begun: u32,
    rng: Xoshiro256PlusPlus,
}

/// A drive on which time goes on from measurement to measurement.
struct Drive {
    subsystem: Box<dyn Subsystem + Send>,
    now: SimTime,
    shape: Shape,
    writers: RefCell<Writers>,
    rng: Xoshiro256PlusPlus,
}

/// Zones, or ranges of blocks as large.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_zoned: bool,
    ranges: u32,
    size: u64,
    capacity: u64,
    hints: bool,
    /// Zones are finished when they are half written.
    halves: bool,
}

impl Shape {
    fn start(&self, range: u32) -> u64 {
        u64::from(range) * self.size
    }

    /// Bytes of a range that a thread writes.
    fn filled(&self) -> u64 {
        self.capacity / if self.halves { 2 } else { 1 }
    }

    fn bytes(&self) -> u64 {
        u64::from(self.ranges) * self.capacity
    }

    fn empty(&self, range: u32) -> Command {
        let start = self.start(range);
        if self.is_zoned {
            Command::Zone(ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(start) })
        } else {
            BlockCommand::new(Op::Trim, Extent::new(start, self.capacity), Hint::default()).into()
        }
    }
}

impl Writers {
    fn new(seed: u64) -> Self {
        let idle = Thread { range: u32::MAX, at: Some(u64::MAX) };
        Self { threads: [idle; THREADS], begun: 0, rng: seeded(seed) }
    }

    fn is_busy(&self, range: u32) -> bool {
        self.threads.iter().any(|thread| thread.range == range)
    }

    /// A range that no thread writes, every one once before any is written again.
    fn draw(&mut self, ranges: u32) -> Thread {
        if self.begun < ranges {
            self.begun += 1;
            return Thread { range: self.begun - 1, at: Some(0) };
        }
        loop {
            let range = below(&mut self.rng, u64::from(ranges)) as u32;
            if !self.is_busy(range) {
                return Thread { range, at: None };
            }
        }
    }

    /// The next command, of a thread that is drawn: threads that keep step would fill blocks with ranges that
    /// end together.
    fn next(&mut self, shape: &Shape) -> (Command, u64) {
        let number = below(&mut self.rng, THREADS as u64) as usize;
        self.next_of(number, shape)
    }

    fn next_of(&mut self, number: usize, shape: &Shape) -> (Command, u64) {
        let end = shape.filled();
        let thread = self.threads[number];
        match thread.at {
            Some(at) if at < end => {
                self.threads[number].at = Some(at + WRITE);
                let hint = Hint(if shape.hints { number as u16 + 1 } else { 0 });
                let extent = Extent::new(shape.start(thread.range) + at, WRITE);
                (BlockCommand::new(Op::Write, extent, hint).into(), WRITE)
            }
            Some(at) if shape.halves && at == end => {
                self.threads[number].at = Some(u64::MAX);
                let zone = Some(shape.start(thread.range));
                (Command::Zone(ZoneCommand::Manage { action: ZoneAction::Finish, zone }), 0)
            }
            Some(_) => {
                self.threads[number] = self.draw(shape.ranges);
                self.next_of(number, shape)
            }
            None => {
                self.threads[number].at = Some(0);
                (shape.empty(thread.range), 0)
            }
        }
    }
}

/// What the zoned preset has, whose flash the others share.
struct Whole {
    geometry: Geometry,
    erase_ns: u64,
    zones: u32,
    reset_ns: u64,
}

impl Whole {
    fn new(context: &Context<'_>) -> Result<Self> {
        let config = context.config(Some(ZONES.preset), &[])?;
        let keys = &config.to_json()["zone"];
        let reset = keys["reset_time"].as_str().and_then(|text| units::parse_time_ns(text).ok());
        Ok(Self {
            geometry: config.geometry,
            erase_ns: config.timing.erase_ns,
            zones: keys["count"].as_u64().expect("the preset has a number of zones") as u32,
            reset_ns: reset.expect("the preset has a time of resets"),
        })
    }
}

impl Drive {
    fn new(case: &Case, context: &Context<'_>) -> Result<Self> {
        context.check_stop()?;
        let whole = Whole::new(context)?;
        let pages = f64::from(whole.geometry.pages_per_block);
        let part = |ns: u64| format!("{:.0}ns", ns as f64 * f64::from(SMALL_PAGES) / pages);
        let capacity = u64::from(SMALL_PAGES * whole.geometry.units()) * u64::from(whole.geometry.page_bytes);
        let size = capacity.next_power_of_two();
        let (erase, reset) = (part(whole.erase_ns), part(whole.reset_ns));
        let (blocks, zones) = (whole.geometry.blocks_per_plane / FEWER, whole.zones / FEWER);
        let keys: Vec<(&str, &dyn Display)> = vec![
            ("device.pages_per_block", &SMALL_PAGES),
            ("device.blocks_per_plane", &blocks),
            ("device.endurance", &"endless"),
            ("device.timing.erase", &erase),
            ("zone.capacity", &capacity),
            ("zone.size", &size),
            ("zone.count", &zones),
            ("zone.reset_time", &reset),
        ];
        // The drives without streams take the place of that with streams.
        let swaps = context.is_sabotaged && case.preset != ZONES.preset;
        let preset = match (swaps, case.has_streams) {
            (true, true) => LITTLE.preset,
            (true, false) => STREAMS.preset,
            (false, _) => case.preset,
        };
        let mut typed = keys;
        if swaps && case.preset == MUCH.preset {
            typed.push(("ftl.op", &"0.28"));
        }
        let subsystem = build_subsystem(&context.config(Some(preset), &typed)?)?;
        let info = subsystem.namespaces()[0].clone();
        let (is_zoned, ranges) = match info.zones {
            Some(zones) => (true, zones.zones),
            None => (false, (info.capacity_bytes / capacity) as u32),
        };
        let shape = Shape {
            is_zoned,
            ranges,
            size: if is_zoned { size } else { capacity },
            capacity,
            hints: case.has_streams != swaps,
            halves: is_zoned && context.is_sabotaged,
        };
        Ok(Self {
            subsystem,
            now: SimTime::ZERO,
            shape,
            writers: RefCell::new(Writers::new(context.seed)),
            rng: seeded(context.seed + 1),
        })
    }

    /// Writes at so many bytes a second, 0 for as many as the drive takes, beside `readers` random reads of 4
    /// KiB under way: in a window of time, or until so many bytes are written. Gives what the writes saw, and
    /// what the reads.
    fn write(
        &mut self,
        bytes_per_s: f64,
        readers: u32,
        bytes: Option<u64>,
        window: (u64, u64),
    ) -> Result<Vec<Seen>> {
        let (shape, writers) = (self.shape, &self.writers);
        let gap_ns = if bytes_per_s > 0.0 { (WRITE as f64 / bytes_per_s * 1e9) as u64 } else { 0 };
        let mut left = bytes.map_or(u64::MAX, |bytes| bytes / WRITE);
        let write = move |_| {
            let (command, len) = (left > 0).then(|| writers.borrow_mut().next(&shape))?;
            left -= u64::from(len > 0);
            Some((command, len))
        };
        let mut loads = vec![Load { depth: THREADS as u32, gap_ns, next: Box::new(write) }];
        let rng = &mut self.rng;
        let read = move |_| {
            let writers = writers.borrow();
            let range = loop {
                let range = below(rng, u64::from(writers.begun)) as u32;
                if !writers.is_busy(range) {
                    break range;
                }
            };
            let at = shape.start(range) + below(rng, shape.filled() / (4 * KIB)) * 4 * KIB;
            Some((BlockCommand::new(Op::Read, Extent::new(at, 4 * KIB), Hint::default()).into(), 4 * KIB))
        };
        loads.push(Load { depth: readers, gap_ns: 0, next: Box::new(read) });
        let (seen, end) = run(&mut *self.subsystem, &mut loads, self.now, window)
            .map_err(|error| RunError::Failed { label: "atc21".to_owned(), message: error.to_string() })?;
        drop(loads);
        self.now = end;
        Ok(seen)
    }

    /// Writes so many bytes as fast as it can; gives the bytes a second.
    fn fill(&mut self, bytes: u64) -> Result<f64> {
        let from = self.now;
        self.write(0.0, 0, Some(bytes), (0, u64::MAX / 4))?;
        Ok(bytes as f64 / self.now.since(from).0.max(1) as f64 * 1e9)
    }
}

/// MiB/s over what was written.
struct Curve {
    /// TB that a drive as large as the preset has written at the end of each step, the seconds of the smaller
    /// one, and MiB/s in the step.
    steps: Vec<(f64, f64, f64)>,
    /// Write amplification while the capacity is overwritten for the last time.
    waf: f64,
}

impl Curve {
    /// Steps in which the capacity is written once. All are alike in bytes.
    const STEPS: u64 = 32;

    fn measure(case: &Case, context: &Context<'_>) -> Result<Self> {
        let mut drive = Drive::new(case, context)?;
        let step = drive.shape.bytes() / Self::STEPS;
        let mut steps = Vec::new();
        let mut moved = [0; 4];
        for (pass, moved) in (0u32..).zip(&mut moved) {
            for number in 1..=Self::STEPS {
                context.check_stop()?;
                let rate = drive.fill(step)? / MIB;
                let written = (f64::from(pass) + number as f64 / Self::STEPS as f64) * case.host_tb;
                steps.push((written, drive.now.0 as f64 / 1e9, rate));
            }
            *moved = drive.subsystem.inspect().layer(0).stats().gc_moved_pages;
        }
        let page = drive.subsystem.namespaces()[0].page_bytes;
        let pages = Self::STEPS * step / u64::from(page);
        Ok(Self { steps, waf: 1.0 + (moved[3] - moved[2]) as f64 / pages as f64 })
    }

    fn mean(steps: &[(f64, f64, f64)]) -> f64 {
        steps.len() as f64 / steps.iter().map(|(_, _, rate)| 1.0 / rate).sum::<f64>()
    }

    /// While most of the capacity is written for the first time; a buffer full goes beyond it.
    fn first(&self) -> f64 {
        Self::mean(&self.steps[1..Self::STEPS as usize])
    }

    /// While the capacity is overwritten for the last time.
    fn steady(&self) -> f64 {
        Self::mean(&self.steps[3 * Self::STEPS as usize..])
    }

    /// TB before the first step that is a tenth slower than the first ones.
    fn knee(&self) -> f64 {
        let slow = self.steps.iter().skip(1).position(|(_, _, rate)| *rate < 0.9 * self.first());
        self.steps[slow.unwrap_or(self.steps.len() - 1)].0
    }

    /// How far the last two passes are from their mean.
    fn drift(&self) -> f64 {
        let of = |pass: u64| {
            Self::mean(&self.steps[(pass * Self::STEPS) as usize..((pass + 1) * Self::STEPS) as usize])
        };
        (of(2) / of(3) - 1.0).abs()
    }

    fn series(self, name: &str) -> RowSeries {
        RowSeries {
            part: "overwriting drives four times".to_owned(),
            chart: "MiB/s written".to_owned(),
            line: name.to_owned(),
            is_bound: false,
            axis: String::new(),
            at: self.steps.iter().map(|(_, seconds, _)| *seconds).collect(),
            values: self.steps.iter().map(|(_, _, rate)| Some(*rate)).collect(),
        }
    }
}

fn overwrite(context: &Context<'_>, out: &mut Table) -> Done {
    let cases = [LITTLE, MUCH, ZONES, STREAMS];
    for case in &cases[..3] {
        let config = context.config(Some(case.preset), &[])?;
        let media = f64::from(config.geometry.pages()) * f64::from(config.geometry.page_bytes);
        let config = config.to_json();
        let number = |table: &str, key: &str| config[table][key].as_f64().unwrap_or(f64::NAN);
        let host = if case.preset == ZONES.preset {
            number("zone", "count") * 1077.0 * MIB
        } else {
            media / (1.0 + number("ftl", "op"))
        };
        out.row(TABLE_3, format!("{}, capacity", case.name))
            .number("TB", case.host_tb, host / 1e12)
            .kind(RowKind::Input)
            .note(format!("of {:.2} TiB of media", media / (1u64 << 40) as f64));
    }
    let curves: Vec<Curve> =
        cases.par_iter().map(|case| Curve::measure(case, context)).collect::<Result<_, _>>()?;
    let [little, much, zones, streams] = &curves[..] else { unreachable!("one a case") };
    let steady =
        [(LITTLE, little, 370.0, COLLECTS), (MUCH, much, 590.0, COLLECTS), (ZONES, zones, 1010.0, TAKES)];
    for (case, curve, published, why) in steady {
        out.row(FIG_1, format!("{}, steady", case.name))
            .number("MiB/s", published, curve.steady())
            .within(band(published, 0.1))
            .kind(RowKind::Calibrated)
            .note(format!("{why}; write amplification {:.2}", curve.waf));
    }
    for (name, curve, published) in [("zones over 7 %", little, 2.7), ("zones over 28 %", much, 1.7)] {
        out.row(FIG_1, name)
            .number("", published, zones.steady() / curve.steady())
            .within(band(published, 0.1))
            .note("");
    }
    for (case, curve) in [(LITTLE, little), (MUCH, much)] {
        out.row(FIG_1, format!("{}, knee", case.name))
            .number("TB", 2.0, curve.knee())
            .within(band(2.0, 0.1))
            .note("2 TiB of media are 2.199 TB");
    }
    let first: Vec<f64> = curves[..3].iter().map(Curve::first).collect();
    let (least, most) = crate::reproduce::extremes(first.iter().copied());
    let drifts = curves[..3].iter().map(Curve::drift);
    let (_, drift) = crate::reproduce::extremes(drifts);
    out.row(FIG_1, "all drives alike until the media are full, then steady")
        .says("within 2 %, and the last two passes within 10 %", least > 0.98 * most && drift < 0.1)
        .found(format!(
            "{least:.0} to {most:.0} MiB/s; the last two passes differ by {:.1} %",
            100.0 * drift
        ));
    out.row("", STREAMS.name)
        .says("ours: as fast as zones, within 5 %", streams.steady() > 0.95 * zones.steady())
        .found(format!("{:.0} MiB/s", streams.steady()));
    for (case, curve) in cases.iter().zip(curves) {
        let steady = curve.steady();
        out.row("", format!("{}, over time", case.name))
            .figure("MiB/s", steady)
            .series(curve.series(case.name));
    }
    Ok(())
}

fn targets(context: &Context<'_>, out: &mut Table) -> Done {
    let cases = [(LITTLE, 300.0), (MUCH, 500.0), (ZONES, 1024.0)];
    let measure = |case: &Case| {
        let mut drive = Drive::new(case, context)?;
        let bytes = drive.shape.bytes();
        drive.fill(3 * bytes)?;
        let mut rates = Vec::new();
        for target in (1..=10).map(|step| f64::from(step) * 100.0).chain([1024.0]) {
            context.check_stop()?;
            let counted = (bytes as f64 / 4.0 / (target * MIB) * 1e9) as u64;
            let seen = drive.write(target * MIB, 0, None, (counted / 4, counted))?;
            rates.push((target, seen[0].mib_per_s()));
        }
        Ok::<_, RunError>(rates)
    };
    let rates: Vec<_> = cases.par_iter().map(|(case, _)| measure(case)).collect::<Result<Vec<_>, _>>()?;
    for ((case, published), rates) in cases.iter().zip(&rates) {
        let kept = rates.iter().filter(|(target, rate)| *rate >= KEPT * target).map(|(target, _)| *target);
        let listed: Vec<String> =
            rates.iter().map(|(target, rate)| format!("{target:.0}: {rate:.0}")).collect();
        let slip =
            if case.preset == LITTLE.preset { "; a sentence of the source calls this drive 0 %" } else { "" };
        out.row(FIG_5, format!("{}, highest target", case.name))
            .number("MiB/s", *published, kept.fold(0.0, f64::max))
            .within(band(*published, 0.15))
            .note(format!("target and rate: {}{slip}", listed.join(", ")));
    }
    Ok(())
}

/// Rates of writes, and the published cuts of the mean of reads, in percent, against 7 % and 28 %.
const CUTS: [(f64, [f64; 2]); 3] = [(50.0, [19.0, 5.0]), (150.0, [45.0, 16.0]), (300.0, [64.0, 27.0])];

fn reads(context: &Context<'_>, out: &mut Table) -> Done {
    let cases = [LITTLE, MUCH, ZONES];
    let measure = |case: &Case| {
        let mut drive = Drive::new(case, context)?;
        let bytes = drive.shape.bytes();
        drive.fill(3 * bytes)?;
        // What is in the buffer is programmed by then.
        drive.now = drive.now.max(drive.subsystem.idle_from()) + 1000 * MS;
        let mean = |seen: Vec<Seen>| seen[1].mean_ns() / 1e3;
        let mut means = vec![mean(drive.write(0.0, 1, Some(0), (0, 200 * MS))?)];
        for (rate, _) in CUTS {
            context.check_stop()?;
            let counted = (bytes as f64 / 2.0 / (rate * MIB) * 1e9) as u64;
            means.push(mean(drive.write(rate * MIB, 1, None, (counted / 4, counted))?));
        }
        Ok::<_, RunError>(means)
    };
    let means: Vec<_> = cases.par_iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    let [little, much, zones] = &means[..] else { unreachable!("one a case") };
    for (case, means) in cases.iter().zip(&means) {
        out.row(FIG_5, format!("{}, idle", case.name)).number("us", 85.0, means[0]).note(
            "the drive alone, which the raw measurements of the product give 72.6 us; the host's software is not modelled",
        );
    }
    let mut in_order = true;
    for ((rate, cuts), at) in CUTS.into_iter().zip(1..) {
        let mut found = Vec::new();
        for ((name, other), cut) in [("7 %", little), ("28 %", much)].into_iter().zip(cuts) {
            let measured = (1.0 - zones[at] / other[at]) * 100.0;
            found.push(measured);
            out.row(FIG_5, format!("zones below {name}, writes of {rate:.0} MiB/s"))
                .number("%", cut, measured)
                .within(cut - 15.0..=cut + 15.0)
                .note(format!("means of {:.1} and {:.1} us", zones[at], other[at]));
        }
        in_order &= found[0] > found[1] && found[1] > 0.0;
    }
    let listed: Vec<String> =
        (1..=CUTS.len()).map(|at| format!("{:.0}, {:.0}, {:.0}", zones[at], much[at], little[at])).collect();
    out.row(FIG_5, "reads of zones, of 28 % and of 7 %, in this order at every rate")
        .says("zones lowest, 7 % highest", in_order)
        .found(format!("{} us", listed.join("; ")));
    Ok(())
}
