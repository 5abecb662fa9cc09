//! Caches under the suite for subsystems: several volumes over disks with an arm and a queue, flash, rated or
//! memory as the fast side, every mode and changes of it while commands are under way, every published
//! design, cleaning.
//!
//! `NANDSCAPE_ROUNDS` is the number of seeds for each (3 where it is not set).

use crate::rig;
use crate::support::Ordered;

use nandscape_cache::engine::Disk;
use nandscape_cache::presets::PRESETS;
use nandscape_cache::{Cache, Mode};
use nandscape_core::{FlashDevice, Geometry, Params, SimTime, Store, Subsystem};
use nandscape_disk::{Keep, registry};
use nandscape_media::{Fifo, ReadFirst, Scheduler};
use nandscape_namespace::{NamespaceStore, NvmSubsystem};
use nandscape_policies::cleaning::CLEANINGS;
use nandscape_policies::eviction::{AnyEviction, EVICTIONS};
use nandscape_testkit::conformance::{Device, Shape, device};
use nandscape_testkit::subsystem::{Seen, Trial, run};
use rig::{QUICK, design, store, typed};

const VOLUME: u64 = 640 << 10;

fn rounds() -> u64 {
    std::env::var("NANDSCAPE_ROUNDS").map_or(3, |text| text.parse().expect("NANDSCAPE_ROUNDS is a number"))
}

/// What the cache is on.
#[derive(Clone, Copy, Debug)]
enum Fast {
    Store(&'static str),
    Flash,
    /// A store of the registry that is written in order.
    Ordered(&'static str),
    /// Flash whose scheduler lets reads overtake.
    ReadFirstFlash,
}

fn flash<S: Scheduler + Send + 'static>() -> Box<dyn Store + Send> {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 20,
        pages_per_block: 8,
        page_bytes: 4096,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    let shape = Shape {
        name: "a cache device",
        geometry: geometry.checked().expect("possible"),
        bad: Vec::new(),
        units: 1,
    };
    let device: Device<S> = device::<S>(&shape, false);
    Box::new(NamespaceStore::new(Box::new(over(device)), 0, 512))
}

fn over<D: FlashDevice + Send + 'static>(device: D) -> NvmSubsystem {
    let entry = nandscape_ftl::find("page-map").expect("registered");
    let ftl = (entry.build)(Box::new(device), &Params::defaults(entry.info)).expect("it fits");
    NvmSubsystem::plain(ftl)
}

/// A cache of half a MiB or less in front of two volumes.
fn cache(pairs: &[(&str, &str)], fast: Fast, disk: &[(&str, &str)]) -> Cache<AnyEviction> {
    let fast = match fast {
        Fast::Store(kind) => store(kind, 2 << 20, Keep::Bytes),
        Fast::Flash => flash::<Fifo>(),
        Fast::Ordered(kind) => Box::new(Ordered::new(store(kind, 2 << 20, Keep::Bytes), 1 << 20, 33 << 10)),
        Fast::ReadFirstFlash => flash::<ReadFirst>(),
    };
    let disks = [1, 2].map(|number| Disk {
        store: registry::build("disk", "disk.", &typed(disk), VOLUME, Keep::Bytes).expect("a disk"),
        uuid: [number; 16],
    });
    let started = design(pairs).create(fast, disks.into(), [9; 16], SimTime::ZERO);
    let mut started = started.unwrap_or_else(|error| panic!("{pairs:?}: {error}"));
    started.cache.reset_counters(started.at);
    started.cache
}

fn try_out(pairs: &[(&str, &str)], modes: &[Mode], fast: Fast, disk: &[(&str, &str)], seed: u64) -> Seen {
    let control = |cache: &mut Cache<AnyEviction>, what: u32, at: SimTime| {
        if what.is_multiple_of(3) {
            cache.clean(1 + what % 20, at).map(drop).map_err(|error| error.to_string())
        } else {
            cache.set_mode(modes[what as usize % modes.len()]);
            Ok(())
        }
    };
    let make = || Box::new(cache(pairs, fast, disk));
    let trial = Trial { make: &make, unit_bytes: 512, is_zeroed: true, control: &control };
    let seen =
        run(&trial, seed, 300).unwrap_or_else(|error| panic!("{pairs:?} on {fast:?}, {disk:?}: {error}"));
    let report = seen.cache.as_ref().expect("it is a cache");
    assert_eq!(report.counters.reads, seen.host.iter().map(|host| host.reads).sum::<u64>(), "{pairs:?}");
    assert_eq!(report.counters.writes, seen.host.iter().map(|host| host.writes).sum::<u64>(), "{pairs:?}");
    seen
}

