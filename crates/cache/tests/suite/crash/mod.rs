//! Power is cut at every operation of the cache device and of the disks, and what comes back is compared with
//! what was promised.
//!
//! A life of a cache (it is created or opened, used, perhaps removed) is recorded below it. All stores lose
//! power together, before any operation; what no completed flush covers is lost, kept, or torn by units of
//! 512 bytes, on each store. From each such state the cache is opened. Then
//! * each unit holds a version from the last flushed one on, and none is a mix;
//! * what is cached and clean equals the disk, so that nothing changes once it is evicted;
//! * a block that is written in write-back mode through a journal is there as a whole, old or new;
//! * what of a volume was cached at its last flush, and neither touched nor evicted since, is cached still.
//!
//! After some of the cuts a second life begins, each operation of which is cut again, those of the recovery
//! among them. `CRASH_POINTS` sets how many cuts all tests try together, about.

mod explore;
mod life;
mod model;
mod tape;

use explore::{Effort, campaign, finds};
use life::{Case, Sabotage};
use nandscape_cache::Mode;
use nandscape_cache::presets::{self, AfterCut, Flushing, Preset, Victims};
use nandscape_policies::Map;
use tape::Drives;

const EFFORT: Effort = Effort { steps: 120, again_every: 150 };

/// How many cuts each case is to try: `default`, or its part of what the environment asks for, of which the
/// test has `share` percent.
fn points(default: u64, share: u64, cases: &[Case]) -> u64 {
    std::env::var("CRASH_POINTS").ok().map_or(default, |text| {
        let points: u64 =
            text.parse().unwrap_or_else(|_| panic!("CRASH_POINTS={text}: expected a number of cut points"));
        points * share / 100 / cases.len() as u64
    })
}

fn case(name: &str, kind: &'static str, modes: &[Mode], after_cut: AfterCut) -> Case {
    Case {
        name: name.to_owned(),
        kind,
        eviction: "lru",
        block_bytes: 4096,
        map: Map::Full,
        modes: modes.to_vec(),
        slots: 24,
        units: vec![8 * 22 + 3, 8 * 12],
        after_cut,
        is_atomic: false,
        sabotage: Sabotage::None,
        latency: 0,
        drives: Drives::Volatile,
        flushing: Flushing::Both,
        is_prompt: false,
        cutoff: None,
        victims: Victims::Any,
        group: 0,
        region: 0,
    }
}

fn journal(name: &str, modes: &[Mode]) -> Case {
    case(name, "journal", modes, AfterCut::Everything)
}

#[test]
fn journal_in_write_back_keeps_every_flushed_write_whole_and_clean_blocks_warm() {
    let cases = [
        Case { is_atomic: true, ..journal("journal/write-back", &[Mode::WriteBack]) },
        Case {
            is_atomic: true,
            map: Map::Linear { ways: 4 },
            ..journal("journal/write-back/sets", &[Mode::WriteBack, Mode::WriteOnly])
        },
        Case {
            block_bytes: 16 << 10,
            units: vec![32 * 14 + 5, 32 * 9],
            slots: 12,
            eviction: "s3-fifo",
            ..journal("journal/write-back/16k", &[Mode::WriteBack])
        },
    ];
    for tally in campaign(&cases, EFFORT, points(10_000, 35, &cases)) {
        assert!(tally.warm > 0 && tally.again > 0 && tally.lost == 0);
    }
}

#[test]
fn journal_in_write_through_and_others_keeps_every_flushed_write_and_clean_blocks_warm() {
    let cases = [
        journal("journal/write-through", &[Mode::WriteThrough]),
        journal("journal/write-around", &[Mode::WriteAround]),
        journal(
            "journal/all-modes",
            &[Mode::WriteThrough, Mode::WriteBack, Mode::WriteAround, Mode::WriteOnly, Mode::PassThrough],
        ),
    ];
    for tally in campaign(&cases, EFFORT, points(10_000, 35, &cases)) {
        assert!(tally.warm > 0 && tally.again > 0 && tally.lost == 0);
    }
}

