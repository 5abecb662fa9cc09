//! Zones over flash: random commands against a plain list of blocks, with restarts in between, on devices
//! that keep bytes; failing blocks; and what each command costs in flash operations.

use super::LAYOUT;
use crate::TIMING;
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneError, ZoneState};
use nandscape_core::{
    BlockCommand, Capabilities, Cause, Command, Extent, FlashLayer, FtlError, Geometry, Hint, NamespaceError,
    Oob, Op, Reply, SimTime, Subsystem, ZoneReports,
};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::zones::{
    CommandTimes, FlashRules, ImpliedOob, RandomAreas, ZoneLayout, ZoneSetup, ZoneStripes, ZonedNamespace,
};
use nandscape_testkit::crash::{Buffer, CrashDevice, Handle};

/// Four dies of 18 blocks of 6 pages; a page is four logical blocks.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 18,
    pages_per_block: 6,
    page_bytes: 2048,
    sector_bytes: 512,
    oob_bytes: 64,
};

/// Zones of two dies and two blocks in each: 24 pages, of which 22 can be written.
pub(super) fn setup() -> ZoneSetup {
    ZoneSetup {
        name: "zns".to_owned(),
        layout: ZoneLayout {
            zones: 0,
            conventional: 0,
            size: 128,
            capacity: 88,
            block_bytes: 512,
            max_active: Some(4),
            max_open: Some(3),
            random: None,
            ..LAYOUT
        },
        stripes: ZoneStripes { dies: 2, blocks_per_die: 2, stripe_pages: 2 },
        rules: FlashRules { erases_at_reset: true, completes_stripe: false, pads: true, is_volatile: true },
        conventional_blocks: 0,
        spare_blocks: 4,
        times: CommandTimes::default(),
    }
}

fn setups() -> Vec<ZoneSetup> {
    let random = Some(RandomAreas { size: 16, granularity: 8, count: Some(2) });
    let mut lazy = setup();
    lazy.rules =
        FlashRules { erases_at_reset: false, completes_stripe: true, pads: false, is_volatile: true };
    lazy.stripes = ZoneStripes { dies: 4, blocks_per_die: 1, stripe_pages: 1 };
    let mut one = setup();
    one.stripes = ZoneStripes { dies: 1, blocks_per_die: 4, stripe_pages: 6 };
    one.layout =
        ZoneLayout { max_open: Some(1), max_active: Some(2), capacity: 96, random: None, ..one.layout };
    let with_areas = |setup: ZoneSetup| ZoneSetup { layout: ZoneLayout { random, ..setup.layout }, ..setup };
    vec![with_areas(setup()), with_areas(lazy), one]
}

