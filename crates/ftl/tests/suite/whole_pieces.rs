//! `ftl.collect = piece`: what collection empties is a reclaim unit from end to end.

use crate::streams::{PAGE, build, ftl, geometry, write};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, Extent, FlashLayer, Ftl, Logs, Lpn, Mapping, SimTime};
use nandscape_ftl::PageMap;
use nandscape_media::NandOptions;
use std::collections::BTreeSet;

/// Erases of each block.
fn erases(ftl: &PageMap<impl nandscape_core::FlashDevice>) -> Vec<u32> {
    (0..ftl.device().geometry().blocks()).map(|block| ftl.device().erase_count(BlockId(block))).collect()
}

#[test]
fn a_unit_is_emptied_from_end_to_end_before_another_one() {
    // One die, units of four blocks of eight pages, one log.
    let mut ftl = ftl(
        geometry(1, 1, 48, 8),
        &[
            ("streams", "1"),
            ("collect", "piece"),
            ("stream_granularity", "16KiB"),
            ("frontiers", "1"),
            ("gc_isolation", "initially"),
            ("op", "0.5"),
        ],
    );
    let pages = ftl.logical_pages();
    (0..pages).for_each(|lpn| write(&mut ftl, lpn, 0));
    // Of the first unit a page of each block stays; the second loses all of its first block.
    let overwritten = (0..32).filter(|lpn| lpn % 8 > 0).chain(32..40);
    overwritten.for_each(|lpn| write(&mut ftl, lpn, 0));
    let before = erases(&ftl);
    assert_eq!(before.iter().sum::<u32>(), 0);
    let mut order = Vec::new();
    // From the others a little.
    for lpn in (0..).map(|at| 64 + at * 37 % 192) {
        let counts = erases(&ftl);
        write(&mut ftl, lpn, 0);
        let now = erases(&ftl);
        order.extend((0..counts.len() as u32).filter(|block| now[*block as usize] > counts[*block as usize]));
        if order.len() >= 4 {
            break;
        }
    }
    // A block by itself would have been the first block of the second unit.
    assert_eq!(order, [0, 1, 2, 3], "the four blocks of the unit with most to gain, in turn");
    assert_eq!(ftl.stats().gc_moved_pages, 4);
    ftl.check_invariants();
}

#[test]
fn random_loads_keep_every_invariant_and_cost_more_than_single_blocks() {
    let mut wafs = [0.0; 2];
    for (collect, waf) in ["block", "piece"].into_iter().zip(&mut wafs) {
        for (seed, victim) in
            ["greedy", "fifo", "random", "d-choices", "cost-benefit"].into_iter().enumerate()
        {
            for (isolation, step) in [("persistently", "0"), ("initially", "3")] {
                let mut ftl = ftl(
                    geometry(4, 1, 48, 6),
                    &[
                        ("streams", "2"),
                        ("collect", collect),
                        ("stream_granularity", "24KiB"),
                        ("frontiers", "2"),
                        ("victim", victim),
                        ("gc_isolation", isolation),
                        ("gc_step", step),
                        ("background_gc", if seed % 2 == 0 { "true" } else { "false" }),
                        ("wear", "dynamic"),
                        ("op", "0.8"),
                    ],
                );
                let pages = ftl.logical_pages();
                let mut rng = seeded(seed as u64);
                for at in 0..9000 {
                    let lpn = below(&mut rng, pages);
                    let stream = (lpn % 3) as u16;
                    match below(&mut rng, 50) {
                        0 => drop(ftl.trim(Extent::new(lpn * PAGE, PAGE), SimTime::ZERO).unwrap()),
                        1 => drop(ftl.renew_log(stream, SimTime::ZERO).unwrap()),
                        2 => ftl.idle(SimTime::ZERO, SimTime(1_000_000)).unwrap(),
                        _ => write(&mut ftl, lpn, stream),
                    }
                    if at % 97 == 0 {
                        ftl.check_invariants();
                    }
                }
                ftl.check_invariants();
                assert!(ftl.stats().gc_moved_pages > 300, "{collect}, {victim}: {:?}", ftl.stats());
                *waf += ftl.stats().gc_moved_pages as f64;
            }
        }
    }
    assert!(wafs[1] > 1.1 * wafs[0], "copies: {wafs:?} of blocks and of units of eight");
}

#[test]
fn a_unit_of_one_block_is_a_block() {
    let moved = |collect: &str| {
        let keys = [
            ("streams", "1"),
            ("collect", collect),
            ("stream_granularity", "4KiB"),
            ("frontiers", "1"),
            ("op", "0.4"),
        ];
        let mut ftl = ftl(geometry(2, 1, 64, 8), &keys);
        let mut rng = seeded(5);
        for _ in 0..20 * ftl.logical_pages() {
            let lpn = below(&mut rng, ftl.logical_pages());
            write(&mut ftl, lpn, 0);
        }
        ftl.check_invariants();
        ftl.stats()
    };
    assert_eq!(moved("block"), moved("piece"));
}

#[test]
fn units_live_on_while_blocks_fail_and_wear_out() {
    let options = NandOptions { endurance: Some(14), ..NandOptions::default() };
    let keys = [
        ("streams", "1"),
        ("collect", "piece"),
        ("stream_granularity", "16KiB"),
        ("frontiers", "2"),
        ("op", "1"),
    ];
    let mut ftl = build(geometry(2, 1, 64, 8), &options, &keys).unwrap();
    let mut rng = seeded(9);
    let (mut writes, mut written) = (0, BTreeSet::new());
    loop {
        let lpn = below(&mut rng, ftl.logical_pages());
        let hint = nandscape_core::Hint((lpn % 2) as u16);
        if ftl.write(Extent::new(lpn * PAGE, PAGE), None, hint, SimTime::ZERO).is_err() {
            break;
        }
        writes += 1;
        written.insert(lpn);
        if writes % 61 == 0 {
            ftl.check_invariants();
        }
    }
    ftl.check_invariants();
    assert!(writes > 5000, "{writes} writes");
    assert!(
        written.iter().all(|lpn| ftl.lookup(Lpn(*lpn as u32)).is_some()),
        "all that was written is there"
    );
}

#[test]
fn units_that_cannot_be_collected_are_refused() {
    let refused = |pairs: &[(&str, &str)], reason: &str| {
        let error = build(geometry(2, 1, 40, 8), &NandOptions::default(), pairs).unwrap_err();
        assert!(
            error.starts_with("ftl.collect = 'piece': expected block") && error.contains(reason),
            "{error}"
        );
    };
    refused(&[("collect", "piece")], "ftl.streams = 1 is enough");
    refused(&[("collect", "piece"), ("streams", "1"), ("wear", "static")], "ftl.wear = static");
    refused(&[("collect", "piece"), ("streams", "1"), ("split", "auto")], "ftl.split");
    let large = [("collect", "piece"), ("streams", "1"), ("stream_granularity", "64KiB"), ("op", "0.5")];
    refused(
        &large,
        "smaller pieces (ftl.stream_granularity): each of 4 logs may be filling one of 16 blocks",
    );
}
