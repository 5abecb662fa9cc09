//! Reclaim groups of `page-map`: a log's data stays on the dies of its group, through collection too, and
//! what a group has no room for goes elsewhere and is counted.

use crate::streams::{PAGE, build, ftl, geometry, write};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, Extent, FlashLayer, Ftl, Hint, Logs, Lpn, Mapping, SimTime};
use nandscape_media::NandOptions;

/// Four dies.
const DIES: u32 = 4;

#[test]
fn pages_stay_in_the_group_of_their_log_whatever_is_collected() {
    for (at, victim) in (0..).zip(["greedy", "fifo", "random", "d-choices", "cost-benefit"]) {
        for (isolation, groups) in [("persistently", 2), ("initially", 2), ("initially,persistently", 4)] {
            let (streams, number) = (1, groups.to_string());
            let mut ftl = ftl(
                geometry(DIES, 2, 24, 6),
                &[
                    ("streams", "1"),
                    ("reclaim_groups", &number),
                    ("victim", victim),
                    ("gc_isolation", isolation),
                    ("wear", if at % 2 == 0 { "static" } else { "none" }),
                    ("wear_threshold", "3"),
                    ("gc_step", ["0", "2"][at % 2]),
                    ("background_gc", "true"),
                    ("op", "1.2"),
                ],
            );
            assert_eq!(ftl.logs(), groups * (streams + 1));
            let blocks_of_group = ftl.device().geometry().blocks() / u32::from(groups);
            let pages = ftl.logical_pages();
            let mut rng = seeded(at as u64);
            // Each page has a group, so that none has more than its share.
            let log_of = |lpn: u64, stream: u16| (lpn % u64::from(groups)) as u16 * (streams + 1) + stream;
            for step in 0..8000 {
                let lpn = below(&mut rng, pages);
                match below(&mut rng, 40) {
                    0 => drop(ftl.trim(Extent::new(lpn * PAGE, PAGE), SimTime::ZERO).unwrap()),
                    1 => drop(ftl.renew_log(log_of(lpn, 1), SimTime::ZERO).unwrap()),
                    2 => ftl.idle(SimTime::ZERO, SimTime(1_000_000)).unwrap(),
                    _ => write(&mut ftl, lpn, log_of(lpn, below(&mut rng, 2) as u16)),
                }
                if step % 499 == 0 {
                    ftl.check_invariants();
                }
            }
            ftl.check_invariants();
            for lpn in 0..pages {
                let Some(page) = ftl.lookup(Lpn(lpn as u32)) else { continue };
                let group = page.0 / ftl.device().geometry().pages_per_block / blocks_of_group;
                assert_eq!(u64::from(group), lpn % u64::from(groups), "{victim}, {isolation}: page {lpn}");
            }
            assert!(ftl.stats().gc_moved_pages > 300, "{:?}", ftl.stats());
            let spilled: u64 = (0..ftl.logs()).map(|log| ftl.log_status(log).spilled_bytes).sum();
            assert_eq!(spilled, 0, "each group holds its share");
        }
    }
}

#[test]
fn collection_of_a_group_leaves_the_dies_of_others_alone() {
    let mut ftl = ftl(
        geometry(DIES, 1, 24, 6),
        &[("streams", "1"), ("reclaim_groups", "2"), ("gc_isolation", "initially"), ("op", "1")],
    );
    let half = ftl.logical_pages() / 2;
    (0..half).for_each(|lpn| write(&mut ftl, half + lpn, 2));
    let mut rng = seeded(7);
    for _ in 0..20 * half {
        write(&mut ftl, below(&mut rng, half), 0);
    }
    let erases = |dies: std::ops::Range<u32>| -> u32 {
        (dies.start * 24..dies.end * 24).map(|block| ftl.device().erase_count(BlockId(block))).sum()
    };
    assert!(erases(0..2) > 100, "{} erases", erases(0..2));
    assert_eq!(erases(2..4), 0, "nothing was overwritten there");
}

