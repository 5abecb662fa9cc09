//! The power is cut at every operation of the flash below the zones below the map.

use super::support::{AsFtl, nand, params, setup};
use nandscape_core::{Geometry, Params};
use nandscape_hostftl::zone_map::Sabotage;
use nandscape_media::faults::FaultPlan;
use nandscape_namespace::zones::{FlashRules, ZoneSetup};
use nandscape_testkit::crash::{Effort, Setup, campaign, finds, points_from_environment};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 30_000;

/// Two dies of 32 blocks of 8 pages: zones of 16 pages, 15 of which can be written.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 32,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

fn zones() -> ZoneSetup {
    let rules = FlashRules { erases_at_reset: true, completes_stripe: false, pads: true, is_volatile: true };
    ZoneSetup { rules, spare_blocks: 6, ..setup(&GEOMETRY, 2, 15, Some(6)) }
}

fn case(name: &str, pairs: &[(&str, &str)], sabotage: Sabotage) -> Setup<'static> {
    let params: Params = params(pairs);
    let zones = zones();
    let open = move |device| Ok(Box::new(AsFtl::open(device, &zones, &params, sabotage)?) as _);
    Setup {
        name: name.to_owned(),
        nand: nand(GEOMETRY),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: true,
        damage: None,
        effort: Effort::default(),
    }
}

fn cases(sabotage: Sabotage) -> [Setup<'static>; 3] {
    [
        case("zone-map", &[("op", "1.2")], sabotage),
        case("zone-map, streams", &[("op", "1.6"), ("streams", "2"), ("victim", "fifo")], sabotage),
        case(
            "zone-map, shared",
            &[("op", "1.0"), ("gc_frontier", "shared"), ("background_gc", "true"), ("gc_step", "3")],
            sabotage,
        ),
    ]
}

#[test]
fn a_block_device_on_zones_survives_every_cut() {
    let points = points_from_environment(POINTS, 60);
    let command = "cargo test -p nandscape-hostftl --test suite crash::a_block_device_on_zones_survives_every_cut -- --exact --nocapture";
    let tally = campaign("zone-map", &cases(Sabotage::None), points, command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || (tally.erases > 0 && tally.rows > 0), "{tally}");
}

#[test]
fn a_block_device_on_zones_survives_cuts_while_erases_fail() {
    let points = points_from_environment(POINTS, 20);
    let command = "cargo test -p nandscape-hostftl --test suite crash::a_block_device_on_zones_survives_cuts_while_erases_fail -- --exact --nocapture";
    let plan = FaultPlan { erase: 0.05, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).map(|case| Setup { plan: plan.clone(), ..case });
    campaign("zone-map failing", &failing, points, command);
}

#[test]
fn every_sabotage_of_the_map_is_found() {
    let few = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    // A checkpoint begins and ends without a flush in long runs alone.
    let long = Effort { steps: 240, again_every: 0, ..few };
    let is_found = |sabotage| {
        let effort = if sabotage == Sabotage::EndWithoutWait { long } else { few };
        cases(sabotage).into_iter().any(|case| finds(&Setup { effort, ..case }, 30).0.is_some())
    };
    let unnoticed: Vec<Sabotage> =
        Sabotage::ALL.into_iter().filter(|sabotage| !is_found(*sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}
