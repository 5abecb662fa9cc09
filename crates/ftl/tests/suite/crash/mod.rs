//! Every layer over a journal, its power cut at every operation: before it, in the middle of it, and with
//! what was under way scattered, for devices without a write buffer, with a volatile one and with a protected
//! one.
//!
//! `CRASH_POINTS` sets how many cuts the tests try together; `make crash` tries millions. A failure prints
//! the command that repeats it.

mod damage;
mod journal;
mod lost_oob;
mod setups;

use nandscape_core::recovery::RecoverySource;
use nandscape_ftl::journal::Sabotage;
use nandscape_ftl::{JournalOptions, infos};
use nandscape_testkit::crash::{Setup, Tally, campaign, finds, points_from_environment};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Cuts that all tests of this file try together.
const POINTS: u64 = 110_000;

/// Tries this layer's share of the cuts, in percent.
fn survives(layer: &'static str, test: &str, share: u64) -> Tally {
    let points = points_from_environment(POINTS, share);
    let command = format!("cargo test -p nandscape-ftl --test suite crash::{test} -- --exact --nocapture");
    let tally = campaign(layer, &setups::of(layer), points, &command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || tally.points >= points, "{layer}: {tally}");
    assert!(is_limited || (tally.erases > 0 && tally.rows > 0), "{layer}: {tally}");
    tally
}

#[test]
fn page_map_survives_every_cut() {
    survives("page-map", "page_map_survives_every_cut", 30);
}

#[test]
fn pm_gcl_survives_every_cut() {
    survives("pm-gcl", "pm_gcl_survives_every_cut", 16);
}

#[test]
fn pm_gcc_survives_every_cut() {
    survives("pm-gcc", "pm_gcc_survives_every_cut", 16);
}

#[test]
fn sbm_gcl_survives_every_cut() {
    survives("sbm-gcl", "sbm_gcl_survives_every_cut", 16);
}

#[test]
fn hsbm_gcl_survives_every_cut() {
    survives("hsbm-gcl", "hsbm_gcl_survives_every_cut", 16);
}

/// Layers that have tests of their own here, each of which runs beside the others.
const NAMED: [&str; 5] = ["page-map", "pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl"];

#[test]
fn every_other_layer_survives_cuts_failing_blocks_and_damage() {
    let all: Vec<&str> = infos().iter().map(|info| info.name).collect();
    assert!(NAMED.iter().all(|name| all.contains(name)), "{all:?}");
    for layer in all.into_iter().filter(|name| !NAMED.contains(name)) {
        let test = "every_other_layer_survives_cuts_failing_blocks_and_damage";
        survives(layer, test, 16);
        survives_failing_blocks(layer, test);
        survives_damage(layer, test);
    }
}

/// Tries a layer whose blocks fail besides.
fn survives_failing_blocks(layer: &'static str, test: &str) {
    let points = points_from_environment(POINTS, 3);
    let command = format!("cargo test -p nandscape-ftl --test suite crash::{test} -- --exact --nocapture");
    campaign(&format!("{layer} failing"), &setups::failing(layer), points, &command);
}

#[test]
fn page_map_survives_cuts_while_blocks_fail() {
    survives_failing_blocks("page-map", "page_map_survives_cuts_while_blocks_fail");
}

#[test]
fn pm_gcl_survives_cuts_while_blocks_fail() {
    survives_failing_blocks("pm-gcl", "pm_gcl_survives_cuts_while_blocks_fail");
}

#[test]
fn pm_gcc_survives_cuts_while_blocks_fail() {
    survives_failing_blocks("pm-gcc", "pm_gcc_survives_cuts_while_blocks_fail");
}

#[test]
fn sbm_gcl_survives_cuts_while_blocks_fail() {
    survives_failing_blocks("sbm-gcl", "sbm_gcl_survives_cuts_while_blocks_fail");
}

#[test]
fn hsbm_gcl_survives_cuts_while_blocks_fail() {
    survives_failing_blocks("hsbm-gcl", "hsbm_gcl_survives_cuts_while_blocks_fail");
}