fn nand() -> Nand {
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    Nand::new(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap()
}

type Zoned = ZonedNamespace<CrashDevice, Oob>;

fn open(nand: Nand, setup: &ZoneSetup, plan: &FaultPlan) -> (Zoned, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    (ZonedNamespace::new(device, setup).unwrap(), handle)
}

fn submit(
    zoned: &mut Zoned,
    command: impl Into<Command>,
    payload: Payload<'_>,
) -> Result<Reply, NamespaceError> {
    zoned.submit(0, command.into(), payload, SimTime::ZERO).map(|answer| answer.reply)
}

/// What the host knows of the blocks of each zone.
struct Bytes {
    blocks: Vec<Vec<Option<u8>>>,
}

impl Bytes {
    fn check(&self, zoned: &mut Zoned, context: &str) {
        for (number, zone) in self.blocks.iter().enumerate() {
            if zoned.zone(0, number as u32).state == ZoneState::Offline {
                continue;
            }
            let mut data = vec![0xa5; zone.len() * 512];
            let extent = Extent::new(number as u64 * 128 * 512, data.len() as u64);
            let read = BlockCommand::new(Op::Read, extent, Hint::default());
            submit(zoned, Command::from(read), Payload::Read(&mut data)).unwrap();
            for (block, (found, expected)) in data.chunks(512).zip(zone).enumerate() {
                let expected = expected.unwrap_or(0);
                assert!(
                    found.iter().all(|byte| *byte == expected),
                    "block {block} of zone {number} is {}, expected {expected}: {context}",
                    found[0]
                );
            }
        }
    }
}

fn zone_command(rng: &mut impl Rng, start: u64) -> ZoneCommand {
    let action = ZoneAction::ALL[below(rng, 5) as usize];
    let zone = (below(rng, 60) > 0).then_some(start);
    ZoneCommand::Manage { action, zone }
}

#[test]
fn what_was_written_is_read_whatever_happened_to_the_zones_and_to_the_power() {
    for (seed, setup) in (1..).zip(setups()) {
        let mut rng = seeded(seed);
        let (mut zoned, mut handle) = open(nand(), &setup, &FaultPlan::default());
        let zones = zoned.table().layout().zones;
        let capacity = setup.layout.capacity;
        let mut bytes = Bytes { blocks: vec![vec![None; capacity as usize]; zones as usize] };
        let mut last = 0u8;
        for step in 0..4_000 {
            let zone = below(&mut rng, u64::from(zones)) as u32;
            let start = u64::from(zone) * 128;
            let written = zoned.table().written(zone);
            let context = format!("seed {seed}, step {step}, zone {zone} with {written}");
            match below(&mut rng, 100) {
                0..70 => {
                    let count = 1 + below(&mut rng, 20);
                    let ahead = if zoned.table().is_random(zone) { below(&mut rng, 16) } else { 0 };
                    last = last % 250 + 1;
                    let data = vec![last; count as usize * 512];
                    let from = written + ahead;
                    let extent = Extent::new((start + from) * 512, data.len() as u64);
                    let mut command = BlockCommand::new(Op::Write, extent, Hint::default());
                    command.is_durable = below(&mut rng, 10) == 0;
                    if submit(&mut zoned, Command::from(command), Payload::Write(&data)).is_ok() {
                        bytes.blocks[zone as usize][from as usize..(from + count) as usize].fill(Some(last));
                    }
                }
                70..76 => {
                    let count = 1 + below(&mut rng, 20);
                    last = last % 250 + 1;
                    let data = vec![last; count as usize * 512];
                    let (len, hint, is_durable) = (data.len() as u64, Hint::default(), false);
                    let append = ZoneCommand::Append { zone: start * 512, len, hint, is_durable };
                    if let Ok(reply) = submit(&mut zoned, Command::Zone(append), Payload::Write(&data)) {
                        assert_eq!(reply, Reply::Appended((start + written) * 512), "{context}");
                        bytes.blocks[zone as usize][written as usize..(written + count) as usize]
                            .fill(Some(last));
                    }
                }
                76..90 => {
                    let before: Vec<_> = (0..zones).map(|zone| zoned.table().state(zone)).collect();
                    let command = zone_command(&mut rng, start * 512);
                    let is_reset = matches!(command, ZoneCommand::Manage { action: ZoneAction::Reset, .. });
                    if submit(&mut zoned, Command::Zone(command), Payload::None).is_ok() && is_reset {
                        for (zone, before) in (0..zones).zip(before) {
                            if before != ZoneState::Empty && zoned.table().state(zone) == ZoneState::Empty {
                                bytes.blocks[zone as usize].fill(None);
                            }
                        }
                    }
                }
                90..93 => {
                    let last = (start + written + below(&mut rng, 16)) * 512;
                    let _ =
                        submit(&mut zoned, Command::Zone(ZoneCommand::FlushRandom { last }), Payload::None);
                }
                93..95 => {
                    let describe = ZoneCommand::Describe { zone: start * 512 };
                    let _ = submit(&mut zoned, Command::Zone(describe), Payload::Write(&[seed as u8; 40]));
                }
                95..97 => drop(submit(&mut zoned, Command::FLUSH, Payload::None).unwrap()),
                _ => {
                    let shown = |zoned: &Zoned| -> Vec<_> { (0..zones).map(|z| zoned.zone(0, z)).collect() };
                    let before = shown(&zoned);
                    zoned.shutdown(SimTime::ZERO).unwrap();
                    (zoned, handle) = open(handle.nand(), &setup, &FaultPlan::default());
                    for (before, after) in before.iter().zip(shown(&zoned)) {
                        assert_eq!(before.extension, after.extension, "{context}");
                        if before.write_pointer.is_none() {
                            assert_eq!(before.state, after.state, "{context}");
                        }
                        if before.attributes.0 & 8 == 0 {
                            assert_eq!(before.write_pointer, after.write_pointer, "{context}");
                        }
                        assert!(!after.state.is_open(), "{context}");
                    }
                    bytes.check(&mut zoned, &context);
                }
            }
            zoned.table().check_invariants();
            if step % 50 == 0 {
                Subsystem::check_invariants(&zoned);
                bytes.check(&mut zoned, &context);
            }
        }
    }
}

/// A device without bytes, 1 ns a byte on each channel.
fn timed(setup: &ZoneSetup) -> ZonedNamespace<Timed<Nand<ImpliedOob>, Fifo>, ImpliedOob> {
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let nand = Nand::with_oob(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
    ZonedNamespace::new(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING)), setup).unwrap()
}

