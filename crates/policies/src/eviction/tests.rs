//! The policies against textbook models, against each other, and against what every policy promises.

mod models;

use super::*;
use crate::map::Map;
use crate::simulate::{Request, simulation};
use models::model;
use nandscape_core::TraceOp;
use nandscape_core::rng::{below, seeded};
use std::collections::BTreeMap;

/// Popular keys, loops and strangers in turns.
fn keys(seed: u64, count: usize) -> Vec<u64> {
    let mut rng = seeded(seed);
    let span = 20 + below(&mut rng, 200);
    (0..count as u64)
        .map(|at| match at / 150 % 3 {
            0 => below(&mut rng, span) * below(&mut rng, span) / span,
            1 => at % span,
            _ => below(&mut rng, 3 * span),
        })
        .collect()
}

const MODELLED: [&str; 11] =
    ["fifo", "lru", "mru", "lru-mru", "clock", "sieve", "s3-fifo", "arc", "2q", "mq", "two-list"];

#[test]
fn first_in_first_out_writes_least_and_nothing_where_it_hits() {
    let writes = |name: &str, keys: &[u64], slots: u32| {
        let mut cache = simulation(&EvictionSpec::parse(name).unwrap(), slots, Map::Full, 0).unwrap();
        for key in keys {
            cache.feed(&[Request::new(BlockKey(*key), TraceOp::Read)]);
        }
        (cache.policy_writes(), cache.counts())
    };
    let keys = keys(3, 6000);
    let (fifo, counts) = writes("fifo", &keys, 40);
    // A block that comes: its own link and its neighbour's. One that leaves: its younger neighbour's.
    assert_eq!(fifo, 2 * counts.accesses.misses() - 1 + counts.evictions);
    for name in ["lru", "mru", "lru-mru", "two-list", "arc", "mq", "lirs"] {
        let (each, counts) = writes(name, &keys, 40);
        assert!(fifo < each, "{fifo} of fifo, {each} of {name}: {counts:?}");
    }
    for info in EVICTIONS {
        let (filled, _) = writes(info.name, &[1, 2, 3], 8);
        let (asked, _) = writes(info.name, &[1, 2, 3, 1, 2, 3, 1, 2, 3], 8);
        // 2q has a queue for blocks that came once.
        let is_free = ["fifo", "rand", "2q"].contains(&info.name);
        assert_eq!(asked == filled, is_free, "{}: {filled} and {asked}", info.name);
    }
}

#[test]
fn a_share_of_evictions_at_the_young_end_keeps_a_part_of_a_loop_and_lets_old_blocks_go() {
    let hits = |name: &str, keys: &mut dyn Iterator<Item = u64>| {
        let mut cache = simulation(&EvictionSpec::parse(name).unwrap(), 64, Map::Full, 0).unwrap();
        for key in keys {
            cache.feed(&[Request::new(BlockKey(key), TraceOp::Read)]);
        }
        cache.counts().accesses.hits()
    };
    let round = |name: &str| hits(name, &mut (0..9600).map(|at| at % 96));
    assert_eq!(round("lru"), 0, "a loop longer than the cache");
    assert!(round("lru-mru") > 2000 && round("lru-mru") < round("mru"), "{}", round("lru-mru"));
    // Another set of blocks after the first: what is old has to leave.
    let shift = |name: &str| hits(name, &mut (0..9600).map(|at| at / 1200 * 1000 + at % 60));
    assert!(shift("lru-mru") > 2 * shift("mru"), "{} and {}", shift("lru-mru"), shift("mru"));
    assert_eq!(hits("lru-mru:mru=0%", &mut (0..9600).map(|at| at % 96)), round("lru"));
    assert_eq!(hits("lru-mru:mru=100%", &mut (0..9600).map(|at| at % 96)), round("mru"));
}

#[test]
fn every_policy_agrees_with_its_textbook_model_request_by_request() {
    for name in MODELLED {
        let spec = EvictionSpec::parse(name).unwrap();
        for (case, slots) in [1, 2, 3, 7, 10, 20, 33, 64, 150].into_iter().enumerate() {
            let mut model = model(name, slots as usize).unwrap();
            let mut fast = simulation(&spec, slots, Map::Full, 0).unwrap();
            let mut rng = seeded(77);
            for (at, key) in keys(case as u64, 3000).into_iter().enumerate() {
                // Half of the cases trim as well.
                if case % 2 == 1 && below(&mut rng, 12) == 0 {
                    fast.feed(&[Request::new(BlockKey(key), TraceOp::Trim)]);
                    model.forget(key);
                    continue;
                }
                let hits = fast.counts().accesses.hits();
                fast.feed(&[Request::new(BlockKey(key), TraceOp::Read)]);
                let is_hit = fast.counts().accesses.hits() > hits;
                assert_eq!(is_hit, model.ask(key), "{name}, {slots} slots, request {at}, key {key}");
            }
            assert!(
                fast.counts().accesses.hits() > 0 && fast.counts().evictions > 0,
                "{name}, {slots} slots"
            );
        }
    }
}