#[test]
fn the_journal_survives_every_cut() {
    let points = points_from_environment(POINTS, 10);
    let options = |interval| JournalOptions { interval, ..JournalOptions::default() };
    let setups =
        [journal::setup("journal", options(Some(40))), journal::setup("journal, default", options(None))];
    let command = "cargo test -p nandscape-ftl --test suite crash::the_journal_survives_every_cut -- --exact --nocapture";
    let tally = campaign("journal", &setups, points, command);
    assert!(tally.erases > 0 && tally.rows > 0, "{tally}");
}

/// Tries a layer whose journal is damaged while the power is off.
fn survives_damage(layer: &'static str, test: &str) {
    let points = points_from_environment(POINTS, 2);
    let command = format!("cargo test -p nandscape-ftl --test suite crash::{test} -- --exact --nocapture");
    let setup =
        Setup { name: format!("{layer} damaged"), damage: Some(damage::damage), ..setups::quick(layer) };
    campaign(&format!("{layer} damaged"), &[setup], points, &command);
}

#[test]
fn page_map_survives_damage_of_its_journal() {
    survives_damage("page-map", "page_map_survives_damage_of_its_journal");
}

#[test]
fn pm_gcl_survives_damage_of_its_journal() {
    survives_damage("pm-gcl", "pm_gcl_survives_damage_of_its_journal");
}

#[test]
fn pm_gcc_survives_damage_of_its_journal() {
    survives_damage("pm-gcc", "pm_gcc_survives_damage_of_its_journal");
}

#[test]
fn sbm_gcl_survives_damage_of_its_journal() {
    survives_damage("sbm-gcl", "sbm_gcl_survives_damage_of_its_journal");
}

#[test]
fn hsbm_gcl_survives_damage_of_its_journal() {
    survives_damage("hsbm-gcl", "hsbm_gcl_survives_damage_of_its_journal");
}

fn damaged(sabotage: Sabotage) -> Setup<'static> {
    let options = JournalOptions { interval: Some(40), sabotage, ..JournalOptions::default() };
    Setup { damage: Some(damage::damage), ..journal::setup("damaged journal", options) }
}

#[test]
fn a_damaged_journal_loses_nothing_and_says_what_it_used() {
    let points = points_from_environment(POINTS, 5);
    let command = "cargo test -p nandscape-ftl --test suite crash::a_damaged_journal_loses_nothing_and_says_what_it_used -- --exact --nocapture";
    let sources = Mutex::new(BTreeMap::new());
    let plain = damaged(Sabotage::None);
    let open = |device| {
        let layer = (plain.open)(device)?;
        let report = layer.device().journal().ok_or("no journal")?.recovery();
        assert_eq!(report.damage.is_some(), report.source != RecoverySource::Checkpoint, "{report:?}");
        *sources.lock().expect("no panic").entry(format!("{:?}", report.source)).or_insert(0u64) += 1;
        Ok(layer)
    };
    let setup = Setup { open: Box::new(open), ..damaged(Sabotage::None) };
    campaign("damaged journal", &[setup], points, command);
    let sources = sources.into_inner().expect("no panic");
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || (sources.len() == 3 && sources.values().all(|count| *count > 100)), "{sources:?}");
}

#[test]
fn every_sabotage_of_a_damaged_journal_is_found() {
    for sabotage in Sabotage::BY_DAMAGE {
        let (failure, tally) = finds(&damaged(sabotage), 40);
        assert!(failure.is_some(), "{sabotage:?} went unnoticed in {tally}");
    }
}

#[test]
fn every_sabotage_of_the_journal_is_found() {
    for sabotage in Sabotage::BY_CUTS {
        let options = JournalOptions { interval: Some(40), sabotage, ..JournalOptions::default() };
        let (failure, tally) = finds(&journal::setup("sabotaged journal", options), 40);
        assert!(failure.is_some(), "{sabotage:?} went unnoticed in {tally}");
    }
}
