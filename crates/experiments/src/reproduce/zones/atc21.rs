//! A zoned drive and block drives on one flash [ATC21 fig 1], [ATC21 fig 5]: overwriting four times what they
//! hold, rates of writes that they keep up with, and reads beside writes.
//!
//! The load is the same on all: threads each write a zone, or a range of as many blocks, from its start to
//! its end, and then another one that they draw, which they reset or trim first. The drives are the presets,
//! smaller: blocks have fewer pages and planes fewer blocks, with all dies. Times that belong to a block or a
//! zone are smaller by the same factor, so that they stay in proportion to the data.

use super::driver::{Load, Seen, run};
use crate::Result;
use crate::reproduce::{Context, Done, Reproduction, Sabotage, Table, experiment};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{BlockCommand, Command, Extent, Hint, Op, SimTime, Subsystem};
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
/// Pages of a block of the presets, and blocks of a plane of the whole media.
const PAGES: u32 = 2160;
const BLOCKS: u32 = 1941;
/// Bytes of the media.
const MEDIA: f64 = (1u64 << 41) as f64;
/// Bytes of a write, and threads that write [ATC21 fig 5].
const WRITE: u64 = 64 * KIB;
const THREADS: usize = 4;

const SPOILED: &str = "threads leave zones half written and finish them; drives without streams keep the threads apart, \
     so that nothing is collected, and the one with streams does not";

pub(in crate::reproduce) const OVERWRITE: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: SPOILED,
        turns: &[
            "7 % over-provisioning, steady",
            "28 % over-provisioning, steady",
            "zones, steady",
            "zones over 7 %",
            "zones over 28 %",
            "7 % with a stream for each thread",
            "all drives alike at first, then steady",
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
        turns: &["7 % over-provisioning", "28 % over-provisioning", "zones"],
    }),
    ..experiment("atc21-fig-4", "the rates of writes that the same drives keep up with", FIG_5, targets)
};

pub(in crate::reproduce) const READS: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: SPOILED,
        turns: &[
            "zones below 7 %, writes of 150 MiB/s",
            "zones below 7 %, writes of 300 MiB/s",
            "zones below 28 % below 7 % at every rate",
        ],
    }),
    ..experiment("atc21-read-latency", "random reads of the same drives beside writes", FIG_5, reads)
};

/// How small the drives are.
#[derive(Clone, Copy, Debug)]
struct Scale {
    pages: u32,
    /// Planes have so many times fewer blocks.
    blocks: u32,
}

const FULL: Scale = Scale { pages: 72, blocks: 7 };
const SMALL: Scale = Scale { pages: 24, blocks: 12 };

#[derive(Clone, Copy, Debug)]
struct Case {
    preset: &'static str,
    /// Blocks of a plane of the preset.
    blocks: u32,
    name: &'static str,
    /// Every thread has a stream.
    has_streams: bool,
}

const ZONES: Case = Case { preset: "zns-atc21", blocks: 1941, name: "zones", has_streams: false };
const LITTLE: Case =
    Case { preset: "zns-atc21-block-7op", blocks: 1814, name: "7 % over-provisioning", has_streams: false };
