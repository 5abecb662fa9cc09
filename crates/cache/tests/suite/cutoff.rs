//! Writes that a cache has no room for: past it above a share of dirty slots, and what leaves to make room.

use crate::rig;

use nandscape_cache::Mode;
use nandscape_cache::engine::Disk;
use nandscape_core::{Op, SimTime, Subsystem};
use nandscape_disk::Keep;
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_sim::{Pacing, Precondition, ReplayOptions, Snapshot, replay};
use nandscape_trace::{OpenOptions, Target, open};
use rig::{Rig, design, store};

const BLOCK: u64 = 4096;

/// 20 slots over memory, with nothing that cleans.
fn rig(pairs: &[(&str, &str)]) -> Rig {
    let mut all = vec![("size", "20b"), ("cleaning", "none"), ("admission", "dirty-cutoff")];
    all.extend(pairs);
    Rig::new(&all, ("ram", 4 << 20), ("ram", 4 << 20), Keep::Bytes)
}

fn past(rig: &Rig) -> u64 {
    rig.counters().bypass.write_pieces[Bypass::Dirty.index()]
}

fn dirty(rig: &Rig, block: u64) -> u16 {
    rig.cache.entry(BlockKey::new(0, block)).map_or(0, |entry| entry.dirty)
}

/// Reads everything back, from the cache and, as far as the cache has nothing newer, from the disk.
fn check(rig: &mut Rig) {
    for mode in [Mode::WriteOnly, Mode::PassThrough] {
        rig.cache.set_mode(mode);
        for block in 0..100 {
            rig.read(block);
        }
    }
    rig.cache.check_invariants();
    assert_eq!(rig.counters().check(), Ok(()));
}

#[test]
fn above_the_cut_off_a_write_that_misses_goes_to_the_disk_and_one_that_hits_stays_in_the_cache() {
    let mut rig = rig(&[("cutoff_dirty", "50%")]);
    for block in 0..10 {
        rig.write(block);
    }
    assert_eq!((rig.cache.dirty(), past(&rig)), (10, 0));
    rig.write(50);
    assert_eq!((rig.cache.dirty(), past(&rig), rig.counters().disk_writes), (10, 1, 1));
    assert_eq!(rig.cache.entry(BlockKey::new(0, 50)), None);
    assert_eq!(rig.counters().bypass.bytes[Bypass::Dirty.index()], BLOCK);
    // A block that is dirty, a part of it, and one that is clean.
    rig.write(3);
    rig.run(Op::Write, 4 * BLOCK + 512, 1024, 9);
    rig.read(60);
    rig.write(60);
    assert!(dirty(&rig, 3) != 0 && dirty(&rig, 60) != 0);
    assert_eq!((rig.cache.dirty(), past(&rig), rig.counters().disk_writes), (11, 1, 1));
    // Once some of them are on the disk, there is room again.
    rig.cache.clean(2, rig.at).expect("no error");
    rig.write(51);
    assert_eq!((rig.cache.dirty(), past(&rig)), (10, 1));
    check(&mut rig);
}

#[test]
fn a_write_beside_and_over_dirty_blocks_is_what_is_read_afterwards_wherever_it_went() {
    let mut rig = rig(&[("cutoff_dirty", "50%")]);
    for block in 0..10 {
        rig.write(2 * block);
    }
    // Of 12 blocks every other one is dirty in the cache, and the others go past it.
    rig.run(Op::Write, 2 * BLOCK - 512, 12 * BLOCK, 77);
    assert_eq!((rig.cache.dirty(), past(&rig)), (10, 7));
    rig.run(Op::Flush, 0, 0, 0);
    check(&mut rig);
}

#[test]
fn a_request_is_not_parted_by_the_cut_off() {
    let mut rig = rig(&[("cutoff_dirty", "50%")]);
    for block in 0..9 {
        rig.write(block);
    }
    rig.run(Op::Write, 40 * BLOCK, 4 * BLOCK, 1);
    assert_eq!((rig.cache.dirty(), past(&rig)), (13, 0), "one was free to go");
    rig.run(Op::Write, 50 * BLOCK, 4 * BLOCK, 1);
    assert_eq!((rig.cache.dirty(), past(&rig), rig.counters().disk_writes), (13, 4, 1), "in one disk write");
    check(&mut rig);
}

#[test]
fn large_requests_have_a_share_of_their_own() {
    let mut rig = rig(&[("cutoff_large", "16KiB"), ("cutoff_large_dirty", "20%")]);
    rig.run(Op::Write, 0, 4 * BLOCK, 1);
    rig.run(Op::Write, 20 * BLOCK, 4 * BLOCK, 1);
    assert_eq!((rig.cache.dirty(), past(&rig)), (4, 4));
    rig.run(Op::Write, 30 * BLOCK, 3 * BLOCK, 1);
    assert_eq!((rig.cache.dirty(), past(&rig)), (7, 4), "70% for all others");
    check(&mut rig);
}

#[test]
fn modes_that_make_nothing_dirty_know_no_cut_off() {
    let mut rig = rig(&[("cutoff_dirty", "10%")]);
    rig.write(0);
    rig.write(1);
    rig.cache.set_mode(Mode::WriteThrough);
    rig.write(2);
    assert!(rig.cache.entry(BlockKey::new(0, 2)).is_some());
    assert_eq!(past(&rig), 0);
    check(&mut rig);
}

