//! Every store of the crate, in every order of its queue, with and without its buffers, alone, decorated and
//! joined, passes the suite for stores. `NANDSCAPE_ROUNDS` multiplies the seeds.

use nandscape_core::Store;
use nandscape_disk::decorate::{Cut, Failing, Operations, Shared};
use nandscape_disk::{Joined, Keep, Layout, registry};
use nandscape_testkit::store::{Make, Seen, run, same_times};
use std::collections::BTreeMap;

const BYTES: u64 = 1 << 20;

type Kind = (&'static str, &'static [(&'static str, &'static str)]);

const KINDS: &[Kind] = &[
    ("disk", &[]),
    ("disk", &[("order", "fifo"), ("write_cache", "0"), ("read_segments", "0"), ("read_ahead", "0")]),
    ("disk", &[("order", "elevator"), ("depth", "4"), ("write_cache", "64KiB"), ("wait_max", "20ms")]),
    ("disk", &[("block", "4096"), ("depth", "1"), ("read_ahead", "4KiB")]),
    ("rated", &[]),
    ("rated", &[("read_latency", "90us"), ("write_latency", "30us")]),
    ("ram", &[]),
];

fn make((kind, pairs): Kind, keep: Keep) -> Box<dyn Store + Send> {
    let typed: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    registry::build(kind, "disk.", &typed, BYTES, keep).expect("a store")
}

fn rounds() -> u64 {
    std::env::var("NANDSCAPE_ROUNDS").map_or(1, |text| text.parse().expect("NANDSCAPE_ROUNDS is a number"))
}

fn try_out(name: &str, make: Make<'_>) -> [u64; 2] {
    let mut sum = [0; 2];
    for seed in 0..6 * rounds() {
        let seen: Seen = run(make, seed, 700).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(run(make, seed, 700).expect(name), seen, "{name}, seed {seed}: it repeats");
        sum = [sum[0] + seen.unknown, sum[1] + seen.overtaken];
    }
    sum
}

#[test]
fn every_kind_with_and_without_bytes() {
    for kind in KINDS {
        let [unknown, overtaken] = try_out(&format!("{kind:?}"), &|| make(*kind, Keep::Bytes));
        if kind.0 == "disk" {
            assert!(unknown > 0, "{kind:?} has a queue");
            let is_in_order = kind.1.contains(&("order", "fifo")) || kind.1.contains(&("depth", "1"));
            assert!(overtaken > 0 || is_in_order, "{kind:?} reorders it");
        }
        for keep in [Keep::Nothing, Keep::Presence] {
            try_out(&format!("{kind:?}, {keep:?}"), &|| make(*kind, keep));
        }
    }
}

#[test]
fn bytes_cost_no_time() {
    for kind in KINDS {
        for seed in 0..6 * rounds() {
            let without = || make(*kind, Keep::Nothing);
            same_times(&|| make(*kind, Keep::Bytes), &without, seed, 700)
                .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        }
    }
}

fn boxed(store: impl Store + Send + 'static) -> Box<dyn Store + Send> {
    Box::new(store)
}

#[test]
fn decorators_with_nothing_to_do_change_nothing() {
    for kind in [KINDS[0], KINDS[4]] {
        let plain = || make(kind, Keep::Bytes);
        let failing = || boxed(Failing::new(plain(), Operations::default(), []));
        let cut = || boxed(Cut::new(plain(), Operations::default(), u64::MAX));
        let shared = || boxed(Shared::new(Cut::new(plain(), Operations::default(), u64::MAX)));
        for seed in 0..3 * rounds() {
            let seen = run(&plain, seed, 500).expect("it is tried above");
            let others: [(&str, Make<'_>); 3] = [("failing", &failing), ("cut", &cut), ("shared", &shared)];
            for (name, make) in others {
                let other = run(make, seed, 500).unwrap_or_else(|error| panic!("{name} {kind:?}: {error}"));
                assert_eq!(other, seen, "{name} {kind:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn several_joined_are_one() {
    for layout in [Layout::Concatenated, Layout::Striped(4096), Layout::Striped(64 << 10)] {
        for kinds in [&[0, 0][..], &[0, 4, 6], &[6, 6, 6, 6]] {
            let join = || {
                let stores = kinds.iter().map(|kind| make(KINDS[*kind], Keep::Bytes)).collect();
                boxed(Joined::new(stores, layout).expect("they fit"))
            };
            try_out(&format!("{layout:?} of {kinds:?}"), &join);
        }
    }
}
