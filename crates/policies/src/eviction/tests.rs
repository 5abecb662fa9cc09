//! The policies against textbook models, which were written for clearness alone and share no code with them.

use super::*;
use crate::map::Map;
use crate::simulate::{Request, simulation};
use nandscape_core::TraceOp;
use nandscape_core::rng::{below, seeded};
use std::collections::{BTreeMap, VecDeque};

/// A cache of keys; the front of each queue is its old end.
trait Model {
    /// Whether it was a hit.
    fn ask(&mut self, key: u64) -> bool;

    fn forget(&mut self, key: u64);
}

fn take(queue: &mut VecDeque<u64>, key: u64) -> bool {
    let place = queue.iter().position(|other| *other == key);
    place.is_some_and(|place| queue.remove(place).is_some())
}

/// FIFO, LRU and MRU.
struct Plain {
    queue: VecDeque<u64>,
    max: usize,
    by_recency: bool,
    takes_young: bool,
}

impl Model for Plain {
    fn ask(&mut self, key: u64) -> bool {
        if self.queue.contains(&key) {
            if self.by_recency {
                take(&mut self.queue, key);
                self.queue.push_back(key);
            }
            return true;
        }
        if self.queue.len() == self.max {
            if self.takes_young {
                self.queue.pop_back()
            } else {
                self.queue.pop_front()
            };
        }
        self.queue.push_back(key);
        false
    }

    fn forget(&mut self, key: u64) {
        take(&mut self.queue, key);
    }
}

struct ClockModel {
    queue: VecDeque<(u64, bool)>,
    max: usize,
}

impl Model for ClockModel {
    fn ask(&mut self, key: u64) -> bool {
        if let Some(entry) = self.queue.iter_mut().find(|entry| entry.0 == key) {
            entry.1 = true;
            return true;
        }
        while self.queue.len() == self.max {
            let (old, bit) = self.queue.pop_front().unwrap();
            if bit {
                self.queue.push_back((old, false));
            }
        }
        self.queue.push_back((key, false));
        false
    }

    fn forget(&mut self, key: u64) {
        self.queue.retain(|entry| entry.0 != key);
    }
}

struct SieveModel {
    queue: Vec<(u64, bool)>,
    /// Place in the queue, 0 is the oldest.
    hand: Option<usize>,
    max: usize,
}

impl SieveModel {
    fn cut(&mut self, place: usize) {
        self.queue.remove(place);
        self.hand = match self.hand {
            Some(hand) if hand > place => Some(hand - 1),
            Some(hand) if hand == self.queue.len() => None,
            hand => hand,
        };
    }
}

impl Model for SieveModel {
    fn ask(&mut self, key: u64) -> bool {
        if let Some(entry) = self.queue.iter_mut().find(|entry| entry.0 == key) {
            entry.1 = true;
            return true;
        }
        if self.queue.len() == self.max {
            let mut hand = self.hand.unwrap_or(0);
            while self.queue[hand].1 {
                self.queue[hand].1 = false;
                hand = (hand + 1) % self.queue.len();
            }
            self.hand = Some(hand);
            self.cut(hand);
        }
        self.queue.push((key, false));
        false
    }

    fn forget(&mut self, key: u64) {
        if let Some(place) = self.queue.iter().position(|entry| entry.0 == key) {
            self.cut(place);
        }
    }
}

struct S3Model {
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    ghost: VecDeque<u64>,
    hits: BTreeMap<u64, u32>,
    max: usize,
    small_max: usize,
    ghost_max: usize,
}

impl S3Model {
    fn evict(&mut self) {
        if self.main.len() > self.max - self.small_max || self.small.is_empty() {
            while let Some(old) = self.main.pop_front() {
                let hits = self.hits[&old];
                if hits == 0 {
                    return;
                }
                self.hits.insert(old, hits.min(3) - 1);
                self.main.push_back(old);
            }
        }
        while let Some(old) = self.small.pop_front() {
            if self.hits[&old] < 2 {
                if !self.ghost.contains(&old) && self.ghost_max > 0 {
                    if self.ghost.len() == self.ghost_max {
                        self.ghost.pop_front();
                    }
                    self.ghost.push_back(old);
                }
                return;
            }
            self.hits.insert(old, 0);
            self.main.push_back(old);
        }
    }
}

impl Model for S3Model {
    fn ask(&mut self, key: u64) -> bool {
        if self.small.contains(&key) || self.main.contains(&key) {
            *self.hits.get_mut(&key).unwrap() += 1;
            return true;
        }
        let returns = take(&mut self.ghost, key);
        while self.small.len() + self.main.len() == self.max {
            self.evict();
        }
        self.hits.insert(key, 0);
        if returns {
            self.main.push_back(key);
        } else {
            self.small.push_back(key);
        }
        false
    }

    fn forget(&mut self, key: u64) {
        let _ = take(&mut self.small, key) || take(&mut self.main, key);
    }
}

#[derive(Default)]
struct ArcModel {
    t1: VecDeque<u64>,
    t2: VecDeque<u64>,
    b1: VecDeque<u64>,
    b2: VecDeque<u64>,
    p: f64,
    c: usize,
}

