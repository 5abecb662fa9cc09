//! `background_gc` of the four strategies of the thesis: idle time takes collections off the writes, and a
//! host that is never idle sees no difference.

use crate::support::{Device, build, device};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, Extent, Ftl, FtlStats, Geometry, Hint, OpCounts, SimTime};
use nandscape_media::BadBlocks;
use std::collections::BTreeMap;

const LAYERS: [&str; 4] = ["pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl"];

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 32,
    pages_per_block: 8,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 16,
};

const ON: &[(&str, &str)] = &[("background_gc", "true"), ("background_watermark", "8")];

/// Time in which all that a watermark asks for can be done.
const PAUSE_NS: u64 = 1_000_000_000;

fn layer(name: &str, typed: &[(&str, &str)]) -> Box<dyn Ftl + Send> {
    layer_of(name, typed, device(GEOMETRY, BadBlocks::default()))
}

fn layer_of(name: &str, typed: &[(&str, &str)], device: Device) -> Box<dyn Ftl + Send> {
    let logs: &[(&str, &str)] =
        if name == "hsbm-gcl" { &[("logs", "4"), ("background_logs", "2")] } else { &[] };
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let typed: BTreeMap<_, _> = typed.iter().chain(logs).map(own).collect();
    build(name, &typed, device).unwrap()
}

/// Collections and merges.
fn work(stats: &FtlStats) -> u64 {
    stats.gc_runs + stats.merges_switch + stats.merges_full + stats.in_place_rewrites
}

/// What a load did.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Collections and merges that writes waited for, and those of the pauses.
    foreground: u64,
    background: u64,
    latency_ns: u64,
    latency_ns_max: u64,
    stats: FtlStats,
    erases: Vec<u32>,
    end: SimTime,
}

/// Bursts of two writes below half the capacity, one at a time, with a pause before each burst. Every fourth
/// write covers a block, the others a page.
fn run(ftl: &mut dyn Ftl, pause_ns: u64) -> Outcome {
    let mut rng = seeded(3);
    let blocks = ftl.logical_pages() / 8 / 2;
    let mut outcome = Outcome::default();
    let mut now = SimTime::ZERO;
    for number in 0..3000 {
        if number % 2 == 0 {
            let before = work(&ftl.stats());
            ftl.idle(now, now + pause_ns).unwrap();
            outcome.background += work(&ftl.stats()) - before;
            now += pause_ns;
        }
        let lpn = below(&mut rng, blocks) * 8;
        let extent = if number % 4 == 0 {
            Extent::new(lpn * 4096, 8 * 4096)
        } else {
            Extent::new((lpn + below(&mut rng, 8)) * 4096, 4096)
        };
        let before = work(&ftl.stats());
        let token = ftl.write(extent, None, Hint::default(), now).unwrap();
        outcome.foreground += work(&ftl.stats()) - before;
        let done = ftl.device().completion(token).unwrap();
        let latency_ns = done.since(now).as_ns();
        outcome.latency_ns += latency_ns;
        outcome.latency_ns_max = outcome.latency_ns_max.max(latency_ns);
        now = done;
    }
    ftl.check_invariants();
    outcome.stats = ftl.stats();
    outcome.erases = (0..GEOMETRY.blocks()).map(|block| ftl.device().erase_count(BlockId(block))).collect();
    outcome.end = now;
    outcome
}

/// Every flash operation that the device counted.
fn operations(ftl: &dyn Ftl) -> OpCounts {
    ftl.device().counters().total()
}

fn write(ftl: &mut dyn Ftl, lpn: u64, pages: u64) {
    let at = ftl.device().idle_from();
    ftl.write(Extent::new(lpn * 4096, pages * 4096), None, Hint::default(), at).unwrap();
}

#[test]
fn idle_time_takes_collections_off_the_writes() {
    for name in LAYERS {
        for order in ["erase-first", "copy-first"] {
            let order = [("gc_order", order)];
            let off = run(&mut *layer(name, &order), PAUSE_NS);
            let on = run(&mut *layer(name, &[ON, &order].concat()), PAUSE_NS);
            assert!(off.foreground > 20 && off.background == 0, "{name} {order:?}: {off:?}");
            assert!(on.background > 100, "{name} {order:?}: {on:?}");
            assert!(on.foreground * 20 < off.foreground, "{name} {order:?}: {on:?} {off:?}");
            let (least, most) = (off.latency_ns / 10, off.latency_ns * 9 / 10);
            assert!((least..most).contains(&on.latency_ns), "{name} {order:?}: {on:?} {off:?}");
            assert!(on.latency_ns_max <= off.latency_ns_max, "{name} {order:?}: {on:?} {off:?}");
        }
    }
}

#[test]
fn a_host_that_is_never_idle_sees_no_difference() {
    for name in LAYERS {
        for order in ["erase-first", "copy-first"] {
            let order = [("gc_order", order)];
            let off = run(&mut *layer(name, &order), 0);
            assert_eq!(run(&mut *layer(name, &[ON, &order].concat()), 0), off, "{name}");
            assert!(off.foreground > 20, "{name}: {off:?}");
            // The comparison would see a step.
            assert_ne!(run(&mut *layer(name, &[ON, &order].concat()), 1), off, "{name}");
        }
    }
}

