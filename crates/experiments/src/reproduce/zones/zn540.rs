//! The raw measurements of a real ZN540 [ZN540-CLUSTER23], [ZN540-SYSTOR24] on the preset `zn540`: zone
//! management, reads, writes and appends alone, and what each does to the other. One set of parameters, that
//! of the preset, for every row; the device has fewer zones, which changes nothing that is measured.

use super::band;
use super::driver::{Load, Seen, run};
use crate::Result;
use crate::reproduce::{Context, Done, Reproduction, Sabotage, Table, experiment};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{BlockCommand, Command, Extent, Hint, NamespaceError, Op, SimTime, Subsystem};
use nandscape_stack::{RunError, StackConfig, build_subsystem};
use std::fmt::Display;

const MANAGEMENT: &str = "[ZN540-CLUSTER23 management]";
const IO: &str = "[ZN540-CLUSTER23 io]";
const BESIDE: &str = "[ZN540-SYSTOR24 interference]";

pub(in crate::reproduce) const ZN540: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "finish and reset do nothing to the flash (zone.finish = state, zone.reset = lazy)",
        turns: &["finish, 1/2 written", "reset, 1/2 written", "write 8 KiB QD4 beside resets"],
    }),
    ..experiment(
        "zn540",
        "a ZN540 zoned drive: finish and reset, reads, writes and appends, and what each does to the other",
        "[ZN540-CLUSTER23], [ZN540-SYSTOR24]",
        rows,
    )
};

/// Zones of the device.
const ZONES: u32 = 40;
const KIB: u64 = 1024;
const MS: u64 = 1_000_000;

/// A drive on which time goes on from measurement to measurement.
struct Drive {
    subsystem: Box<dyn Subsystem + Send>,
    now: SimTime,
    size: u64,
    capacity: u64,
}

fn config(context: &Context<'_>) -> Result<StackConfig> {
    // As many spare blocks as the whole drive has in proportion.
    let blocks = ZONES + 4;
    let mut keys: Vec<(&str, &dyn Display)> =
        vec![("device.blocks_per_plane", &blocks), ("zone.count", &ZONES)];
    if context.is_sabotaged {
        keys.extend([("zone.finish", &"state" as &dyn Display), ("zone.reset", &"lazy")]);
    }
    Ok(context.config(Some("zn540"), &keys)?)
}

fn failed(error: &NamespaceError) -> RunError {
    RunError::Failed { label: "zn540".to_owned(), message: error.to_string() }
}