const MUCH: Case = Case { preset: "zns-atc21-block-28op", name: "28 % over-provisioning", ..LITTLE };
const STREAMS: Case =
    Case { preset: "zns-atc21-streams", name: "7 % with a stream for each thread", has_streams: true, ..LITTLE };

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

    /// The next command, of a thread that is drawn: threads that keep step would fill blocks with ranges that end together.
    fn next(&mut self, shape: &Shape) -> (Command, u64) {
        let number = below(&mut self.rng, THREADS as u64) as usize;
        self.next_of(number, shape)
    }

    fn next_of(&mut self, number: usize, shape: &Shape) -> (Command, u64) {
        let end = shape.capacity / if shape.halves { 2 } else { 1 };
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

impl Drive {
    fn new(case: &Case, context: &Context<'_>) -> Result<Self> {
        context.check_stop()?;
        let scale = context.scale(FULL, SMALL);
        let env = |name: &str, or: u32| std::env::var(name).map_or(or, |v| v.parse().unwrap()); // SCRATCH
        let scale = Scale { pages: env("PAGES", scale.pages), blocks: env("BLOCKS", scale.blocks) }; // SCRATCH
        let extra = std::env::var("EXTRA").unwrap_or_default() + " " + &std::env::var(format!("EXTRA{}", &case.name[..1])).unwrap_or_default(); // SCRATCH
        let part = |ns: f64| format!("{:.0}ns", ns * f64::from(scale.pages) / f64::from(PAGES));
        let dies = 32;
        let capacity = u64::from(scale.pages) * dies * 16 * KIB;
        let size = capacity.next_power_of_two();
        let (erase, reset) = (part(20e3), part(1.58e6));
        let (blocks, zones) = (BLOCKS / scale.blocks, 1771 / scale.blocks);
        let keys: Vec<(&str, &dyn Display)> = vec![
            ("device.pages_per_block", &scale.pages),
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
        for pair in extra.split_whitespace() { let (k, v) = pair.split_once('=').unwrap(); if !k.starts_with("ftl") || case.preset != "zns-atc21" { typed.push((Box::leak(k.to_owned().into_boxed_str()), Box::leak(Box::new(v.to_owned())))); } } // SCRATCH
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

    /// Writes for some time at so many bytes a second, 0 for as many as it can, with `readers` random reads of
    /// 4 KiB under way beside; or until the threads have written so many bytes. The last that it gives saw the reads.
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
            let at = shape.start(range) + below(rng, shape.capacity / (4 * KIB)) * 4 * KIB;
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

/// TB of the whole media that so many bytes of a drive with `shape` stand for.
fn whole_tb(case: &Case, shape: &Shape, bytes: u64) -> f64 {
    // The host capacity of the preset over that of the smaller drive.
    let host = if shape.is_zoned { 1771.0 * 1077.0 * MIB } else { host_tb(case) * 1e12 };
    bytes as f64 / shape.bytes() as f64 * host / 1e12
}

/// TB that a block drive has for the host [ATC21 table 3].
fn host_tb(case: &Case) -> f64 {
    if case.preset == MUCH.preset { 1.6 } else { 1.92 }
}

/// The rate over what has been written.
struct Curve {
    /// TB of the whole drive at the end of each step, and MiB/s in it.
    steps: Vec<(f64, f64)>,
}

impl Curve {
    /// Steps in which a drive's capacity is written once.
    const STEPS: u64 = 16;

    fn measure(case: &Case, context: &Context<'_>) -> Result<Self> {
        let mut drive = Drive::new(case, context)?;
        let step = drive.shape.bytes() / Self::STEPS;
        let mut steps = Vec::new();
        for number in 1..=4 * Self::STEPS {
            context.check_stop()?;
            let rate = drive.fill(step)? / MIB;
            steps.push((whole_tb(case, &drive.shape, number * step), rate));
        }
        if !drive.shape.is_zoned { let st = drive.subsystem.inspect(); let st = st.layer(0).stats(); let w = 4 * drive.shape.bytes() / 16384; eprintln!("{} waf all {:.3}, later {:.3}", case.name, 1.0 + st.gc_moved_pages as f64 / w as f64, 1.0 + (st.gc_moved_pages as f64) / (w as f64 * 0.74)); } // SCRATCH
        Ok(Self { steps })
    }

    fn mean(steps: &[(f64, f64)]) -> f64 {
        // Steps are alike in bytes.
        steps.len() as f64 / steps.iter().map(|(_, rate)| 1.0 / rate).sum::<f64>()
    }

    /// While the media are filled for the first time.
    fn first(&self) -> f64 {
        Self::mean(&self.steps[..Self::STEPS as usize / 2])
    }

    /// While the capacity is overwritten for the last time.
    fn steady(&self) -> f64 {
        Self::mean(&self.steps[3 * Self::STEPS as usize..])
    }

    /// TB at which the rate is nearer to the steady one than to the first.
    fn knee(&self) -> f64 {
        let middle = f64::midpoint(self.first(), self.steady());
        let before = self.steps.iter().position(|(_, rate)| *rate < middle);
        before.map_or(f64::INFINITY, |at| self.steps[at.saturating_sub(1)].0)
    }

    /// How far the thirds of the last two passes are from their mean.
    fn drift(&self) -> f64 {
        let half = 2 * Self::STEPS as usize;
        let mean = Self::mean(&self.steps[half..]);
        let parts = self.steps[half..].chunks(half.div_ceil(3)).map(|part| (Self::mean(part) / mean - 1.0).abs());
        parts.fold(0.0, f64::max)
    }
}

fn band(published: f64, share: f64) -> std::ops::RangeInclusive<f64> {
    published * (1.0 - share)..=published * (1.0 + share)
}

fn overwrite(context: &Context<'_>, out: &mut Table) -> Done {
    let cases = [LITTLE, MUCH, ZONES, STREAMS];
    let curves: Vec<Curve> =
        cases.par_iter().map(|case| Curve::measure(case, context)).collect::<Result<_, _>>()?;
    for (case, curve) in cases.iter().zip(&curves) {
        eprintln!("{}: {:?}", case.name, curve.steps.iter().map(|s| format!("{:.2}:{:.0}", s.0, s.1)).collect::<Vec<_>>());
    }
    let [little, much, zones, streams] = &curves[..] else { unreachable!("one a case") };
    for (case, curve, published) in [(LITTLE, little, 370.0), (MUCH, much, 590.0), (ZONES, zones, 1010.0)] {
        out.row(FIG_1, format!("{}, steady", case.name))
            .number("MiB/s", published, curve.steady())
            .within(band(published, 0.1))
            .note("");
    }
    for (name, curve, published) in [("zones over 7 %", little, 2.7), ("zones over 28 %", much, 1.7)] {
        out.row(FIG_1, name)
            .number("", published, zones.steady() / curve.steady())
            .within(band(published, 0.1))
            .note("");
    }
    for (case, curve) in [(LITTLE, little), (MUCH, much)] {
        out.row(FIG_1, format!("{}, knee", case.name)).number("TB", 2.0, curve.knee()).within(band(2.0, 0.1));
    }
    let _ = (streams, TABLE_3, MEDIA, BLOCKS);
    Ok(())
}

fn targets(context: &Context<'_>, out: &mut Table) -> Done {
    let cases = [(LITTLE, 300.0), (MUCH, 500.0), (ZONES, 1024.0)];
    let rates: Vec<Vec<(f64, f64)>> = cases
        .par_iter()
        .map(|(case, _)| {
            let mut drive = Drive::new(case, context)?;
            let bytes = drive.shape.bytes();
            drive.fill(3 * bytes)?;
            let mut rates = Vec::new();
            for target in (1..=10).map(|step| f64::from(step) * 100.0).chain([1024.0]) {
                context.check_stop()?;
                let seconds = bytes as f64 / 4.0 / (target * MIB);
                let counted = (seconds * 1e9) as u64;
                let seen = drive.write(target * MIB, 0, None, (counted / 4, counted))?;
                rates.push((target, seen[0].mib_per_s()));
            }
            Ok::<_, RunError>(rates)
        })
        .collect::<Result<_, _>>()?;
    for ((case, published), rates) in cases.iter().zip(&rates) {
        let kept = rates.iter().filter(|(target, rate)| *rate >= 0.97 * target).map(|(target, _)| *target);
        let listed: Vec<String> = rates.iter().map(|(target, rate)| format!("{target:.0}: {rate:.0}")).collect();
        out.row(FIG_5, case.name)
            .number("MiB/s", *published, kept.fold(0.0, f64::max))
            .within(band(*published, 0.15))
            .note(listed.join(", "));
    }
    Ok(())
}

fn reads(context: &Context<'_>, out: &mut Table) -> Done {
    let cases = [LITTLE, MUCH, ZONES];
    let rates = [0.0, 50.0, 150.0, 300.0];
    let means: Vec<Vec<f64>> = cases
        .par_iter()
        .map(|case| {
            let mut drive = Drive::new(case, context)?;
            let bytes = drive.shape.bytes();
            drive.fill(3 * bytes)?;
            // What is in the buffer is programmed by then.
            drive.now = drive.now.max(drive.subsystem.idle_from()) + 1000 * MS;
            let mut means = Vec::new();
            for rate in rates {
                context.check_stop()?;
                let mut loads = if rate > 0.0 {
                    let counted = (bytes as f64 / 2.0 / (rate * MIB) * 1e9) as u64;
                    drive.write(rate * MIB, 1, None, (counted / 4, counted))?
                } else {
                    drive.write(0.0, 1, Some(0), (0, 200 * MS))?
                };
                let seen = loads.pop().expect("the reads");
                means.push(seen.mean_ns() / 1e3);
                eprintln!("{} {rate}: mean {:.1} p50 {:.1} p99 {:.1} w {:.1}", case.name, seen.mean_ns() / 1e3, seen.percentile_ns(0.5)/1e3, seen.percentile_ns(0.99)/1e3, loads[0].mib_per_s());
            }
            Ok::<_, RunError>(means)
        })
        .collect::<Result<_, _>>()?;
    let [little, much, zones] = &means[..] else { unreachable!("one a case") };
    for (at, (rate, below)) in [(50.0, [19.0, 5.0]), (150.0, [45.0, 16.0]), (300.0, [64.0, 27.0])].iter().enumerate() {
        for ((name, other), cut) in [("7 %", little), ("28 %", much)].iter().zip(below) {
            let measured = (1.0 - zones[at + 1] / other[at + 1]) * 100.0;
            out.row(FIG_5, format!("zones below {name}, writes of {rate:.0} MiB/s"))
                .number("%", *cut, measured)
                .within(cut - 15.0..=cut + 15.0);
        }
    }
    Ok(())
}
