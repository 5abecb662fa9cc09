//! What the cleaning policies do to a running cache, in virtual time.

use crate::rig;

use nandscape_core::{Clocked, Op};
use nandscape_disk::Keep;
use nandscape_policies::BlockKey;
use nandscape_policies::cleaning::Needs;
use rig::{Rig, design};

const SECOND: u64 = 1_000_000_000;

fn rig(pairs: &[(&str, &str)], slow: &str) -> Rig {
    let mut all = vec![("admission", "all"), ("size", "4096b"), ("eviction", "lru")];
    all.extend(pairs);
    Rig::new(&all, ("ram", 40 << 20), (slow, 256 << 20), Keep::Nothing)
}

/// Blocks that are all over the disk, none twice within the cache's size.
fn scattered(i: u64) -> u64 {
    i * 5087 % 65_521
}

fn is_dirty(rig: &Rig, block: u64) -> bool {
    rig.cache.entry(BlockKey::new(0, block)).is_some_and(|entry| entry.dirty != 0)
}

#[test]
fn the_dirty_share_stays_between_the_watermarks() {
    let mut rig = rig(
        &[("cleaning", "watermarks"), ("clean_high", "30%"), ("clean_low", "10%"), ("clean_batch", "64")],
        "rated",
    );
    let (high, low) = (1228, 409);
    let (mut most, mut crossings, mut was_above) = (0, 0, false);
    for i in 0..20_000 {
        rig.write(scattered(i));
        rig.pass(1_000_000);
        most = most.max(rig.cache.dirty());
        assert!(most <= high + 1, "{most} at write {i}");
        let is_above = rig.cache.dirty() > u32::midpoint(low, high);
        crossings += u32::from(was_above && !is_above);
        was_above = is_above;
        assert!(crossings == 0 || rig.cache.dirty() + 64 >= low, "{} at write {i}", rig.cache.dirty());
    }
    assert!(most >= high && crossings > 3, "{most}, {crossings}");
}

#[test]
fn the_controller_arrives_at_its_target_whatever_the_load() {
    for per_second in [20, 80] {
        let mut rig = rig(&[("cleaning", "pi-rate"), ("rate_idle", "0s")], "disk");
        let target = 409.0;
        let (mut sum, mut count) = (0.0, 0.0);
        for i in 0..3000 * per_second {
            rig.write(scattered(i));
            rig.pass(SECOND / per_second);
            if i > 2500 * per_second {
                sum += f64::from(rig.cache.dirty());
                count += 1.0;
            }
        }
        let mean: f64 = sum / count;
        assert!((mean / target - 1.0).abs() < 0.05, "{mean} with {per_second} writes a second");
    }
}

#[test]
fn no_set_of_flashcache_stays_above_its_threshold() {
    let mut rig = rig(
        &[
            ("preset", "flashcache"),
            ("eviction", "fifo"),
            ("map", "linear"),
            ("ways", "64"),
            ("fallow_delay", "100000s"),
        ],
        "disk",
    );
    let threshold = 12;
    for i in 0..3000 {
        rig.write(i * 31 % 4096);
        rig.pass(200_000);
    }
    assert!(rig.counters().cleanings > 0);
    rig.pass(30 * SECOND);
    let mut in_set = vec![0; 64];
    for block in 0..65_536 {
        in_set[block as usize / 64 % 64] += u32::from(is_dirty(&rig, block));
    }
    assert_eq!(in_set, vec![threshold; 64], "down to the threshold, and no further");
}

#[test]
fn what_nobody_writes_any_more_is_cleaned_at_its_age_and_not_before() {
    let mut rig = rig(&[("cleaning", "idle-age"), ("fallow_delay", "10s"), ("fallow_speed", "20")], "disk");
    for block in 0..100 {
        rig.write(block * 9);
    }
    rig.pass(5 * SECOND);
    for block in 0..50 {
        rig.write(block * 9);
    }
    rig.pass(5 * SECOND - 1_000_000);
    assert_eq!(rig.cache.dirty(), 100, "none is old enough");
    rig.pass(SECOND);
    let cleaned = 100 - rig.cache.dirty();
    assert!((19..=21).contains(&cleaned), "{cleaned} in a second at 20 a second");
    assert!((0..50).all(|block| is_dirty(&rig, block * 9)), "those written again are young");
    rig.pass(100 * SECOND);
    assert_eq!((rig.cache.dirty(), rig.counters().idle_cleanings), (0, 100));
}