#[test]
fn mq_keeps_blocks_by_the_logarithm_of_their_hits_and_lets_them_fall_when_the_hits_end() {
    let spec = EvictionSpec::parse("mq:levels=4:lifetime=2").unwrap();
    let mut policy = AnyEviction::new(&spec, 8, 0);
    let coldest = |policy: &AnyEviction| {
        let mut order = Vec::new();
        policy.coldest(&mut |slot| {
            order.push(slot);
            true
        });
        order
    };
    for slot in 0..4 {
        policy.insert(slot, BlockKey(slot.into()));
    }
    // Counts of 9, 2, 3 and 1: levels 3, 1, 1 and 0.
    for slot in [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2] {
        policy.hit(slot);
    }
    assert_eq!(coldest(&policy), [3, 1, 2, 0], "of one level, the one without hits for longer first");
    // In two generations of eight requests without hits each falls one level, and in four to the lowest.
    for _ in 0..100 {
        policy.miss(BlockKey(9));
    }
    policy.hit(3);
    assert_eq!(coldest(&policy).last(), Some(&3), "all others are at the lowest level");
    assert_eq!(policy.evict(|_| true), Some(1), "which they came to in the order of their hits");
}

/// A cache whose blocks move between slots. Some slots may not be chosen.
struct Moving {
    policy: AnyEviction,
    slot_of: BTreeMap<u64, u32>,
    key_of: Vec<Option<u64>>,
}

impl Moving {
    fn new(spec: &EvictionSpec, slots: u32) -> Self {
        let policy = AnyEviction::new(spec, slots, 5);
        Self { policy, slot_of: BTreeMap::new(), key_of: vec![None; slots as usize] }
    }

    fn free(&self) -> Option<u32> {
        self.key_of.iter().position(Option::is_none).map(|slot| slot as u32)
    }

    fn ask(&mut self, key: u64, max: usize) -> bool {
        if let Some(slot) = self.slot_of.get(&key) {
            self.policy.hit(*slot);
            return true;
        }
        self.policy.miss(BlockKey(key));
        if self.slot_of.len() == max {
            let slot = self.policy.evict(|_| true).expect("any may leave");
            let old = self.key_of[slot as usize].expect("the slot was in use");
            self.policy.evicted(slot, BlockKey(old));
            self.forget(slot);
        }
        let slot = self.free().unwrap();
        self.policy.insert(slot, BlockKey(key));
        self.slot_of.insert(key, slot);
        self.key_of[slot as usize] = Some(key);
        false
    }

    fn forget(&mut self, slot: u32) {
        let key = self.key_of[slot as usize].take().expect("the slot was in use");
        self.slot_of.remove(&key);
    }

    fn relocate(&mut self, key: u64) {
        if let (Some(from), Some(to)) = (self.slot_of.get(&key).copied(), self.free()) {
            self.policy.relabel(from, to);
            self.key_of[to as usize] = self.key_of[from as usize].take();
            self.slot_of.insert(key, to);
        }
    }
}

#[test]
fn a_block_that_moves_to_another_slot_keeps_its_standing() {
    const SLOTS: u32 = 24;
    // Where a slot stands is a part of that standing in `s3-fifo-compact`.
    for info in EVICTIONS.iter().filter(|info| info.name != "s3-fifo-compact") {
        let spec = EvictionSpec::parse(info.name).unwrap();
        // The policies are made for SLOTS, of which one stays free, so that there is somewhere to move to.
        let (mut still, mut moving) = (Moving::new(&spec, SLOTS), Moving::new(&spec, SLOTS));
        let mut rng = seeded(3);
        for (at, key) in keys(9, 6000).into_iter().enumerate() {
            let max = SLOTS as usize - 1;
            assert_eq!(still.ask(key, max), moving.ask(key, max), "{}, request {at}", info.name);
            let moved = below(&mut rng, 300);
            moving.relocate(moved);
        }
        assert!(still.slot_of.keys().eq(moving.slot_of.keys()), "{}", info.name);
    }
}

#[test]
fn compact_s3_fifo_misses_as_s3_fifo_does_and_as_often_if_blocks_move() {
    const SLOTS: u32 = 600;
    let misses = |name: &str, moves: bool| {
        let mut cache = Moving::new(&EvictionSpec::parse(name).unwrap(), SLOTS);
        let mut rng = seeded(8);
        // As popular as Zipf's: each doubling of the rank is asked for as often as the one before.
        let keys: Vec<u64> = (0..60_000).map(|_| 1 << below(&mut rng, 15)).collect();
        let keys: Vec<u64> = keys.into_iter().map(|rank| rank + below(&mut rng, rank)).collect();
        let mut misses = 0;
        for key in keys {
            let is_hit = cache.ask(key, SLOTS as usize - 1);
            misses += u32::from(!is_hit);
            if moves && is_hit {
                cache.relocate(key);
            }
        }
        f64::from(misses)
    };
    let exact = misses("s3-fifo", false);
    for moves in [false, true] {
        let compact = misses("s3-fifo-compact", moves);
        assert!((compact / exact - 1.0).abs() < 0.03, "{compact} and {exact} misses, moves: {moves}");
    }
    assert!(misses("lru", false) > 1.1 * exact, "a load that policies differ in");
}

