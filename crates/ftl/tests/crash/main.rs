//! Every layer over a journal, its power cut at every operation: before it, in the middle of it, and with what was under way scattered,
//! for devices without a write buffer, with a volatile one and with a protected one.
//!
//! `CRASH_POINTS` sets how many cuts the tests try together; `make crash` tries millions. A failure prints the command that repeats it.

mod journal;
mod setups;

use nandscape_ftl::JournalOptions;
use nandscape_ftl::journal::Sabotage;
use nandscape_testkit::crash::{Tally, campaign, finds, points_from_environment};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 110_000;

/// Tries this layer's share of the cuts, in percent.
fn survives(layer: &'static str, test: &str, share: u64) -> Tally {
    let points = points_from_environment(POINTS, share);
    let command = format!("cargo test -p nandscape-ftl --test crash {test} -- --exact --nocapture");
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

/// Tries a layer whose blocks fail besides.
fn survives_failing_blocks(layer: &'static str, test: &str) {
    let points = points_from_environment(POINTS, 3);
    let command = format!("cargo test -p nandscape-ftl --test crash {test} -- --exact --nocapture");
    campaign(&format!("{layer} failing"), &[setups::failing(layer)], points, &command);
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
    let command =
        "cargo test -p nandscape-ftl --test crash the_journal_survives_every_cut -- --exact --nocapture";
    let tally = campaign("journal", &setups, points, command);
    assert!(tally.erases > 0 && tally.rows > 0, "{tally}");
}

#[test]
fn every_sabotage_of_the_journal_is_found() {
    for sabotage in Sabotage::ALL {
        let options = JournalOptions { interval: Some(40), sabotage, ..JournalOptions::default() };
        let (failure, tally) = finds(&journal::setup("sabotaged journal", options), 40);
        assert!(failure.is_some(), "{sabotage:?} went unnoticed in {tally}");
    }
}
