//! Textbook models of policies, which were written for clearness alone and share no code with the policies.

use std::collections::{BTreeMap, VecDeque};

/// A cache of keys; the front of each queue is its old end.
pub(super) trait Model {
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
    /// Every so many evictions take the young end; 0 for none.
    young_every: usize,
    evictions: usize,
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
            self.evictions += 1;
            if self.young_every > 0 && self.evictions.is_multiple_of(self.young_every) {
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

/// By the textbook, with counts in a map: of `levels` queues, where a block that was not hit for four
/// generations of `max` requests falls.
struct MqModel {
    queues: Vec<VecDeque<u64>>,
    /// Level, hits, and the generation in which they were counted.
    of: BTreeMap<u64, (usize, u32, u64)>,
    max: usize,
    requests: u64,
}

impl MqModel {
    fn place(&mut self, key: u64, hits: u32) {
        let level = (0..16).find(|level| hits < 2 << level).unwrap();
        self.queues[level].push_back(key);
        self.of.insert(key, (level, hits, self.requests / self.max as u64));
    }

    fn tick(&mut self) {
        self.requests += 1;
        let generation = self.requests / self.max as u64;
        let looked_at = self.requests as usize % self.queues.len();
        if looked_at == 0 {
            return;
        }
        for _ in 0..4 {
            let Some(old) = self.queues[looked_at].front().copied() else { return };
            let (_, hits, since) = self.of[&old];
            if generation >= since + 4 {
                self.queues[looked_at].pop_front();
                self.place(old, hits / 2);
            }
        }
    }
}

impl Model for MqModel {
    fn ask(&mut self, key: u64) -> bool {
        self.tick();
        if let Some((level, hits, _)) = self.of.get(&key).copied() {
            take(&mut self.queues[level], key);
            self.place(key, (hits + 1).min(65_535));
            return true;
        }
        if self.of.len() == self.max {
            let old = self.queues.iter_mut().find_map(VecDeque::pop_front).unwrap();
            self.of.remove(&old);
        }
        self.place(key, 1);
        false
    }

    fn forget(&mut self, key: u64) {
        if let Some((level, ..)) = self.of.remove(&key) {
            take(&mut self.queues[level], key);
        }
    }
}

/// The model of a policy with its defaults in a cache of `max` blocks, where there is one.
pub(super) fn model(name: &str, max: usize) -> Option<Box<dyn Model>> {
    let plain = |by_recency, young_every| {
        let queue = VecDeque::new();
        Box::new(Plain { queue, max, by_recency, young_every, evictions: 0 }) as Box<dyn Model>
    };
    Some(match name {
        "fifo" => plain(false, 0),
        "lru" => plain(true, 0),
        "mru" => plain(true, 1),
        "lru-mru" => plain(true, 2),
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
        "mq" => {
            Box::new(MqModel { queues: vec![VecDeque::new(); 16], of: BTreeMap::new(), max, requests: 0 })
        }
        "two-list" => Box::new(TwoListModel { warm: VecDeque::new(), hot: VecDeque::new(), max }),
        _ => return None,
    })
}