/// Writes go past the cache above a share of dirty slots, to blocks that the cache has had before and may
/// have again; clean blocks leave first.
#[test]
fn above_the_cut_off_every_flushed_write_is_kept_and_clean_blocks_stay_warm() {
    let case = |name, latency| Case {
        cutoff: Some("40%"),
        victims: Victims::PreferClean,
        latency,
        ..journal(name, &[Mode::WriteBack])
    };
    let cases = [
        case("journal/cut-off", 0),
        case("journal/cut-off/timed", 700_000),
        Case { map: Map::Linear { ways: 4 }, ..case("journal/cut-off/sets", 100_000) },
    ];
    for tally in campaign(&cases, EFFORT, points(3000, 10, &cases)) {
        assert!(tally.warm > 0 && tally.again > 0 && tally.lost == 0);
        assert!(tally.past > 10, "{} blocks went past the cache", tally.past);
    }
}

#[test]
fn stores_that_take_their_time_change_nothing() {
    let all = [Mode::WriteBack, Mode::WriteThrough, Mode::WriteAround, Mode::WriteOnly, Mode::PassThrough];
    let cases = [
        Case { is_atomic: true, ..journal("journal/write-back/timed", &[Mode::WriteBack]) },
        journal("journal/all-modes/timed", &all),
    ]
    .map(|case| Case { latency: 100_000, ..case });
    for tally in campaign(&cases, EFFORT, points(5000, 10, &cases)) {
        assert!(tally.warm > 0 && tally.again > 0 && tally.lost == 0);
    }
}

#[test]
fn commits_of_commands_in_flight_that_are_made_together_lose_nothing_that_was_flushed() {
    let slots = |name, modes: &[Mode], group| Case {
        map: Map::Linear { ways: 4 },
        group,
        ..case(name, "slots", modes, AfterCut::DirtyBlocks)
    };
    let cases = [
        slots("slots/groups of 3", &[Mode::WriteBack], 3),
        slots("slots/groups of 16", &[Mode::WriteBack, Mode::WriteThrough], 16),
        Case { is_atomic: true, group: 8, ..journal("journal/groups of 8", &[Mode::WriteBack]) },
    ];
    for tally in campaign(&cases, EFFORT, points(4000, 5, &cases)) {
        assert!(tally.again > 0 && tally.lost == 0);
    }
}

/// On a cache device that is written in order, where regions of slots are reset as a whole.
#[test]
fn in_regions_that_are_written_in_order_every_flushed_write_is_kept_whole_and_clean_blocks_stay_warm() {
    let ordered = |case: Case| Case { region: 4 * u64::from(case.block_bytes) + 512, ..case };
    let all = [Mode::WriteBack, Mode::WriteThrough, Mode::WriteAround, Mode::WriteOnly, Mode::PassThrough];
    let cases = [
        Case { is_atomic: true, ..journal("ordered/write-back", &[Mode::WriteBack]) },
        Case { eviction: "fifo", latency: 700_000, ..journal("ordered/all-modes/timed", &all) },
    ]
    .map(ordered);
    for tally in campaign(&cases, EFFORT, points(5000, 15, &cases)) {
        assert!(tally.warm > 0 && tally.again > 0 && tally.lost == 0);
    }
    for sabotage in [Sabotage::NoDataFlush, Sabotage::NoDiskFlush, Sabotage::ForgottenNote] {
        assert!(finds(&cases[0], sabotage, EFFORT, 12).is_some(), "{sabotage:?} passed");
    }
}

/// Whether a write that was flushed is there after any cut, also where the drives lose what they have
/// answered and was not flushed: a design that does not flush a disk before its metadata call a block clean
/// loses what was flushed before, when the disk loses it.
fn keeps_flushed_on_volatile_drives(preset: &Preset) -> bool {
    preset.after_cut.keeps_flushed() && (preset.flushing == Flushing::Both || !preset.mode.makes_dirty())
}