#[test]
fn bad_values_are_refused_by_name() {
    let error = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        nandscape_cache::Design::parse("cache.", &pairs).expect_err("refused").to_string()
    };
    for (key, value) in [("cutoff_dirty", "101%"), ("cutoff_large", "big"), ("rate_high", "-1")] {
        let error = error(&[(key, value)]);
        assert!(error.contains(&format!("cache.{key} = '{value}'")), "{error}");
    }
    let error = error(&[("admission", "all"), ("cutoff_dirty", "50%")]);
    assert!(error.contains("cache.cutoff_dirty") && error.contains("dirty-cutoff"), "{error}");
}

#[test]
fn a_dirty_block_that_leaves_takes_its_neighbours_on_the_disk_along_in_one_write() {
    let mut rig = rig(&[("admission", "all"), ("victims", "any"), ("eviction", "lru")]);
    for block in [7, 5, 3, 4, 6, 8, 30, 31, 33] {
        rig.write(block);
    }
    for block in 50..62 {
        rig.read(block);
    }
    let before = rig.counters();
    assert_eq!((before.disk_writes, before.dirty_replacements), (1, 1), "block 7 has left");
    assert_eq!((before.disk_write_bytes, before.cleanings, before.forced_cleanings), (6 * BLOCK, 6, 1));
    assert_eq!((before.front_merges, before.back_merges), (4, 1));
    assert_eq!(rig.cache.dirty(), 3);
    for block in 62..67 {
        rig.read(block);
    }
    assert_eq!(rig.counters().disk_writes, 1, "the others are clean");
    check(&mut rig);
}

#[test]
fn clean_blocks_leave_before_dirty_ones_that_are_a_little_colder() {
    for (victims, expected) in [("any", 4), ("prefer-clean", 0)] {
        let mut rig = rig(&[("admission", "all"), ("victims", victims), ("eviction", "lru")]);
        for block in 0..8 {
            rig.write(3 * block);
        }
        for block in 50..66 {
            rig.read(block);
        }
        assert_eq!(rig.counters().dirty_replacements, expected, "{victims}");
        assert_eq!(rig.counters().read_replacements, 4, "{victims}");
        check(&mut rig);
    }
}

#[test]
fn without_clean_blocks_dirty_ones_leave_all_the_same() {
    let mut rig = rig(&[("admission", "all")]);
    for block in 0..40 {
        rig.write(2 * block);
    }
    assert!(rig.counters().dirty_replacements >= 20 - 1);
    assert_eq!(past(&rig), 0);
    check(&mut rig);
}

/// Cleaning helps nobody where writes only hit: what it makes clean is dirty again at the next write.
#[test]
fn writes_that_hit_are_cleaned_at_the_rate_and_writes_that_miss_as_fast_as_the_disk_goes() {
    let size = 1000 * BLOCK;
    for (misses, cleaned) in [(0, 0..=400), (10, 2_000..=u64::MAX)] {
        let pairs = [("size", "1000b"), ("rate_max", "40KiB"), ("cutoff_dirty", "80%")];
        let mut rig = Rig::new(&pairs, ("ram", 2 * size), ("ram", 64 * size), Keep::Nothing);
        // From 810 dirty slots on for 30 s, 100 writes a second.
        for n in 0..3810 {
            let is_miss = n >= 810 && n % 50 < misses;
            rig.write(if is_miss { 2 * n } else { 7 * n % 810 });
            rig.at += 10_000_000;
        }
        let counters = rig.counters();
        assert_eq!(past(&rig) > 0, misses > 0);
        let seen = counters.cleanings;
        assert!(cleaned.contains(&seen), "{seen} with {misses} of 50 missed, {} dirty", rig.cache.dirty());
    }
}

/// Seconds that writes take which are far more than the cache has room for, 32 at a time.
fn overloaded(workload: &str, pairs: &[(&str, &str)]) -> f64 {
    let mut all = vec![("size", "32MiB")];
    all.extend(pairs);
    let disk = store("article-hdd", 64 << 30, Keep::Nothing);
    let target = Target { capacity_bytes: disk.capacity_bytes(), ..Target::NONE };
    let fast = store("article-ssd", 128 << 20, Keep::Nothing);
    let started =
        design(&all).create(fast, vec![Disk { store: disk, uuid: [1; 16] }], [2; 16], SimTime::ZERO);
    let started = started.expect("a cache");
    let mut cache = started.cache;
    cache.reset_counters(started.at);
    let mut reader = open(workload, &OpenOptions::default(), target).expect("a workload");
    let options = ReplayOptions {
        pacing: Pacing::Closed { depth: 32 },
        precondition: &Precondition::default(),
        snapshot: Snapshot::Unused,
        until_steady: None,
        seed: 1,
        with_series: false,
        marks: &[],
        with_detail: false,
        stop: None,
    };
    let done =
        replay(&mut cache, &mut *reader, workload, &options, &mut || (), &mut |_| ()).expect("no error");
    done.result.speed.time.simulated_ns as f64 / 1e9
}

#[test]
fn more_writes_than_the_cache_has_room_for_are_no_slower_than_on_the_disk_alone() {
    for workload in ["uniform:bs=8k,count=16k", "zipf:bs=4k,count=50k,span=512MiB", "uniform:bs=64k,count=4k"]
    {
        let alone = overloaded(workload, &[("mode", "pass-through")]);
        let cached = overloaded(workload, &[]);
        // As it was: everything enters, and leaves one by one.
        let old = [("admission", "sequential"), ("victims", "any"), ("rate_high", "100%")];
        let old = overloaded(workload, &old);
        assert!(cached <= alone * 1.05, "{workload}: {cached:.1} s, {alone:.1} s on the disk alone");
        assert!(cached < old * 0.8, "{workload}: {cached:.1} s, without a cut-off {old:.1} s");
    }
}