#[test]
fn what_a_group_has_no_room_for_goes_to_the_emptiest_and_is_counted() {
    let mut ftl = ftl(
        geometry(DIES, 1, 40, 8),
        &[("streams", "1"), ("reclaim_groups", "4"), ("gc_isolation", "initially"), ("op", "0.8")],
    );
    let pages = ftl.logical_pages();
    let blocks_of_group = ftl.device().geometry().blocks() / 4;
    // Everything to stream 1 of group 1.
    let log = 3;
    (0..pages).for_each(|lpn| write(&mut ftl, lpn, log));
    let mut in_group = [0; 4];
    for lpn in 0..pages {
        in_group[(ftl.lookup(Lpn(lpn as u32)).unwrap().0 / 8 / blocks_of_group) as usize] += 1;
    }
    let status = ftl.log_status(log);
    assert_eq!(status.host_bytes, pages * PAGE);
    assert_eq!(status.spilled_bytes, (pages - in_group[1]) * PAGE);
    assert!(
        in_group[1] > pages / 4 && in_group[1] < 40 * 8,
        "more than its share, less than all: {in_group:?}"
    );
    let others = [in_group[0], in_group[2], in_group[3]];
    assert!(others.iter().max().unwrap() - others.iter().min().unwrap() <= 1, "evenly: {in_group:?}");
    // Overwrites of what it holds find room in it; data that moves to it does not.
    ftl.reset_stats();
    let mut rng = seeded(3);
    for _ in 0..20 * pages {
        write(&mut ftl, below(&mut rng, pages), log);
    }
    ftl.check_invariants();
    let status = ftl.log_status(log);
    assert!(status.spilled_bytes > 0 && status.spilled_bytes < status.host_bytes, "{status:?}");
    // What is written by all groups spreads again.
    for at in 0..40 * pages {
        write(&mut ftl, below(&mut rng, pages), (at % 4 * 2) as u16);
    }
    ftl.reset_stats();
    (0..20 * pages).for_each(|at| write(&mut ftl, below(&mut rng, pages), (at % 4 * 2) as u16));
    let spilled: u64 = (0..8).map(|log| ftl.log_status(log).spilled_bytes).sum();
    assert_eq!(spilled, 0, "each has half of its spare space for the variation");
    ftl.check_invariants();
}

#[test]
fn a_reclaim_unit_lies_in_one_group_and_each_group_has_its_own() {
    let mut ftl = ftl(
        geometry(DIES, 1, 40, 8),
        &[
            ("streams", "1"),
            ("reclaim_groups", "2"),
            ("stream_granularity", "16KiB"),
            ("frontiers", "2"),
            ("op", "0.8"),
        ],
    );
    (0..3).for_each(|lpn| write(&mut ftl, lpn, 1));
    let status: Vec<_> = (0..4).map(|log| ftl.log_status(log)).collect();
    assert!(status.iter().all(|log| log.piece_bytes == 16384), "{status:?}");
    assert_eq!(status.iter().map(|log| log.pieces).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(status[1].room_bytes, 16384 - 3 * PAGE);
    assert_eq!(ftl.renew_log(3, SimTime::ZERO).unwrap(), 0, "log 3 has no unit");
    assert_eq!(ftl.log_status(1).room_bytes, 16384 - 3 * PAGE, "and that of log 1 stays");
    assert_eq!(ftl.renew_log(1, SimTime::ZERO).unwrap(), 16384 - 3 * PAGE);
    ftl.write(Extent::new(0, 2 * PAGE), None, Hint(3), SimTime::ZERO).unwrap();
    assert_eq!(ftl.log_status(3).host_bytes, 2 * PAGE);
    ftl.check_invariants();
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let refused = |pairs: &[(&str, &str)], reason: &str| {
        let error = build(geometry(DIES, 1, 40, 8), &NandOptions::default(), pairs).unwrap_err();
        assert!(error.contains(reason), "{error}");
    };
    refused(&[("reclaim_groups", "2")], "ftl.reclaim_groups = '2': expected a layer with streams");
    refused(&[("streams", "1"), ("reclaim_groups", "3")], "a divisor of the 4 dies");
    let fixed = [("streams", "1"), ("reclaim_groups", "2"), ("allocation", "static")];
    refused(&fixed, "no such key with ftl.allocation = static");
    refused(&[("streams", "1"), ("reclaim_groups", "2"), ("split", "auto")], "or an ftl.split");
    refused(&[("streams", "1023"), ("reclaim_groups", "128")], "more than 65535 logs");
    refused(&[("streams", "40"), ("reclaim_groups", "4"), ("op", "0.5")], "of reclaim group 0");
}