impl Drive {
    fn new(context: &Context<'_>) -> Result<Self> {
        context.check_stop()?;
        let subsystem = build_subsystem(&config(context)?)?;
        let zones = subsystem.namespaces()[0].zones.expect("a zoned preset");
        Ok(Self { subsystem, now: SimTime::ZERO, size: zones.size, capacity: zones.capacity })
    }

    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * self.size
    }

    /// Runs loads beside each other after a pause, and counts after a while.
    fn run(&mut self, mut loads: Vec<Load<'_>>, window: (u64, u64)) -> Result<Vec<Seen>> {
        let (seen, end) =
            run(&mut *self.subsystem, &mut loads, self.now, window).map_err(|error| failed(&error))?;
        // What is still in the buffer is programmed by then.
        self.now = end.max(self.subsystem.idle_from()) + 100 * MS;
        Ok(seen)
    }

    /// One command by itself; gives its latency.
    fn one(&mut self, command: ZoneCommand) -> Result<f64> {
        let mut command = Some(Command::Zone(command));
        let load = Load { depth: 1, gap_ns: 0, next: Box::new(move |_| command.take().map(|it| (it, 0))) };
        Ok(self.run(vec![load], (0, u64::MAX / 4))?[0].mean_ns())
    }

    fn manage(&mut self, action: ZoneAction, zone: u32) -> Result<f64> {
        let zone = Some(self.start(zone));
        self.one(ZoneCommand::Manage { action, zone })
    }

    /// Writes so many bytes of a zone from its start on.
    fn fill(&mut self, zone: u32, bytes: u64) -> Result<()> {
        let (start, chunk) = (self.start(zone), 256 * KIB);
        let next = move |count: u64| {
            let at = count * chunk;
            let len = chunk.min(bytes.checked_sub(at).filter(|left| *left > 0)?);
            Some((write(start + at, len), len))
        };
        self.run(vec![Load { depth: 16, gap_ns: 0, next: Box::new(next) }], (0, u64::MAX / 4))?;
        Ok(())
    }

    /// Writes of `len` bytes at a depth, zone after zone of a list, which is so long that none is written
    /// twice.
    fn writer(&self, zones: &'static [u32], len: u64, depth: u32, appends: bool) -> Load<'static> {
        let (size, per_zone) = (self.size, self.capacity / len);
        let next = move |count: u64| {
            let zone = *zones.get((count / per_zone) as usize)?;
            let start = u64::from(zone) * size;
            let command = if appends {
                let (hint, is_durable) = (Hint::default(), false);
                Command::Zone(ZoneCommand::Append { zone: start, len, hint, is_durable })
            } else {
                write(start + count % per_zone * len, len)
            };
            Some((command, len))
        };
        Load { depth, gap_ns: 0, next: Box::new(next) }
    }

    /// Writers of zones of their own, each with one write under way, as the source has them. Each begins some
    /// dies further in its zone: writers in step would all wait for one die.
    fn writers(&mut self, count: usize, len: u64) -> Result<Vec<Load<'static>>> {
        const APART: u64 = 4 * 128 * KIB;
        (0..count)
            .map(|number| {
                let ahead = number as u64 * APART;
                self.fill(WRITTEN[number][0], ahead)?;
                let mut load = self.writer(&WRITTEN[number], len, 1, false);
                let mut next = load.next;
                load.next = Box::new(move |written| next(written + ahead / len));
                Ok(load)
            })
            .collect()
    }

    /// Random reads of zones that are full, from the first on.
    fn reader(&self, zones: u64, len: u64, depth: u32, rng: Xoshiro256PlusPlus) -> Load<'static> {
        let (size, places, mut rng) = (self.size, self.capacity / len, rng);
        let next = move |_| {
            let at = below(&mut rng, zones) * size + below(&mut rng, places) * len;
            Some((BlockCommand::new(Op::Read, Extent::new(at, len), Hint::default()).into(), len))
        };
        Load { depth, gap_ns: 0, next: Box::new(next) }
    }

    /// An action on zones in turn, no more often than each `gap_ns`.
    fn actions(&self, action: ZoneAction, zones: Vec<u32>, gap_ns: u64) -> Load<'static> {
        let size = self.size;
        let next = move |count: u64| {
            let zone = Some(u64::from(*zones.get(count as usize)?) * size);
            Some((Command::Zone(ZoneCommand::Manage { action, zone }), 0))
        };
        Load { depth: 1, gap_ns, next: Box::new(next) }
    }
}

fn write(at: u64, len: u64) -> Command {
    BlockCommand::new(Op::Write, Extent::new(at, len), Hint::default()).into()
}

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    management(context, out)?;
    reads_and_writes(context, out)?;
    beside(context, out)
}