impl ArcModel {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || in_b2 && (t1 - self.p).abs() < 1e-12) || self.t2.is_empty()
        {
            self.b1.extend(self.t1.pop_front());
        } else {
            self.b2.extend(self.t2.pop_front());
        }
    }

    fn is_full(&self) -> bool {
        self.t1.len() + self.t2.len() == self.c
    }
}

impl Model for ArcModel {
    fn ask(&mut self, key: u64) -> bool {
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push_back(key);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        let (in_b1, in_b2) = (take(&mut self.b1, key), take(&mut self.b2, key));
        if in_b1 {
            self.p = (self.c as f64).min(self.p + (b2 / b1).max(1.0));
        } else if in_b2 {
            self.p = 0f64.max(self.p - (b1 / b2).max(1.0));
        }
        if in_b1 || in_b2 {
            if self.is_full() {
                self.replace(in_b2);
            }
            self.t2.push_back(key);
            return false;
        }
        // Names only give way when a block does: trims leave room for both.
        if self.is_full() {
            if self.t1.len() + self.b1.len() >= self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    self.replace(false);
                } else {
                    self.b1.pop_front();
                    self.t1.pop_front();
                }
            } else {
                if self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() >= 2 * self.c {
                    self.b2.pop_front();
                }
                self.replace(false);
            }
        }
        self.t1.push_back(key);
        false
    }

    fn forget(&mut self, key: u64) {
        let _ = take(&mut self.t1, key) || take(&mut self.t2, key);
    }
}

struct TwoQModel {
    a1in: VecDeque<u64>,
    a1out: VecDeque<u64>,
    am: VecDeque<u64>,
    max: usize,
}

impl Model for TwoQModel {
    fn ask(&mut self, key: u64) -> bool {
        if take(&mut self.am, key) {
            self.am.push_back(key);
            return true;
        }
        if self.a1in.contains(&key) {
            return true;
        }
        let known = take(&mut self.a1out, key);
        if self.a1in.len() + self.am.len() == self.max {
            if self.a1in.len() > self.max / 4 || self.am.is_empty() {
                self.a1out.extend(self.a1in.pop_front());
                while self.a1out.len() > self.max / 2 {
                    self.a1out.pop_front();
                }
            } else {
                self.am.pop_front();
            }
        }
        if known {
            self.am.push_back(key);
        } else {
            self.a1in.push_back(key);
        }
        false
    }

    fn forget(&mut self, key: u64) {
        let _ = take(&mut self.a1in, key) || take(&mut self.am, key);
    }
}

struct TwoListModel {
    warm: VecDeque<(u64, u32)>,
    hot: VecDeque<u64>,
    max: usize,
}

impl Model for TwoListModel {
    fn ask(&mut self, key: u64) -> bool {
        if take(&mut self.hot, key) {
            self.hot.push_back(key);
            return true;
        }
        if let Some(place) = self.warm.iter().position(|entry| entry.0 == key) {
            let (_, hits) = self.warm.remove(place).unwrap();
            let hot_max = self.max * 3 / 4;
            if hits == 1 && hot_max > 0 {
                self.hot.push_back(key);
                if self.hot.len() > hot_max {
                    self.warm.extend(self.hot.pop_front().map(|back| (back, 0)));
                }
            } else {
                self.warm.push_back((key, 1));
            }
            return true;
        }
        if self.warm.len() + self.hot.len() == self.max && self.warm.pop_front().is_none() {
            self.hot.pop_front();
        }
        self.warm.push_back((key, 0));
        false
    }

    fn forget(&mut self, key: u64) {
        self.warm.retain(|entry| entry.0 != key);
        take(&mut self.hot, key);
    }
}

fn model(name: &str, max: usize) -> Option<Box<dyn Model>> {
    let plain = |by_recency, takes_young| {
        Box::new(Plain { queue: VecDeque::new(), max, by_recency, takes_young }) as Box<dyn Model>
    };
    Some(match name {
        "fifo" => plain(false, false),
        "lru" => plain(true, false),
        "mru" => plain(true, true),
        "clock" => Box::new(ClockModel { queue: VecDeque::new(), max }),
        "sieve" => Box::new(SieveModel { queue: Vec::new(), hand: None, max }),
        "s3-fifo" => Box::new(S3Model {
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
            hits: BTreeMap::new(),
            max,
            small_max: max / 10,
            ghost_max: max * 9 / 10,
        }),
        "arc" => Box::new(ArcModel { c: max, ..ArcModel::default() }),
        "2q" => {
            Box::new(TwoQModel { a1in: VecDeque::new(), a1out: VecDeque::new(), am: VecDeque::new(), max })
        }
        "two-list" => Box::new(TwoListModel { warm: VecDeque::new(), hot: VecDeque::new(), max }),
        _ => return None,
    })
}

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

const MODELLED: [&str; 9] = ["fifo", "lru", "mru", "clock", "sieve", "s3-fifo", "arc", "2q", "two-list"];

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
    assert!(names.memory_bytes() <= 15_000);
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
                        if ["fifo", "lru", "mru", "smq", "two-list"].contains(&info.name) {
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
