//! Every published design, and every cleaning policy, over stores that take time: nothing is lost, and the
//! counters add up.

use crate::rig;

use nandscape_cache::presets::PRESETS;
use nandscape_core::Op;
use nandscape_core::rng::seeded;
use nandscape_disk::Keep;
use nandscape_policies::cleaning::CLEANINGS;
use rig::{QUICK, Rig};

const STORES: [(&str, &str); 3] = [("ram", "ram"), ("ram", "disk"), ("rated", "disk")];

fn try_out(pairs: &[(&str, &str)], (fast, slow): (&str, &str), steps: u32, seed: u64) {
    let mut rig = Rig::new(pairs, (fast, 2 << 20), (slow, 2 << 20), Keep::Bytes);
    let mut rng = seeded(seed);
    for step in 0..steps {
        rig.step(&mut rng);
        if step % 16 == 0 {
            rig.cache.check_invariants();
        }
    }
    rig.pass(1000);
    for block in 0..rig.model.len() as u64 / rig.block {
        rig.read(block);
    }
    let counters = rig.counters();
    assert_eq!(counters.check(), Ok(()), "{pairs:?}");
    let (reads, writes) = (counters.reads, counters.writes);
    rig.pass(3600 * 1_000_000_000);
    rig.cache.check_invariants();
    let timed = rig.counters().latency.total();
    assert_eq!(timed, reads + writes, "{pairs:?} over {fast} and {slow}: every answer is timed");
    assert_eq!(rig.cache.gauges().queued, 0, "{pairs:?}");
}

#[test]
fn every_design_gives_back_what_was_written_last() {
    for (number, preset) in PRESETS.iter().enumerate() {
        for mode in preset.modes {
            for (place, stores) in STORES.into_iter().enumerate() {
                let pairs =
                    [("preset", preset.info.name), ("mode", mode.name()), ("size", "512KiB"), ("seed", "3")];
                try_out(&pairs, stores, 300, (10 * number + place) as u64);
            }
        }
    }
}

#[test]
fn every_cleaning_policy_loses_nothing_and_leaves_the_counters_right() {
    assert_eq!(QUICK.len(), CLEANINGS.len(), "every policy is tried");
    let all = "set-threshold,idle-age,set-age,watermarks";
    let several: &[(&str, &str)] = &[("fallow_delay", "1s"), ("clean_max_age", "2s"), ("clean_iops", "50")];
    for (number, (name, params)) in QUICK.iter().copied().chain([(all, several)]).enumerate() {
        for map in ["full", "linear"] {
            for metadata in ["journal", "slots"] {
                for (place, stores) in STORES.into_iter().enumerate() {
                    let mut pairs = vec![
                        ("cleaning", name),
                        ("map", map),
                        ("metadata", metadata),
                        ("size", "512KiB"),
                        ("block", if number % 2 == 0 { "4k" } else { "16k" }),
                    ];
                    pairs.extend((map == "linear").then_some(("ways", "8")));
                    pairs.extend(params.iter().copied());
                    try_out(&pairs, stores, 250, (100 + 10 * number + place) as u64);
                }
            }
        }
    }
}

#[test]
fn with_cleaning_a_cache_that_is_left_alone_becomes_clean_and_the_disk_complete() {
    for (name, params) in [
        ("pi-rate", &[("rate_idle", "1s")][..]),
        ("idle-age", &[("fallow_delay", "1s"), ("fallow_speed", "1000")]),
        ("set-age", &[]),
        ("smq", &[]),
        ("cleaner", &[("cleaner_migration", "64KiB")]),
        ("alru", &[]),
        ("watermarks", &[("clean_max_age", "1s")]),
    ] {
        let mut pairs = vec![("cleaning", name), ("size", "1MiB"), ("admission", "all")];
        pairs.extend(params.iter().copied());
        let mut rig = Rig::new(&pairs, ("rated", 2 << 20), ("disk", 4 << 20), Keep::Bytes);
        for block in 0..100 {
            rig.write(block * 3);
        }
        assert!(rig.cache.dirty() > 0, "{name}");
        rig.pass(600 * 1_000_000_000);
        assert_eq!(rig.cache.dirty(), 0, "{name}");
        rig.cache.check_invariants();
        let counters = rig.counters();
        assert_eq!((counters.cleaned, counters.cleanings), (100, 100), "{name}");
        rig.run(Op::Flush, 0, 0, 0);
        // Past the cache, which has nothing that the disk does not have.
        rig.cache.set_mode(nandscape_cache::Mode::PassThrough);
        let before = rig.counters().read_piece_hits;
        for block in 0..300 {
            rig.read(block);
        }
        assert_eq!(rig.counters().read_piece_hits, before, "{name}");
    }
}
