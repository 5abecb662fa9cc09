//! Zones over flash, their power cut at every operation: before it, in the middle of it, and with what was
//! under way scattered, for devices without a write buffer, with a volatile one and with a protected one.
//!
//! `CRASH_POINTS` sets how many cuts the tests try together; `make crash` tries millions. A failure prints
//! the command that repeats it.

mod host;
mod load;
mod promise;

use super::flash;
use host::ZoneHost;
use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Capabilities, Extent, FlashLayer as _, Geometry, Hint, Op, SimTime, Subsystem as _,
};
use nandscape_media::faults::{FaultPlan, PowerCut};
use nandscape_media::{Nand, NandOptions};
use nandscape_namespace::zones::{
    FlashRules, RandomAreas, Sabotage, ZoneLayout, ZoneSetup, ZoneStripes, ZonedNamespace,
};
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Setup, Tally, campaign, finds, points_from_environment,
};
use std::io::Write as _;

/// Cuts that all tests of this file try together.
const POINTS: u64 = 12_000;

/// Four dies of 10 blocks of 4 pages; a page is four logical blocks.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 10,
    pages_per_block: 4,
    page_bytes: 2048,
    sector_bytes: 512,
    oob_bytes: 64,
};

fn nand() -> Nand {
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    Nand::new(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap()
}

/// Zones of two dies and two blocks in each: 16 pages, of which 14 can be written.
fn pairs() -> ZoneSetup {
    let setup = flash::setup();
    ZoneSetup { layout: ZoneLayout { size: 64, capacity: 56, ..setup.layout }, ..setup }
}

/// Zones of one block of each die.
fn wide() -> ZoneSetup {
    let rules = FlashRules { erases_at_reset: false, completes_stripe: true, pads: false, is_volatile: true };
    let stripes = ZoneStripes { dies: 4, blocks_per_die: 1, stripe_pages: 1 };
    ZoneSetup { rules, stripes, ..pairs() }
}

/// Zones of one die each.
fn narrow() -> ZoneSetup {
    let stripes = ZoneStripes { dies: 1, blocks_per_die: 3, stripe_pages: 4 };
    let layout = ZoneLayout { max_open: Some(1), max_active: Some(2), capacity: 48, ..pairs().layout };
    ZoneSetup { stripes, layout, ..pairs() }
}

/// The same with random write areas.
fn with_areas(setup: ZoneSetup) -> ZoneSetup {
    let random = Some(RandomAreas { size: 16, granularity: 4, count: Some(2) });
    ZoneSetup { layout: ZoneLayout { random, ..setup.layout }, ..setup }
}

fn setup(name: &str, setup: ZoneSetup) -> Setup<'static, ZoneHost> {
    broken(name, setup, Sabotage::None)
}

fn broken(name: &str, setup: ZoneSetup, sabotage: Sabotage) -> Setup<'static, ZoneHost> {
    let open =
        move |device| ZonedNamespace::broken(device, &setup, sabotage).map_err(|error| error.to_string());
    Setup {
        name: name.to_owned(),
        nand: nand(),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: false,
        damage: None,
        effort: Effort { steps: 40, ..Effort::default() },
    }
}

fn sequential() -> Vec<Setup<'static, ZoneHost>> {
    let lazy = ZoneSetup { rules: wide().rules, ..pairs() };
    let eager = ZoneSetup { rules: pairs().rules, ..wide() };
    vec![
        setup("pairs", pairs()),
        setup("pairs lazy", lazy),
        setup("wide", wide()),
        setup("wide eager", eager),
        setup("narrow", narrow()),
    ]
}

fn random() -> Vec<Setup<'static, ZoneHost>> {
    vec![setup("pairs areas", with_areas(pairs())), setup("wide areas", with_areas(wide()))]
}

/// Programs and erases that fail.
fn plan() -> FaultPlan {
    FaultPlan { program: 0.01, erase: 0.03, ..FaultPlan::default() }
}

fn failing() -> Vec<Setup<'static, ZoneHost>> {
    let failing = |setup: Setup<'static, ZoneHost>| Setup {
        name: format!("{} failing", setup.name),
        plan: plan(),
        ..setup
    };
    let mut setups: Vec<_> = sequential().into_iter().chain(random()).map(failing).collect();
    // So few spare blocks that zones shrink, become read-only and go offline.
    for (name, setup) in [("pairs scarce", with_areas(pairs())), ("narrow scarce", narrow())] {
        let plan = FaultPlan { program: 0.03, erase: 0.08, ..FaultPlan::default() };
        setups.push(Setup { plan, ..self::setup(name, ZoneSetup { spare_blocks: 2, ..setup }) });
    }
    setups
}