#[test]
fn a_set_in_which_nothing_became_dirty_for_long_is_cleaned_whole() {
    // Sets of 64 blocks in a row.
    let pairs = [("map", "linear"), ("ways", "64"), ("cleaning", "set-age"), ("set_age", "10s")];
    let mut rig = rig(&pairs, "disk");
    rig.write(1000);
    rig.pass(SECOND);
    for block in 0..10 {
        rig.write(block);
        rig.write(64 + block);
    }
    // The pass after ten seconds finds one set that is ten seconds old.
    rig.pass(11 * SECOND);
    assert_eq!(rig.cache.dirty(), 20);
    // A block that becomes dirty makes its whole set young; one that is written again does not.
    rig.write(50);
    rig.write(64);
    rig.pass(7 * SECOND);
    assert_eq!(rig.cache.dirty(), 21);
    rig.pass(2 * SECOND);
    assert!((0..10).all(|block| !is_dirty(&rig, 64 + block)), "the set that nothing came to");
    assert!((0..10).all(|block| is_dirty(&rig, block)) && is_dirty(&rig, 50), "and no other");
    // The other one is old enough after 22 seconds, and cleaned by the next pass.
    rig.pass(8 * SECOND);
    assert_eq!(rig.cache.dirty(), 11);
    rig.pass(2 * SECOND);
    assert_eq!((rig.cache.dirty(), rig.counters().idle_cleanings), (0, 22));
}

/// Since journalled blocks go to another slot when they are written again, which is not to be seen from
/// outside.
#[test]
fn a_block_that_is_rewritten_all_the_time_is_as_old_as_its_first_write() {
    for (policy, pairs) in [
        ("watermarks", &[("clean_max_age", "10s")][..]),
        ("alru", &[("alru_stale", "10s"), ("alru_wake", "1s")]),
    ] {
        let mut rig = rig(&[&[("cleaning", policy)], pairs].concat(), "rated");
        let mut written = Vec::new();
        for tenth in 0..250 {
            rig.write(7);
            // Committed, so that the next write goes elsewhere.
            rig.run(Op::Flush, 0, 0, 0);
            rig.pass(SECOND / 10);
            let own = rig.counters();
            written.push(own.cleanings);
            assert_eq!(
                (own.dirtied - own.cleaned, own.relabels >= tenth / 2),
                (u64::from(rig.cache.dirty()), true)
            );
        }
        // By the age since it became dirty, and since its last write.
        let expected = if policy == "watermarks" { [0, 1, 2] } else { [0, 0, 0] };
        assert_eq!([written[90], written[110], written[240]], expected, "{policy}");
        assert_eq!(
            rig.counters().dirtied,
            rig.counters().cleanings + u64::from(rig.cache.dirty()),
            "{policy}"
        );
    }
}

#[test]
fn limits_on_writes_and_bytes_are_kept_to_the_piece() {
    for (pairs, piece) in [
        ([("clean_iops", "50"), ("clean_burst", "10ms")], 1),
        ([("clean_bandwidth", "204800"), ("clean_burst", "10ms")], 4096),
    ] {
        let mut all = vec![
            ("cleaning", "set-threshold,watermarks"),
            ("clean_threshold", "1%"),
            ("clean_high", "1%"),
            ("clean_low", "0%"),
        ];
        all.extend(pairs);
        let mut rig = rig(&all, "rated");
        let mut seen = Vec::new();
        for i in 0..3000 {
            rig.write(scattered(i));
            rig.pass(5_000_000);
            let counters = rig.counters();
            seen.push(if piece == 1 { counters.cleaning_writes } else { counters.cleaning_bytes / 4096 });
        }
        // In any span of time no more than the rate allows and one piece more; and in all no less.
        let spans = [1, 10, 100, 1000, 2999];
        for span in spans {
            let most = seen.windows(span + 1).map(|window| window[span] - window[0]).max().expect("a window");
            let allowed = (span as u64 * 5).div_ceil(20) + 1;
            assert!(most <= allowed, "{most} in {span} steps of 5 ms, {allowed} allowed, {pairs:?}");
        }
        assert!(seen[2999] - seen[100] >= 2899 * 5 / 20 - 2, "{} in all, {pairs:?}", seen[2999]);
        assert!(rig.cache.dirty() > 0);
    }
}