#[test]
fn steps_begin_in_idle_time_only_and_stop_at_the_watermark() {
    for name in LAYERS {
        let mut ftl = layer(name, ON);
        // Of 64 blocks 60 are written, over and over the same 16.
        let mut blocks = (0..16).cycle();
        let mut write_next = |ftl: &mut dyn Ftl| write(ftl, blocks.next().expect("a cycle") * 8, 8);
        (0..60).for_each(|_| write_next(&mut *ftl));
        let (begun, idle_from) = (work(&ftl.stats()), ftl.device().idle_from());
        ftl.idle(SimTime::ZERO, idle_from).unwrap();
        assert_eq!(work(&ftl.stats()), begun, "{name}: no time to spare");
        ftl.idle(SimTime::ZERO, idle_from + 1).unwrap();
        assert_eq!(work(&ftl.stats()), begun + 1, "{name}: one step may begin in a nanosecond");
        ftl.idle(SimTime::ZERO, idle_from + PAUSE_NS).unwrap();
        let ahead = work(&ftl.stats());
        assert!(ftl.device().idle_from() < idle_from + PAUSE_NS, "{name}: it stopped by itself");
        let before = operations(&*ftl);
        ftl.idle(SimTime::ZERO, idle_from + 2 * PAUSE_NS).unwrap();
        assert_eq!((work(&ftl.stats()), operations(&*ftl)), (ahead, before), "{name}: nothing is left to do");
        // The erased space now lasts for as many writes as it is for, and not for one more.
        let mut lasted = 0;
        while work(&ftl.stats()) == ahead {
            write_next(&mut *ftl);
            lasted += 1;
        }
        // The fifth log finds all four entries taken.
        assert_eq!(lasted, if name == "hsbm-gcl" { 5 } else { 9 }, "{name}");
        ftl.check_invariants();
    }
}

#[test]
fn a_device_without_an_invalid_page_is_left_alone() {
    // Two bad blocks leave holes, which are no gain either.
    for bad in [BadBlocks::default(), BadBlocks::List(vec![BlockId(5), BlockId(40)])] {
        for name in LAYERS {
            let everything = [("background_gc", "true"), ("background_watermark", "100%")];
            let mut ftl = layer_of(name, &everything, device(GEOMETRY, bad.clone()));
            // The hybrid map needs a target and a log; its logs are merged.
            let blocks = ftl.logical_pages() / 8 - if name == "hsbm-gcl" { 8 } else { 0 };
            for block in 0..blocks {
                write(&mut *ftl, block * 8, 8);
            }
            let idle_from = ftl.device().idle_from();
            let before = operations(&*ftl);
            ftl.idle(SimTime::ZERO, idle_from + PAUSE_NS).unwrap();
            assert_eq!(operations(&*ftl), before, "{name}: {:?}", ftl.stats());
            ftl.check_invariants();
            // The same call works as soon as there is something to gain.
            ftl.trim(Extent::new(0, 8 * 4096), idle_from).unwrap();
            ftl.idle(SimTime::ZERO, idle_from + PAUSE_NS).unwrap();
            assert_ne!(operations(&*ftl), before, "{name}: {:?}", ftl.stats());
        }
    }
}

#[test]
fn logs_that_are_full_are_merged_ahead_and_others_only_for_free_entries() {
    let merged = |logs: &[(&str, &str)]| {
        let typed = [&[("background_gc", "true"), ("logs", "4")], logs].concat();
        let typed: BTreeMap<_, _> =
            typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut ftl = build("hsbm-gcl", &typed, device(GEOMETRY, BadBlocks::default())).unwrap();
        // One log in order, one out of order, two with a page each.
        write(&mut *ftl, 0, 8);
        (0..8).rev().for_each(|page| write(&mut *ftl, 8 + page, 1));
        write(&mut *ftl, 16, 1);
        write(&mut *ftl, 24, 1);
        let idle_from = ftl.device().idle_from();
        ftl.idle(SimTime::ZERO, idle_from + PAUSE_NS).unwrap();
        ftl.check_invariants();
        let stats = ftl.stats();
        (stats.merges_switch, stats.merges_full, stats.merges_evicted)
    };
    assert_eq!(merged(&[]), (1, 1, 0));
    assert_eq!(merged(&[("background_logs", "2")]), (1, 1, 0));
    assert_eq!(merged(&[("background_logs", "3")]), (1, 2, 1));
    assert_eq!(merged(&[("background_logs", "4")]), (1, 3, 2));
}

#[test]
fn watermarks_and_logs_out_of_range_are_refused() {
    for name in LAYERS {
        for (value, is_valid) in [("0", true), ("1.5", true), ("100%", true), ("65", false), ("x", false)] {
            let typed = BTreeMap::from([("background_watermark".to_owned(), value.to_owned())]);
            let built = build(name, &typed, device(GEOMETRY, BadBlocks::default()));
            assert_eq!(built.is_ok(), is_valid, "{name}: {value}");
            let message = built.err().unwrap_or_default();
            assert!(is_valid || message.contains("a number of blocks up to 64"), "{name}: {message}");
        }
    }
    let typed = BTreeMap::from([("background_logs".to_owned(), "9".to_owned())]);
    let message = build("hsbm-gcl", &typed, device(GEOMETRY, BadBlocks::default())).err().unwrap();
    assert!(message.contains("up to 8, the value of logs"), "{message}");
}