/// A share of the capacity that is written, and the published milliseconds of a finish, of a reset, and of a
/// reset after a finish.
type Cell = (&'static str, u64, u64, Option<f64>, Option<f64>, Option<f64>);

const CELLS: [Cell; 7] = [
    ("nothing written", 0, 1, Some(0.0136), Some(1.61), Some(1.58)),
    ("1 LBA written", 1, 275_712, Some(907.4), Some(1.70), Some(1.66)),
    ("1/16 written", 1, 16, Some(848.0), Some(5.16), Some(2.49)),
    ("1/8 written", 1, 8, Some(792.0), Some(6.05), Some(3.34)),
    ("1/4 written", 1, 4, Some(681.0), Some(7.88), Some(5.05)),
    ("1/2 written", 1, 2, Some(457.0), Some(11.3), Some(8.49)),
    ("all but 1 LBA written", 275_711, 275_712, Some(2.57), None, None),
];
const FULL_RESET_MS: f64 = 15.8;
const FULL_RESET_AFTER_FINISH_MS: f64 = 15.36;

fn management(context: &Context<'_>, out: &mut Table) -> Done {
    let mut drive = Drive::new(context)?;
    let ms = |out: &mut Table, name: String, published: Option<f64>, ns: f64| {
        if let Some(published) = published {
            out.row(MANAGEMENT, name).number("ms", published, ns / 1e6).within(band(published, 0.1));
        }
    };
    for (name, part, of, finish, reset, reset_after) in CELLS {
        context.check_stop()?;
        let bytes = drive.capacity / (4 * KIB) * part / of * 4 * KIB;
        drive.manage(ZoneAction::Open, 0)?;
        drive.fill(0, bytes)?;
        if reset.is_some() {
            let took = drive.manage(ZoneAction::Reset, 0)?;
            ms(out, format!("reset, {name}"), reset, took);
            if part > 0 {
                drive.fill(0, bytes)?;
            }
        }
        let took = drive.manage(ZoneAction::Finish, 0)?;
        ms(out, format!("finish, {name}"), finish, took);
        let took = drive.manage(ZoneAction::Reset, 0)?;
        ms(out, format!("reset after finish, {name}"), reset_after, took);
    }
    drive.fill(0, drive.capacity)?;
    let took = drive.manage(ZoneAction::Reset, 0)?;
    ms(out, "reset, all written".to_owned(), Some(FULL_RESET_MS), took);
    drive.fill(0, drive.capacity)?;
    drive.manage(ZoneAction::Finish, 0)?;
    let took = drive.manage(ZoneAction::Reset, 0)?;
    ms(out, "reset after finish, all written".to_owned(), Some(FULL_RESET_AFTER_FINISH_MS), took);
    drive.manage(ZoneAction::Open, 1)?;
    drive.fill(1, 4 * KIB)?;
    let took = drive.manage(ZoneAction::Close, 1)?;
    out.row(MANAGEMENT, "close").number("us", 11.0, took / 1e3).within(band(11.0, 0.1));
    Ok(())
}

/// Zones for writers, none in two lists.
static WRITTEN: [[u32; 2]; 14] = [
    [10, 11],
    [12, 13],
    [14, 15],
    [16, 17],
    [18, 19],
    [20, 21],
    [22, 23],
    [24, 25],
    [26, 27],
    [28, 29],
    [30, 31],
    [32, 33],
    [34, 35],
    [36, 37],
];

fn reads_and_writes(context: &Context<'_>, out: &mut Table) -> Done {
    // Depth by depth on a new drive, as the source resets all zones before each.
    let writes = |zones: usize, len: u64, depth: u32, appends: bool| {
        let mut drive = Drive::new(context)?;
        let loads = WRITTEN[..zones].iter().map(|list| drive.writer(list, len, depth, appends)).collect();
        let seen = drive.run(loads, (300 * MS, 400 * MS))?;
        let (count, bytes) = seen
            .iter()
            .fold((0.0, 0.0), |(count, bytes), one| (count + one.per_s(), bytes + one.mib_per_s()));
        Ok::<_, RunError>((count, bytes, seen[0].mean_ns()))
    };
    let us = |out: &mut Table, name: &str, published: f64, ns: f64| {
        out.row(IO, name).number("us", published, ns / 1e3).within(band(published, 0.1));
    };
    us(out, "write 4 KiB QD1, mean", 11.4, writes(1, 4 * KIB, 1, false)?.2);
    us(out, "append 4 KiB QD1, mean", 14.8, writes(1, 4 * KIB, 1, true)?.2);
    for (zones, published) in [(2, 141.6), (4, 180.1), (8, 185.9), (14, 182.4)] {
        let name = format!("write 4 KiB, {zones} zones QD1");
        let kiops = writes(zones, 4 * KIB, 1, false)?.0 / 1e3;
        out.row(IO, name).number("kIOPS", published, kiops).within(band(published, 0.1));
    }
    for (depth, published, share) in [(2, 111.7, 0.1), (4, 132.2, 0.1), (16, 132.0, 0.15)] {
        let name = format!("append 4 KiB QD{depth}");
        let kiops = writes(1, 4 * KIB, depth, true)?.0 / 1e3;
        out.row(IO, name).number("kIOPS", published, kiops).within(band(published, share));
    }
    for (zones, published) in [(2, 143.0), (4, 131.0), (14, 133.0)] {
        let name = format!("append 4 KiB QD4, {zones} zones");
        let kiops = writes(zones, 4 * KIB, 4, true)?.0 / 1e3;
        out.row(IO, name).number("kIOPS", published, kiops).within(band(published, 0.15));
    }
    for (kib, published, share) in
        [(8, 667.0, 0.1), (16, 928.0, 0.1), (32, 1145.0, 0.15), (128, 1146.0, 0.15)]
    {
        let name = format!("write {kib} KiB QD1");
        let mib = writes(1, kib * KIB, 1, false)?.1;
        out.row(IO, name).number("MiB/s", published, mib).within(band(published, share));
    }
    let mib = writes(2, 8 * KIB, 1, false)?.1;
    out.row(IO, "write limit, 8 KiB to 2 zones")
        .number("MiB/s", 1146.0, mib)
        .within(band(1146.0, 0.15))
        .note("ATC'21 reports 1010 MiB/s for the same product");
    reads(context, out)
}

fn reads(context: &Context<'_>, out: &mut Table) -> Done {
    let mut drive = Drive::new(context)?;
    (0..4).try_for_each(|zone| drive.fill(zone, drive.capacity))?;
    let mut measure = |kib: u64, depth: u32| {
        let load = drive.reader(4, kib * KIB, depth, seeded(context.seed));
        let seen = drive.run(vec![load], (10 * MS, 150 * MS))?;
        Ok::<_, RunError>(seen[0].clone())
    };
    let published = [
        (1, 72.6),
        (2, 73.7),
        (4, 76.0),
        (8, 80.8),
        (16, 91.5),
        (32, 116.0),
        (64, 175.0),
        (128, 301.0),
        (256, 585.0),
    ];
    for (depth, us) in published {
        let seen = measure(4, depth)?;
        let name = format!("random read 4 KiB QD{depth}, mean");
        out.row(IO, name).number("us", us, seen.mean_ns() / 1e3).within(band(us, 0.1));
    }
    for (kib, us) in [(8, 84.1), (16, 101.6)] {
        let seen = measure(kib, 1)?;
        let name = format!("random read {kib} KiB QD1, mean");
        out.row(IO, name).number("us", us, seen.mean_ns() / 1e3).within(band(us, 0.1));
    }
    for (kib, mib) in [(8, 2304.0), (16, 2506.0)] {
        let seen = measure(kib, 128)?;
        let name = format!("random read {kib} KiB QD128");
        out.row(IO, name).number("MiB/s", mib, seen.mib_per_s()).within(band(mib, 0.15));
    }
    Ok(())
}

/// What several loads saw together.
fn together(seen: &[Seen]) -> Seen {
    Seen {
        latencies_ns: seen.iter().flat_map(|one| &one.latencies_ns).copied().collect(),
        bytes: seen.iter().map(|one| one.bytes).sum(),
        seconds: seen.iter().map(|one| one.seconds).fold(0.0, f64::max),
    }
}

/// A drive with full zones 0 to 9, and zones with a page written from 38 down.
fn prepared(context: &Context<'_>, written: std::ops::Range<u32>) -> Result<Drive> {
    let mut drive = Drive::new(context)?;
    (0..10).try_for_each(|zone| drive.fill(zone, drive.capacity))?;
    for zone in written {
        drive.fill(zone, 4 * KIB)?;
    }
    Ok(drive)
}

/// A row of the interference tables.
fn row(out: &mut Table, name: &str, unit: &str, published: f64, measured: f64) {
    let row = out.row(BESIDE, name).number(unit, published, measured).within(band(published, 0.3));
    let why = MISFITS.iter().find(|(of, _)| *of == name).map_or("", |(_, why)| why);
    row.note(why);
}

const STEADIER: &str = "the writes of the model are steadier than those of the drive, alone too";

/// Why rows lie outside of their bands.
const MISFITS: [(&str, &str); 4] = [
    ("write 8 KiB QD4 beside finishes, p95", STEADIER),
    ("write 8 KiB QD7 beside finishes, p95", STEADIER),
    (
        "append 8 KiB QD4 beside finishes",
        "the drive gives turns to zones, of which four appends have one (590 MiB/s); the model gives them to commands",
    ),
    (
        "random read 8 KiB QD1 beside finishes, p95",
        "295 us while the model finishes, which is half of the time: the p95 of all reads is lower",
    ),
];

fn beside(context: &Context<'_>, out: &mut Table) -> Done {
    const SECONDS: (u64, u64) = (100 * MS, 400 * MS);
    /// Half of the 1.1 finishes and of the 60 resets a second that a drive does without anything beside.
    const HALF_FINISHES_NS: u64 = 1814 * MS;
    const HALF_RESETS_NS: u64 = 33 * MS;
    let resets: Vec<u32> = (0..10).collect();
    // Writes and resets.
    let mut drive = prepared(context, 0..0)?;
    let loads = vec![
        drive.writer(&WRITTEN[0], 8 * KIB, 4, false),
        drive.actions(ZoneAction::Reset, resets.clone(), 0),
    ];
    let seen = drive.run(loads, (20 * MS, 150 * MS))?;
    row(out, "write 8 KiB QD4 beside resets", "MiB/s", 592.0, seen[0].mib_per_s());
    row(out, "write 8 KiB QD4 beside resets, p99.9", "ms", 12.6, seen[0].percentile_ns(0.999) / 1e6);
    row(out, "reset beside writes of 8 KiB QD4", "ms", 22.0, seen[1].mean_ns() / 1e6);
    let mut drive = prepared(context, 0..0)?;
    let loads = vec![
        drive.writer(&WRITTEN[0], 4 * KIB, 1, false),
        drive.actions(ZoneAction::Reset, resets.clone(), 0),
    ];
    let seen = drive.run(loads, (20 * MS, 150 * MS))?;
    row(out, "reset beside writes QD1", "ms", 20.6, seen[1].mean_ns() / 1e6);
    // Writes and finishes.
    for (depth, published, before, after) in [(4, 950.0, 61.0, 77.0), (7, 1024.0, 102.0, 127.0)] {
        let mut drive = prepared(context, 38..40)?;
        let mut loads = drive.writers(depth, 8 * KIB)?;
        loads.push(drive.actions(ZoneAction::Finish, vec![38, 39], HALF_FINISHES_NS));
        let seen = together(&drive.run(loads, SECONDS)?[..depth]);
        let name = format!("write 8 KiB QD{depth} beside finishes");
        row(out, &name, "MiB/s", published, seen.mib_per_s());
        let mut drive = prepared(context, 0..0)?;
        let alone = drive.writers(depth, 8 * KIB)?;
        let alone = together(&drive.run(alone, SECONDS)?).percentile_ns(0.95);
        let beside = seen.percentile_ns(0.95);
        row(out, &format!("{name}, p95"), "us", after, beside / 1e3);
        out.row(BESIDE, format!("{name} raises p95"))
            .says(&format!("{before} to {after} us"), beside > alone)
            .found(format!("{:.0} to {:.0} us", alone / 1e3, beside / 1e3));
    }
    for (depth, published) in [(1, 0.6), (7, 0.14)] {
        let mut drive = prepared(context, 38..40)?;
        let mut loads = drive.writers(depth, 8 * KIB)?;
        loads.push(drive.actions(ZoneAction::Finish, vec![38], 0));
        let seen = drive.run(loads, (0, 20_000 * MS))?;
        let name = format!("finishes beside writes of 8 KiB QD{depth}");
        row(out, &name, "1/s", published, 1e9 / seen[depth].mean_ns());
    }
    let mut drive = prepared(context, 38..40)?;
    let loads = vec![
        drive.writer(&WRITTEN[0], 8 * KIB, 4, true),
        drive.actions(ZoneAction::Finish, vec![38, 39], HALF_FINISHES_NS),
    ];
    let seen = drive.run(loads, SECONDS)?;
    row(out, "append 8 KiB QD4 beside finishes", "MiB/s", 603.0, seen[0].mib_per_s());
    reads_beside(context, out, HALF_FINISHES_NS, HALF_RESETS_NS)
}

fn reads_beside(context: &Context<'_>, out: &mut Table, finishes_ns: u64, resets_ns: u64) -> Done {
    let measure = |kib: u64, depth: u32, action: ZoneAction| {
        let mut drive = prepared(context, 38..40)?;
        let rng = seeded(context.seed);
        let beside = if action == ZoneAction::Finish {
            drive.actions(action, vec![38, 39], finishes_ns)
        } else {
            drive.actions(action, (4..10).collect(), resets_ns)
        };
        // From a finish to the next, or among resets.
        let window = if action == ZoneAction::Finish { (0, finishes_ns) } else { (20 * MS, 180 * MS) };
        let seen = drive.run(vec![drive.reader(4, kib * KIB, depth, rng), beside], window)?;
        Ok::<_, RunError>(seen)
    };
    let seen = measure(8, 1, ZoneAction::Finish)?;
    row(out, "random read 8 KiB QD1 beside finishes, mean", "us", 127.8, seen[0].mean_ns() / 1e3);
    row(out, "random read 8 KiB QD1 beside finishes, p95", "us", 272.0, seen[0].percentile_ns(0.95) / 1e3);
    let seen = measure(8, 128, ZoneAction::Finish)?;
    row(out, "random read 8 KiB QD128 beside finishes", "kIOPS", 169.0, seen[0].per_s() / 1e3);
    let seen = measure(4, 1, ZoneAction::Reset)?;
    row(out, "random read 4 KiB QD1 beside resets, mean", "us", 78.0, seen[0].mean_ns() / 1e3);
    row(out, "random read 4 KiB QD1 beside resets, p99", "us", 169.0, seen[0].percentile_ns(0.99) / 1e3);
    row(out, "reset beside reads QD1", "ms", 15.3, seen[1].mean_ns() / 1e6);
    let seen = measure(4, 128, ZoneAction::Reset)?;
    row(out, "random read 4 KiB QD128 beside resets", "kIOPS", 321.0, seen[0].per_s() / 1e3);
    Ok(())
}
