//! Every layer over a journal, its power cut at every operation: before it, in the middle of it, and with what was under way scattered,
//! for devices without a write buffer, with a volatile one and with a protected one.
//!
//! `CRASH_POINTS` sets how many cuts the tests try together; `make crash` tries millions. A failure prints the command that repeats it.

mod journal;

use nandscape_ftl::JournalOptions;
use nandscape_ftl::journal::Sabotage;
use nandscape_testkit::crash::{campaign, finds, points_from_environment};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 110_000;

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