/// Tries this test's share of the cuts, in percent.
fn survives(test: &str, setups: &[Setup<'_, ZoneHost>], share: u64) -> Tally {
    let points = points_from_environment(POINTS, share);
    let command =
        format!("cargo test -p nandscape-namespace --test suite zones::crash::{test} -- --exact --nocapture");
    let tally = campaign(test, setups, points, &command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || tally.points >= points, "{tally}");
    assert!(is_limited || tally.erases > 0, "{tally}");
    tally
}

#[test]
fn sequential_zones_survive_every_cut() {
    let tally = survives("sequential_zones_survive_every_cut", &sequential(), 50);
    assert!(std::env::var("CRASH_CASE").is_ok() || tally.rows > 0, "{tally}");
}

#[test]
fn random_write_areas_survive_every_cut() {
    survives("random_write_areas_survive_every_cut", &random(), 25);
}

#[test]
fn zones_survive_cuts_while_blocks_fail() {
    survives("zones_survive_cuts_while_blocks_fail", &failing(), 25);
}

/// Whether one of a few seeds finds what a broken layer loses.
fn is_found(sabotage: Sabotage) {
    let areas = matches!(sabotage, Sabotage::FlushWithoutHeld | Sabotage::LastPage);
    let is_wide = matches!(
        sabotage,
        Sabotage::PadAfterReset | Sabotage::SnapshotWithoutWait | Sabotage::ProgramBeforeStart
    );
    let setup = if is_wide { wide() } else { pairs() };
    let setup = if areas { with_areas(setup) } else { setup };
    let again_every = if sabotage == Sabotage::ProgramBeforeStart { 6 } else { 60 };
    let failing = FaultPlan { program: 0.05, ..FaultPlan::default() };
    let broken = Setup {
        plan: if sabotage == Sabotage::MarkAtOnce { failing } else { FaultPlan::default() },
        effort: Effort { steps: 40, again_every, ..Effort::default() },
        ..broken("sabotage", setup, sabotage)
    };
    let (failure, tally) = finds(&broken, 40);
    let failure = failure.unwrap_or_else(|| panic!("{sabotage:?} went unnoticed in {tally}"));
    // Printing macros are captured in tests that pass.
    let _ = writeln!(std::io::stderr(), "{sabotage:?} is found after {tally}: {}", failure.message);
}

#[test]
fn every_sabotage_of_zones_is_found() {
    Sabotage::ALL.into_iter().for_each(is_found);
}

#[test]
fn starts_that_are_cut_short_do_not_use_up_the_spare_blocks() {
    let setup = pairs();
    let (device, handle) = CrashDevice::new(nand(), Buffer::None, &FaultPlan::default(), false);
    let mut zoned = ZonedNamespace::new(device, &setup).unwrap();
    // Records of several pages, so that a snapshot can be cut short.
    for zone in 0..4u64 {
        let extent = Extent::new(zone * 64 * 512, 7 * 512);
        let write = BlockCommand::new(Op::Write, extent, Hint::default());
        zoned.submit(0, write.into(), Payload::Write(&[7; 7 * 512]), SimTime::ZERO).unwrap();
    }
    zoned.shutdown(SimTime::ZERO).unwrap();
    let mut nand = handle.nand();
    for _ in 0..60 {
        let power_cut = Some(PowerCut { at: 2, is_torn: false });
        let plan = FaultPlan { power_cut, ..FaultPlan::default() };
        let (device, handle) = CrashDevice::new(nand, Buffer::None, &plan, false);
        assert!(ZonedNamespace::new(device, &setup).is_err());
        nand = handle.nand();
    }
    let (device, _) = CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false);
    let zoned = ZonedNamespace::new(device, &setup).unwrap();
    assert_eq!(zoned.read_only(), None);
    assert!((0..4).all(|zone| zoned.table().written(zone) == 7));
}

#[test]
fn held_blocks_are_read_after_the_program_of_their_page_failed() {
    // The first program is that of the first snapshot.
    let power_cut = Some(PowerCut { at: 1, is_torn: false });
    let plan = FaultPlan { power_cut, ..FaultPlan::default() };
    let (device, _) = CrashDevice::new(nand(), Buffer::None, &plan, false);
    let mut zoned = ZonedNamespace::new(device, &pairs()).unwrap();
    let mut write = |from: u64, data: &[u8]| {
        let extent = Extent::new(from * 512, data.len() as u64);
        let write = BlockCommand::new(Op::Write, extent, Hint::default());
        zoned.submit(0, write.into(), Payload::Write(data), SimTime::ZERO)
    };
    assert!(write(0, &[7; 3 * 512]).is_ok());
    assert!(write(3, &[8; 512]).is_err());
    let read = BlockCommand::new(Op::Read, Extent::new(0, 3 * 512), Hint::default());
    let mut data = vec![0; 3 * 512];
    zoned.submit(0, read.into(), Payload::Read(&mut data), SimTime::ZERO).unwrap();
    assert_eq!(data, [7; 3 * 512]);
}
