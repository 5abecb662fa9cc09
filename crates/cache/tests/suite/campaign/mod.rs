//! A store fails at any operation, service goes on, ends, and begins again: every byte that was flushed is
//! right, or an error where docs/formats/cache.md says so.
//!
//! The stores of a case: 0 is the cache device, 1 and 2 are the disks, 3 and 4 the stamp files beside them.

mod commands;
mod damage;
mod place;
mod subject;

use nandscape_cache::presets::PRESETS;
use nandscape_testkit::campaign::{Case, Fault, Faults, Kind, Model, Subject, UNIT, again, campaign, finds};
use subject::{DISK_AT, Kept, Sabotage, Served, World};

const COMMAND: &str = "cargo test --package nandscape-cache --test suite whatever_store";

fn case(name: &str, kept: &Kept) -> Case<'static> {
    let world = World::new(kept);
    let make = move |faults: &Faults| Box::new(Served::new(&world, faults)) as Box<dyn Subject>;
    Case { name: name.to_owned(), make: Box::new(make), steps: 30 }
}

/// Every preset in every mode, and each kind of metadata without a place for stamp files.
fn cases() -> Vec<Case<'static>> {
    let mut cases = Vec::new();
    for preset in PRESETS {
        for mode in preset.modes {
            let name = format!("{}/{}", preset.info.name, mode.name());
            cases.push(case(&name, &Kept::new(preset.info.name, mode.name(), &[])));
        }
    }
    for (preset, mode) in
        [("nandscape", "write-back"), ("flashcache", "write-through"), ("dm-cache", "write-back")]
    {
        let kept = Kept { has_marks: false, ..Kept::new(preset, mode, &[]) };
        cases.push(case(&format!("{preset}/{mode}/devices"), &kept));
    }
    cases
}

#[test]
fn what_was_flushed_is_there_whatever_store_fails_at_any_operation() {
    let tally = campaign("cache", &cases(), (2000, 2000), COMMAND);
    assert!(tally.errors > 0, "{tally}");
}

/// The cache device and the disk fail for the same change: what the host was told is all that is known of it.
#[test]
fn a_change_that_failed_on_both_sides_is_no_older_data_after_the_next_start() {
    let found = [
        ("nandscape/write-back/devices", 2, "0@203:read-only,clean,mended"),
        ("nandscape/write-back/devices", 4, "0@245:io-once,1@119:read-only,clean,not-mended"),
    ];
    again(&cases(), &found, COMMAND);
}

/// The records of the disks' places cannot be read for a moment when a session begins. Going on without them
/// would make the next start take the disks for changed.
#[test]
fn a_session_without_its_records_does_not_begin() {
    let found = [("nandscape/write-through", 1, "0@56:short-read,power-loss,mended")];
    again(&cases(), &found, COMMAND);
}

/// What was flushed had made way in the cache for a write that was under way when the cache device failed.
#[test]
fn a_flushed_block_is_not_older_data_when_the_cache_is_given_up_while_it_is_written_again() {
    let found = [
        ("nandscape/write-back", 3, "0@271:read-only,power-loss,mended"),
        ("nandscape/write-back", 3, "4@10:gone,0@271:read-only,power-loss,not-mended"),
    ];
    again(&cases(), &found, COMMAND);
}

/// A slot cannot be read for a moment, and the disk does not take what it has.
#[test]
fn a_dirty_block_that_a_failed_slot_lost_is_no_older_data_after_the_next_start() {
    let faults = Faults::default();
    let world = World::new(&Kept::new("nandscape", "write-back", &[]));
    let mut served = Served::new(&world, &faults);
    let mut bytes = vec![0; UNIT];
    // The disk has something older there.
    let unit = (0..served.volumes()[0]).find(|unit| {
        world.disks[0].medium.peek(DISK_AT[0] + (unit * UNIT) as u64, &mut bytes);
        Model::new(0, unit + 1, 1).check(*unit, &bytes).is_err()
    });
    let units = unit.map(|unit| unit..unit + 1).expect("the cache has newer data");
    served.start().unwrap();
    let next = faults.seen()[0].len() as u64;
    faults.arm(Fault { store: 0, at: next, kind: Kind::ShortRead });
    faults.arm(Fault { store: 1, at: 0, kind: Kind::ReadOnly });
    let error = served.read(0, units.clone(), &mut bytes).unwrap_err();
    assert!(error.contains("were lost with the cache device"), "{error}");
    served.kill(false);
    faults.mend();
    if served.start().is_ok() && served.read(0, units.clone(), &mut bytes).is_ok() {
        Model::new(0, units.end, 1).observe(units.start, &bytes).unwrap();
    }
}

#[test]
fn every_sabotage_is_seen() {
    for sabotage in [Sabotage::NoFlush, Sabotage::ErrorKept, Sabotage::GivenUp] {
        let kept = Kept { sabotage, ..Kept::new("nandscape", "write-back", &[]) };
        let found = finds(&case("sabotage", &kept), 1, (4000, 1000));
        assert!(found.is_some(), "{sabotage:?} passed");
    }
}