#[test]
fn names_are_remembered_about_as_long_as_in_a_queue_and_few_are_mistaken() {
    let mut names = names::Names::new(10_000);
    assert!(names.buckets.footprint().bytes <= 15_000);
    for key in 0..200_000 {
        names.push(BlockKey(key));
    }
    // Of the last n, not more than some of the youngest 6000 are gone, and few of those before the last
    // 15,000 are there.
    let there = |names: &names::Names, keys: std::ops::Range<u64>| {
        keys.clone().filter(|key| names.clone().take(BlockKey(*key))).count() as f64
            / (keys.end - keys.start) as f64
    };
    let spread = (199_000..200_000, 194_000..195_000, 180_000..181_000, 1_000_000..1_010_000);
    assert!(there(&names, spread.0) > 0.99);
    assert!(there(&names, spread.1) > 0.85);
    assert!(there(&names, spread.2) < 0.05);
    let mistaken = there(&names, spread.3);
    assert!((0.004..0.007).contains(&mistaken), "{mistaken}: eleven in 2047 are expected");
    assert!(names.take(BlockKey(199_999)) && !names.take(BlockKey(199_999)), "what is taken is gone");
    assert!(names.take(BlockKey(199_998)), "the others of its bucket are still there");
}

#[test]
fn what_may_not_leave_stays_and_what_may_is_found() {
    for info in EVICTIONS {
        let spec = EvictionSpec::parse(info.name).unwrap();
        let mut rng = seeded(11);
        let mut cache = Moving::new(&spec, 32);
        for key in keys(4, 4000) {
            cache.ask(key, 32);
            let pinned = below(&mut rng, 1 << 32);
            match cache.policy.evict(|slot| pinned >> slot & 1 == 0) {
                Some(slot) => {
                    assert_eq!(pinned >> slot & 1, 0, "{}: slot {slot} may not leave", info.name);
                    cache.forget(slot);
                }
                None => assert!(
                    cache.slot_of.values().all(|slot| pinned >> slot & 1 == 1),
                    "{}: a slot may leave and none was chosen",
                    info.name
                ),
            }
            assert_eq!(cache.policy.evict(|_| false), None, "{}", info.name);
        }
    }
}

#[test]
fn every_policy_empties_to_the_last_block() {
    for info in EVICTIONS {
        let mut cache = Moving::new(&EvictionSpec::parse(info.name).unwrap(), 50);
        for key in keys(6, 1000) {
            cache.ask(key, 50);
        }
        for _ in 0..50 {
            let slot = cache.policy.evict(|_| true).expect("there are blocks left");
            cache.forget(slot);
        }
        assert_eq!(cache.policy.evict(|_| true), None, "{}", info.name);
    }
}

#[test]
fn a_wrong_policy_key_or_value_is_named() {
    for (text, words) in [
        ("lur", ["lur", "sieve"]),
        ("s3-fifo:smal=1%", ["smal", "small"]),
        ("s3-fifo:small=200%", ["small", "200%"]),
        ("s3-fifo:small", ["small", "key=value"]),
    ] {
        let error = EvictionSpec::parse(text).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    }
}

#[test]
fn the_coldest_are_visited_once_each_and_in_the_plain_policies_the_first_is_the_one_that_leaves() {
    for info in EVICTIONS.iter().filter(|info| info.name != "rand") {
        let spec = EvictionSpec::parse(info.name).expect("a registered policy");
        let mut policy = AnyEviction::new(&spec, 32, 1);
        let mut held = vec![false; 32];
        let mut rng = seeded(9);
        for step in 0..3000_u64 {
            let slot = below(&mut rng, 32) as u32;
            if held[slot as usize] {
                match below(&mut rng, 8) {
                    0 => {
                        policy.remove(slot);
                        held[slot as usize] = false;
                    }
                    1 => {
                        let mut first = None;
                        policy.coldest(&mut |slot| {
                            first = Some(slot);
                            false
                        });
                        let gone = policy.evict(|_| true);
                        if ["fifo", "lru", "mru", "mq", "smq", "two-list"].contains(&info.name) {
                            assert_eq!(first, gone, "{}", info.name);
                        }
                        held[gone.expect("all may leave") as usize] = false;
                    }
                    _ => policy.hit(slot),
                }
            } else {
                policy.miss(BlockKey(step));
                policy.insert(slot, BlockKey(step));
                held[slot as usize] = true;
            }
            let mut seen = vec![false; 32];
            policy.coldest(&mut |slot| {
                assert!(
                    !std::mem::replace(&mut seen[slot as usize], true),
                    "{}: slot {slot} twice",
                    info.name
                );
                true
            });
            assert_eq!(seen, held, "{} at step {step}", info.name);
            assert!(policy.favoured() as usize <= held.iter().filter(|held| **held).count(), "{}", info.name);
        }
    }
}