#[test]
fn each_command_costs_the_flash_operations_that_it_needs() {
    let mut zoned = timed(&setup());
    let block = |zone: u64, block: u64| (zone * 128 + block) * 512;
    let write = |at: u64, blocks: u64| {
        Command::from(BlockCommand::new(Op::Write, Extent::new(at, blocks * 512), Hint::default()))
    };
    let manage = |action, zone| Command::Zone(ZoneCommand::Manage { action, zone: Some(block(zone, 0)) });
    let mut submit = |command: Command| {
        let answer = zoned.submit(0, command, Payload::None, SimTime::ZERO).unwrap();
        let causes = *nandscape_core::FlashLayer::device(&zoned).counters();
        (answer.done.0, causes)
    };
    // Three logical blocks fill no page.
    let (done, causes) = submit(write(block(0, 0), 3));
    assert_eq!((done, causes.total().programs), (0, 0));
    // The fourth does; its program moves all of the page.
    let (done, causes) = submit(write(block(0, 3), 1));
    assert_eq!((done, causes.get(Cause::Host).programs), (502_048, 1));
    // Reads of what is on flash read a page, others none.
    let read = |at: u64| Command::from(BlockCommand::new(Op::Read, Extent::new(at, 512), Hint::default()));
    assert_eq!(submit(read(block(0, 1))).1.get(Cause::Host).reads, 1);
    assert_eq!(submit(read(block(0, 8))).1.get(Cause::Host).reads, 1);
    // A finish pads the 21 other pages of the zone, and is logged: the first page of the log is a snapshot.
    let (_, causes) = submit(manage(ZoneAction::Finish, 0));
    assert_eq!((causes.get(Cause::Finish).programs, causes.get(Cause::Meta).programs), (21, 2));
    // A reset erases the block with data; the three with nothing but padding wait for their next use.
    let (_, causes) = submit(manage(ZoneAction::Reset, 0));
    assert_eq!((causes.get(Cause::Host).erases, causes.get(Cause::Meta).programs), (1, 3));
    // An empty zone that is finished costs its record alone.
    let (_, causes) = submit(manage(ZoneAction::Finish, 1));
    assert_eq!((causes.get(Cause::Finish).programs, causes.get(Cause::Meta).programs), (21, 4));
    Subsystem::check_invariants(&zoned);
}

#[test]
fn zones_outlive_blocks_that_fail_and_shrink_or_end_when_no_spare_is_left() {
    let (mut ended, mut shrunk) = (0, 0);
    for seed in 0..6 {
        let plan = FaultPlan { program: 0.02, erase: 0.03, seed, ..FaultPlan::default() };
        let setup = setup();
        let (mut zoned, mut handle) = open(nand(), &setup, &plan);
        let zones = zoned.table().layout().zones;
        let mut bytes = Bytes { blocks: vec![vec![None; 88]; zones as usize] };
        let mut rng = seeded(seed);
        for step in 0..1_500u64 {
            let zone = below(&mut rng, u64::from(zones)) as u32;
            let start = u64::from(zone) * 128 * 512;
            let context = format!("seed {seed}, step {step}");
            let written = zoned.table().written(zone);
            let kept = &mut bytes.blocks[zone as usize];
            if below(&mut rng, 8) == 0 {
                let reset = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(start) };
                match submit(&mut zoned, Command::Zone(reset), Payload::None) {
                    Ok(_) => kept.fill(None),
                    Err(NamespaceError::Zone(ZoneError::Transition)) => {}
                    Err(NamespaceError::Ftl(FtlError::ReadOnly { .. })) => {
                        assert!(FlashLayer::read_only(&zoned).is_some(), "{context}");
                        ended += 1;
                        break;
                    }
                    Err(error) => panic!("{error}: {context}"),
                }
            } else {
                let count = 1 + below(&mut rng, 40);
                let data = vec![step as u8 | 1; count as usize * 512];
                let extent = Extent::new(start + written * 512, data.len() as u64);
                let write = BlockCommand::new(Op::Write, extent, Hint::default());
                if submit(&mut zoned, Command::from(write), Payload::Write(&data)).is_ok() {
                    kept[written as usize..(written + count) as usize].fill(Some(step as u8 | 1));
                } else if zoned.table().state(zone) == ZoneState::ReadOnly {
                    // What the failed write left is unknown.
                    kept.truncate(written as usize);
                }
            }
            if step % 100 == 0 {
                let capacities = (0..zones).map(|zone| zoned.zone(0, zone).capacity);
                shrunk += capacities.filter(|bytes| *bytes < 88 * 512).count();
                bytes.check(&mut zoned, &context);
                Subsystem::check_invariants(&zoned);
            }
            if step % 400 == 399 {
                zoned.shutdown(SimTime::ZERO).unwrap();
                let plan = FaultPlan { seed: seed ^ step, ..plan.clone() };
                (zoned, handle) = open(handle.nand(), &setup, &plan);
                bytes.check(&mut zoned, &context);
                if FlashLayer::read_only(&zoned).is_some() {
                    ended += 1;
                    break;
                }
            }
        }
    }
    assert!(ended > 0 && shrunk > 0, "{shrunk} zones shrank, {ended} devices ended");
}