/// A preset on drives that keep what it relies on.
fn of_preset(preset: &Preset) -> Case {
    let map = match preset.map {
        Map::Full => Map::Full,
        Map::Linear { .. } => Map::Linear { ways: 8 },
        Map::ClusterHashed { .. } => Map::ClusterHashed { ways: 8, cluster: 4 },
    };
    let blocks = u64::from(preset.block_bytes / 512) as usize;
    let keeps_flushed = keeps_flushed_on_volatile_drives(preset) || !preset.after_cut.keeps_flushed();
    Case {
        eviction: preset.eviction.name,
        block_bytes: preset.block_bytes,
        map,
        units: vec![blocks * 20 + 3, blocks * 11],
        is_atomic: !preset.quirks.has_torn_blocks,
        drives: if keeps_flushed { Drives::Volatile } else { Drives::Honest },
        flushing: preset.flushing,
        // Without a flush of its own the answer is all that it has to go by.
        is_prompt: preset.flushing == Flushing::Nothing && preset.metadata.name == "slots",
        // Where only clean blocks may leave, what goes past the cache instead may be torn on the disk.
        victims: match preset.quirks.victims {
            Victims::CleanOnly => Victims::Any,
            victims => victims,
        },
        ..case(preset.info.name, preset.metadata.name, &[preset.mode], preset.after_cut)
    }
}

#[test]
fn every_preset_leaves_what_its_design_leaves() {
    let cases: Vec<Case> = presets::PRESETS.iter().map(of_preset).collect();
    for (preset, tally) in presets::PRESETS.iter().zip(campaign(&cases, EFFORT, points(3000, 14, &cases))) {
        let name = preset.info.name;
        assert_eq!(tally.lost > 0, !preset.after_cut.keeps_flushed(), "{name}: {tally}");
        assert_eq!(tally.warm > 0, preset.after_cut == AfterCut::Everything, "{name}: {tally}");
        assert_eq!(tally.torn > 0, preset.quirks.has_torn_blocks, "{name}: {tally}");
    }
}

#[test]
fn presets_do_so_too_where_one_command_begins_before_all_of_the_last_has_ended() {
    let kept = presets::PRESETS.iter().filter(|preset| preset.after_cut.keeps_flushed());
    let slow = |preset: &Preset| Case {
        name: format!("{}/timed", preset.info.name),
        latency: 700_000,
        ..of_preset(preset)
    };
    let cases: Vec<Case> = kept.map(slow).collect();
    for tally in campaign(&cases, EFFORT, points(1500, 6, &cases)) {
        assert_eq!(tally.lost, 0, "{tally}");
    }
}

#[test]
fn a_design_that_does_not_flush_disks_loses_flushed_writes_on_drives_that_lose_them() {
    let effort = Effort { again_every: 1000, ..EFFORT };
    for preset in presets::PRESETS.iter().filter(|preset| !keeps_flushed_on_volatile_drives(preset)) {
        let name = preset.info.name;
        if !preset.after_cut.keeps_flushed() {
            // It loses them on all drives.
            continue;
        }
        let case = Case { drives: Drives::Volatile, is_prompt: false, ..of_preset(preset) };
        assert!(finds(&case, Sabotage::None, effort, 4).is_some(), "{name}: nothing was lost");
        // With nandscape's own flushes it does not.
        let case = Case { flushing: Flushing::Both, ..case };
        let found = finds(&case, Sabotage::None, effort, 2);
        assert!(found.is_none(), "{name}, flushing both: {found:?}");
    }
}

#[test]
fn every_sabotage_is_seen() {
    let case = Case { is_atomic: true, ..journal("sabotage", &[Mode::WriteBack]) };
    let effort = Effort { again_every: 40, ..EFFORT };
    for sabotage in [
        Sabotage::InPlace,
        Sabotage::NoDataFlush,
        Sabotage::NoDiskFlush,
        Sabotage::ForgottenNote,
        Sabotage::NoRepairs,
    ] {
        assert!(finds(&case, sabotage, effort, 12).is_some(), "{sabotage:?} passed");
    }
    assert!(finds(&case, Sabotage::Harmless, effort, 1).is_none());
}
