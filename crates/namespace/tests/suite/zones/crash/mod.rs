//! Zones over flash, their power cut at every operation: before it, in the middle of it, and with what was
//! under way scattered, for devices without a write buffer, with a volatile one and with a protected one.
//!
//! `CRASH_POINTS` sets how many cuts the tests try together; `make crash` tries millions. A failure prints
//! the command that repeats it.

mod host;
mod load;
mod promise;

use super::LAYOUT;
use host::ZoneHost;
use nandscape_core::{Capabilities, Geometry};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Nand, NandOptions};
use nandscape_namespace::zones::{
    CommandTimes, FlashRules, RandomAreas, ZoneLayout, ZoneSetup, ZoneStripes, ZonedNamespace,
};
use nandscape_testkit::crash::{Effort, Setup, Tally, campaign, points_from_environment};

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
    ZoneSetup {
        name: "zns".to_owned(),
        layout: ZoneLayout {
            zones: 0,
            size: 64,
            capacity: 56,
            block_bytes: 512,
            max_active: Some(4),
            max_open: Some(3),
            random: None,
            ..LAYOUT
        },
        stripes: ZoneStripes { dies: 2, blocks_per_die: 2, stripe_pages: 2 },
        rules: FlashRules { erases_at_reset: true, completes_stripe: false, pads: true, is_volatile: true },
        spare_blocks: 4,
        times: CommandTimes::default(),
    }
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
    let open = move |device| ZonedNamespace::new(device, &setup).map_err(|error| error.to_string());
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

fn failing() -> Vec<Setup<'static, ZoneHost>> {
    let plan = FaultPlan { program: 0.01, erase: 0.03, ..FaultPlan::default() };
    let failing = |setup: Setup<'static, ZoneHost>| Setup {
        name: format!("{} failing", setup.name),
        plan: plan.clone(),
        ..setup
    };
    sequential().into_iter().chain(random()).map(failing).collect()
}

/// Tries this test's share of the cuts, in percent.
fn survives(test: &str, setups: &[Setup<'_, ZoneHost>], share: u64) -> Tally {
    let points = points_from_environment(POINTS, share);
    let command =
        format!("cargo test -p nandscape-namespace --test suite zones::crash::{test} -- --exact --nocapture");
    let tally = campaign(test, setups, points, &command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || tally.points >= points, "{tally}");
    assert!(is_limited || (tally.erases > 0 && tally.rows > 0), "{tally}");
    tally
}

#[test]
fn sequential_zones_survive_every_cut() {
    survives("sequential_zones_survive_every_cut", &sequential(), 50);
}

#[test]
fn random_write_areas_survive_every_cut() {
    survives("random_write_areas_survive_every_cut", &random(), 25);
}

#[test]
fn zones_survive_cuts_while_blocks_fail() {
    survives("zones_survive_cuts_while_blocks_fail", &failing(), 25);
}
