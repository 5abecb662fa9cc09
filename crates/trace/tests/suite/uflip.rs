//! The micro-patterns of uFLIP: what defines each, and that their zoned form is legal.

use crate::zoned::Model;
use nandscape_core::{IoRecord, TraceOp};
use nandscape_trace::{OpenOptions, Target, open};
use std::collections::{BTreeMap, BTreeSet};

const K: u64 = 1024;
const TARGET: Target = Target { capacity_bytes: 1 << 30, ..Target::NONE };

const PATTERNS: [&str; 9] = [
    "granularity",
    "alignment",
    "locality",
    "partitioning",
    "order",
    "parallelism",
    "mix",
    "pause",
    "bursts",
];

fn load(text: &str) -> Vec<IoRecord> {
    let reader =
        open(text, &OpenOptions::default(), TARGET).unwrap_or_else(|error| panic!("{text}: {error}"));
    reader.collect::<Result<_, _>>().unwrap()
}

/// Starts in slots of 4 KiB.
fn slots(text: &str) -> Vec<u64> {
    load(text).iter().map(|record| record.offset / (4 * K)).collect()
}

/// Letter and slot of each.
fn words(records: &[IoRecord]) -> String {
    let word = |r: &IoRecord| format!("{}{}", r.op.letter(), r.offset / (4 * K));
    records.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn times(text: &str) -> Vec<u64> {
    load(text).iter().map(|record| record.at.as_ns() / 1000).collect()
}

fn error(text: &str) -> String {
    open(text, &OpenOptions::default(), TARGET)
        .err()
        .unwrap_or_else(|| panic!("{text} is accepted"))
        .to_string()
}

#[test]
fn every_pattern_and_base_is_the_same_each_time_and_stays_in_its_span() {
    for pattern in PATTERNS {
        for base in ["sr", "rr", "sw", "rw"] {
            if matches!(pattern, "partitioning" | "order") && base.starts_with('r') {
                continue;
            }
            let with = if pattern == "mix" && base == "rr" { ",with=sw" } else { "" };
            let text = format!("uflip:pattern={pattern},base={base},span=256k,offset=64k,count=200{with}");
            let records = load(&text);
            assert_eq!(records.len(), 200, "{text}");
            assert_eq!(records, load(&text));
            assert!(records.iter().all(|r| r.offset >= 64 * K && r.offset + r.len <= 320 * K), "{text}");
            if pattern != "mix" {
                let op = if base.ends_with('w') { TraceOp::Write } else { TraceOp::Read };
                assert!(records.iter().all(|r| r.op == op), "{text}");
            }
        }
    }
}

#[test]
fn base_patterns_are_sequential_or_random() {
    assert_eq!(slots("uflip:span=16k,count=6"), [0, 1, 2, 3, 0, 1]);
    let random = slots("uflip:base=rw,span=1m,count=20000");
    let mut counts = BTreeMap::new();
    for slot in &random {
        *counts.entry(slot).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 256);
    assert!(counts.values().all(|n| (40..130).contains(n)));
    assert_ne!(random, slots("uflip:base=rw,span=1m,count=20000,seed=2"));
}

#[test]
fn each_pattern_has_the_property_that_defines_it() {
    let sizes: BTreeSet<u64> =
        load("uflip:pattern=granularity,bs=24k,span=1m").iter().map(|r| r.len).collect();
    assert_eq!(sizes, BTreeSet::from([24 * K]));
    let shifted = load("uflip:pattern=alignment,shift=1536,span=64k,count=40");
    assert!(shifted.iter().all(|r| r.offset % (4 * K) == 1536));
    assert!(load("uflip:pattern=locality,base=rw,span=32k,count=500").iter().all(|r| r.offset < 32 * K));
    assert_eq!(
        slots("uflip:pattern=partitioning,partitions=2,span=32k,count=10"),
        [0, 4, 1, 5, 2, 6, 3, 7, 0, 4]
    );
    assert_eq!(slots("uflip:pattern=order,span=16k,count=6"), [0, 3, 2, 1, 0, 3]);
    assert_eq!(slots("uflip:pattern=order,incr=0,span=16k,count=3"), [0, 0, 0]);
    assert_eq!(slots("uflip:pattern=order,incr=2,span=20k,count=6"), [0, 2, 4, 1, 3, 0]);
    assert_eq!(slots("uflip:pattern=parallelism,degree=2,span=32k,count=6"), [0, 4, 1, 5, 2, 6]);
    assert_eq!(times("uflip:pattern=parallelism,degree=2,span=32k,count=6,gap=5us"), [0, 0, 5, 5, 10, 10]);
    let mix = load("uflip:pattern=mix,base=sw,with=sr,ratio=3,span=64k,count=8");
    assert_eq!(words(&mix), "W0 W1 W2 R0 W3 W4 W5 R1");
    assert_eq!(times("uflip:pattern=mix,span=64k,count=4,gap=5us"), [0, 5, 10, 15]);
    assert_eq!(times("uflip:pattern=pause,pause=100us,gap=20us,span=64k,count=4"), [0, 120, 240, 360]);
    assert_eq!(
        times("uflip:pattern=bursts,burst=2,pause=1ms,gap=20us,span=64k,count=5"),
        [0, 20, 1040, 1060, 2080]
    );
    for (text, real) in [("uflip:span=64k", false), ("uflip:pattern=pause,span=64k", true)] {
        assert_eq!(open(text, &OpenOptions::default(), TARGET).unwrap().info().has_real_times, real);
    }
}

#[test]
fn keys_that_would_do_nothing_or_do_not_fit_are_refused_by_name() {
    for (keys, expected) in [
        ("incr=2", "incr"),
        ("pattern=pause,burst=3", "this key only with pattern=bursts"),
        ("pattern=order,pause=1us", "this key only with pattern=pause or bursts"),
        ("append=true", "this key only with zones"),
        ("pattern=order,base=rw", "sr or sw with pattern=order"),
        ("pattern=order,incr=x", "a whole number such as -1"),
        ("pattern=alignment,shift=4k", "less than bs, 4096 B"),
        ("pattern=partitioning,partitions=17,span=64k", "at most the 16 requests"),
        ("pattern=parallelism,degree=5,span=1m,zones=256k", "at most the 4 zones"),
        ("pattern=mix,with=sw", "another pattern than base"),
        ("zones=1m,capacity=1m,bs=24k", "a multiple of bs"),
        ("zones=64k,capacity=128k", "at most the zone size"),
        ("zones=1m,offset=4k,span=8m", "the start of a zone"),
        ("pattern=random", "granularity"),
    ] {
        let message = error(&format!("uflip:{keys}"));
        assert!(message.contains(expected), "{keys}: {message}");
    }
}

#[test]
fn the_zoned_form_of_every_pattern_is_legal() {
    // 16 zones of 256 KiB, of which 192 KiB can be written.
    for pattern in PATTERNS {
        for base in ["sr", "rr", "sw", "rw"] {
            if matches!(pattern, "partitioning" | "order") && base.starts_with('r') {
                continue;
            }
            for (active, append) in [(1, false), (3, true), (14, false)] {
                let with = if pattern == "mix" && base == "rr" { ",with=rw" } else { "" };
                let text = format!(
                    "uflip:pattern={pattern},base={base},bs=16k,span=4m,offset=1m,zones=256k,capacity=192k,\
                     active={active},append={append},count=1000{with}"
                );
                let records = load(&text);
                let mut model = Model::new(256 * K, 192 * K, active);
                for (number, record) in records.iter().enumerate() {
                    model
                        .apply(record)
                        .unwrap_or_else(|error| panic!("{text}: {number} {record:?}: {error}"));
                    assert!((1024 * K..5120 * K).contains(&record.offset));
                }
                let data = records.iter().filter(|r| r.op == TraceOp::Read || r.op.is_write()).count();
                assert_eq!(data, 1000, "{text}");
                assert_eq!(records, load(&text));
                // A thousand writes are five times the capacity.
                if base.ends_with('w') && pattern != "mix" {
                    assert!(model.resets >= 60, "{text}: {} resets", model.resets);
                    assert_eq!(records.iter().any(|r| r.op == TraceOp::Append), append);
                }
            }
        }
    }
}

#[test]
fn zoned_patterns_stay_what_they_are() {
    let zoned = |keys: &str| words(&load(&format!("uflip:{keys},zones=16k,span=64k")));
    assert_eq!(zoned("count=6,capacity=8k"), "W0 W1 W4 W5 W8 W9");
    assert_eq!(zoned("count=9,capacity=8k"), "W0 W1 W4 W5 W8 W9 W12 W13 X0 W0");
    assert_eq!(zoned("count=4,capacity=8k,append=true"), "A0 A0 A4 A4");
    assert_eq!(zoned("pattern=partitioning,partitions=2,count=6"), "W0 W8 W1 W9 W2 W10");
    // Random writes stay in the two zones that may be written in part, so nothing is finished half empty.
    let random = load("uflip:base=rw,zones=64k,span=4m,active=2,count=2000");
    assert!(random.iter().all(|r| matches!(r.op, TraceOp::Write | TraceOp::Reset)));
    assert!(random.iter().map(|r| r.offset / (64 * K)).collect::<BTreeSet<_>>().len() > 32);
    // In place: one zone again and again. Backwards: from zone to zone, forwards inside.
    assert_eq!(zoned("pattern=order,incr=0,count=5"), "W0 W1 W2 W3 X0 W0");
    assert_eq!(zoned("pattern=order,incr=-1,count=6"), "W0 W12 W13 W14 W15 W8");
    // The target is half a zone.
    let records = load("uflip:pattern=locality,zones=16k,span=8k,count=3");
    assert_eq!(
        records.iter().map(|r| (r.op, r.offset)).collect::<Vec<_>>(),
        [(TraceOp::Write, 0), (TraceOp::Write, 4 * K), (TraceOp::Reset, 0), (TraceOp::Write, 0)]
    );
    // A shift is made by the first write of a zone and taken back by the last.
    let records = load("uflip:pattern=alignment,shift=512,zones=16k,span=64k,count=5");
    let got: Vec<_> = records.iter().map(|r| (r.offset, r.len)).collect();
    assert_eq!(got, [(0, 4608), (4608, 4096), (8704, 4096), (12_800, 3584), (16_384, 4608)]);
}