const FASTS: [Fast; 4] = [Fast::Store("ram"), Fast::Store("rated"), Fast::Flash, Fast::ReadFirstFlash];
const DISKS: [&[(&str, &str)]; 3] = [
    &[],
    &[("order", "elevator"), ("depth", "4"), ("write_cache", "64KiB")],
    &[("order", "fifo"), ("write_cache", "0"), ("read_ahead", "0"), ("read_segments", "0")],
];

#[test]
fn every_design_holds_what_was_written_while_its_mode_changes() {
    let (mut unknown, mut overtaken) = (0, 0);
    for (number, preset) in PRESETS.iter().enumerate() {
        for (place, fast) in FASTS.into_iter().enumerate() {
            for round in 0..rounds() {
                let seed = 1000 * round + (10 * number + place) as u64;
                let pairs = [("preset", preset.info.name), ("size", "256KiB"), ("seed", "3")];
                let disk = DISKS[(number + place) % DISKS.len()];
                let seen = try_out(&pairs, preset.modes, fast, disk, seed);
                unknown += seen.unknown;
                overtaken += seen.overtaken;
            }
        }
    }
    assert!(unknown > 0 && overtaken > 0, "commands wait for disks, and hits overtake them");
}

#[test]
fn every_cleaning_policy_with_every_metadata_and_block() {
    assert_eq!(QUICK.len(), CLEANINGS.len(), "every policy is tried");
    let mut cleaned = 0;
    for (number, (name, params)) in QUICK.iter().enumerate() {
        for (place, (metadata, block)) in
            [("journal", "4k"), ("slots", "4k"), ("journal", "16k"), ("slots", "8k")].into_iter().enumerate()
        {
            for round in 0..rounds() {
                let mut pairs = vec![
                    ("cleaning", *name),
                    ("metadata", metadata),
                    ("block", block),
                    ("size", "256KiB"),
                    ("admission", "all"),
                ];
                pairs.extend(
                    (place % 2 == 1).then_some([("map", "linear"), ("ways", "8")]).into_iter().flatten(),
                );
                pairs.extend(params.iter().copied());
                let (fast, disk) = (FASTS[(number + place) % 4], DISKS[(number + place) % 3]);
                let seed = 1000 * round + (10 * number + place) as u64;
                let seen = try_out(
                    &pairs,
                    &[Mode::WriteBack, Mode::WriteOnly, Mode::WriteThrough],
                    fast,
                    disk,
                    seed,
                );
                cleaned += u64::from(seen.cache.expect("it is a cache").counters.cleaned > 0);
            }
        }
    }
    assert!(cleaned > 20 * rounds(), "cleaned in {cleaned} runs");
}

#[test]
fn every_eviction_policy() {
    for (number, info) in EVICTIONS.iter().enumerate() {
        for round in 0..rounds() {
            let pairs = [("eviction", info.name), ("size", "160KiB"), ("admission", "all"), ("seed", "5")];
            let seed = 1000 * round + 500 + number as u64;
            try_out(&pairs, &Mode::ALL, FASTS[number % 4], DISKS[number % 3], seed);
        }
    }
}

#[test]
fn on_stores_that_are_written_in_order() {
    let fasts = [Fast::Ordered("ram"), Fast::Ordered("rated"), Fast::Ordered("disk")];
    let mut misses = 0;
    for (number, (eviction, block, size)) in [
        ("fifo", "4k", "256KiB"),
        ("lru", "4k", "160KiB"),
        ("s3-fifo", "512", "100KiB"),
        ("lru", "8k", "256KiB"),
        ("clock", "16k", "256KiB"),
    ]
    .into_iter()
    .enumerate()
    {
        for (place, fast) in fasts.into_iter().enumerate() {
            for metadata in ["journal", "none"] {
                for round in 0..rounds() {
                    let pairs = [
                        ("eviction", eviction),
                        ("block", block),
                        ("size", size),
                        ("metadata", metadata),
                        ("mode", if metadata == "none" { "write-through" } else { "write-back" }),
                        ("admission", "all"),
                        ("seed", "5"),
                    ];
                    let modes: &[Mode] = if metadata == "none" {
                        &[Mode::WriteThrough, Mode::WriteAround]
                    } else {
                        &Mode::ALL
                    };
                    let seed = 1000 * round + 700 + 10 * number as u64 + place as u64;
                    let seen = try_out(&pairs, modes, fast, DISKS[(number + place) % 3], seed);
                    misses += seen.cache.expect("it is a cache").counters.read_misses;
                }
            }
        }
    }
    assert!(misses > 0, "blocks came from the disk");
}