#[test]
fn neighbours_go_to_the_disk_in_one_write_and_are_counted() {
    let mut rig = rig(&[("cleaning", "smq"), ("smq_idle", "1s"), ("eviction", "smq")], "disk");
    // Runs of 16 blocks, written in any order.
    for i in 0..160 {
        let i = i * 37 % 160;
        rig.write(i / 16 * 1000 + i % 16);
    }
    rig.pass(60 * SECOND);
    let counters = rig.counters();
    assert_eq!((rig.cache.dirty(), counters.cleanings), (0, 160));
    assert_eq!((counters.cleaning_writes, counters.back_merges + counters.front_merges), (10, 150));
    assert_eq!(counters.disk_writes, 10);
    assert_eq!(counters.cleaning_bytes, 160 * 4096);
}

#[test]
fn a_block_written_again_on_its_way_to_the_disk_stays_dirty() {
    let mut rig = Rig::new(
        &[("cleaning", "smq"), ("smq_idle", "1ms"), ("size", "64b"), ("admission", "all")],
        ("ram", 1 << 20),
        ("disk", 1 << 20),
        Keep::Bytes,
    );
    rig.write(3);
    rig.pass(1_000_000);
    let counters = rig.counters();
    assert_eq!((counters.cleaning_writes, rig.cache.dirty()), (1, 0), "it is on its way");
    assert!(rig.cache.gauges().queued > 0, "and not there yet");
    rig.run(Op::Write, 3 * 4096, 4096, 99);
    assert_eq!(rig.cache.dirty(), 1);
    rig.pass(900_000);
    assert_eq!(rig.cache.dirty(), 1, "the disk has what was there before");
    rig.pass(SECOND);
    assert_eq!((rig.cache.dirty(), rig.counters().cleanings), (0, 2));
    rig.cache.set_mode(nandscape_cache::Mode::PassThrough);
    rig.read(3);
}

#[test]
fn the_longest_dirty_go_first_and_so_do_those_that_would_be_evicted() {
    let pairs =
        [("cleaning", "watermarks"), ("clean_high", "100%"), ("clean_low", "100%"), ("clean_max_age", "10s")];
    let mut rig = rig(&[&pairs[..], &[("clean_batch", "10")]].concat(), "disk");
    for i in 0..100 {
        rig.write(scattered(i));
        rig.pass(SECOND / 20);
    }
    // The first is ten seconds old when the last is five.
    rig.pass(5 * SECOND);
    let first_clean = (0..100).take_while(|i| !is_dirty(&rig, scattered(*i))).count();
    assert!(first_clean > 0 && first_clean <= 11, "{first_clean}");
    assert!((first_clean as u64..100).all(|i| is_dirty(&rig, scattered(i))), "in the order of their ages");

    let mut rig = self::rig(
        &[("cleaning", "smq"), ("smq_idle", "1s"), ("smq_migration", "40960"), ("eviction", "lru")],
        "disk",
    );
    for i in 0..100 {
        rig.write(scattered(i));
    }
    for i in 0..50 {
        rig.read(scattered(i));
    }
    rig.pass(SECOND + 1);
    let clean: Vec<u64> = (0..100).filter(|i| !is_dirty(&rig, scattered(*i))).collect();
    assert_eq!(clean, (50..60).collect::<Vec<_>>(), "those read since are evicted later");
}

#[test]
fn who_does_not_clean_costs_nothing() {
    for name in ["rapidcache", "dm-cache-fiu"] {
        let design = design(&[("preset", name)]);
        assert!(design.cleanings(4096, 512).expect(name).is_empty(), "{name}");
    }
    let all = design(&[("preset", "enhanceio")]).cleanings(4096, 512).expect("a design");
    let needs: Vec<_> = all.iter().map(|policy| policy.needs()).collect();
    assert_eq!(needs, [Needs::NoAges, Needs::OfSets], "no age for each block");
    let none = rig(&[("cleaning", "none")], "disk");
    let some = rig(&[("cleaning", "idle-age")], "disk");
    assert!(none.cache.gauges().memory_bytes + 16 * 4096 <= some.cache.gauges().memory_bytes);
    assert_eq!(none.cache.next_event(), None);
    assert_eq!(design(&[("cleaning", "none")]).cleaning_names().collect::<Vec<_>>(), ["none"]);
}
