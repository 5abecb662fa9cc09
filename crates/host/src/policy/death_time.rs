//! Streams by death times that are learned from the writes and trims themselves.
//!
//! The clock counts pages written. A table of bounded size holds for each region when it was written last and
//! the mean of the logarithm of its lives: the time from a write until the region is overwritten or trimmed.
//! Two decisions make that mean tell how long collection will meet the data:
//!
//! * A life shorter than a share of the capacity (`short`) ends before its block can be a victim, wherever it
//!   lies, and does not count. The last page of a database log is rewritten with every commit and lies still
//!   for a whole round of the log after that; only the round matters.
//! * A life below another share (`floor`) counts as that share. Blocks of such data are empty when their turn
//!   comes, so differences among them save no copies.
//!
//! The expected lives of recent writes make a histogram of eighths of a power of two. Classes are the natural
//! breaks of it (Fisher, JASA 1958: least squares within classes), found anew every sixty-fourth of the
//! capacity. The shortest class, and what nothing is known about, has no stream.
//!
//! Every stream costs open blocks. As long as expected and actual lives correlate by less than `skill`, as
//! under uniform writes, no write has a stream. Half as much again is needed to begin than to go on, and at
//! least a capacity of lives must have ended: all lives are short in the beginning.
//!
//! A write costs one look into the table for each region it covers. The classes cost some 50,000 operations
//! each time, which the pages between share.

use super::{PolicyEntry, StreamPolicy, WriteFacts};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    REGION: Option<u64> = size(512, 1 << 30), "bytes whose death time is learned together; absent: a page";
    ENTRIES: u64 = int(1024, 1 << 28) or "262144", "regions that are remembered, 12 B each";
    SHORT: u64 = int(1, 1 << 20) or "128", "lives below this fraction of the capacity in writes do not count";
    FLOOR: u64 = int(1, 1 << 20) or "16", "lives below this fraction of the capacity in writes count as it";
    MEMORY: u64 = int(1, 255) or "20", "lives of a region over which the mean is taken";
    SKILL: f64 = float(0.0, 1.0) or "0.25",
        "least correlation of expected and actual lives with which streams are used; 0: always";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "death-time",
        summary: "learns how long written data lives, and keeps lives of different length apart",
        source: "nandscape; cf. SepBIT, FAST 2022",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        let region_bytes = params.get(REGION).unwrap_or(setup.page_bytes).max(1);
        let shape = Shape {
            region_bytes,
            capacity: (setup.capacity_bytes / region_bytes).max(1),
            short: params.get(SHORT),
            floor: params.get(FLOOR),
            memory: params.get(MEMORY) as u8,
            skill: params.get(SKILL),
        };
        Ok(Box::new(DeathTime::new(shape, params.get(ENTRIES), setup.streams)))
    },
};

/// Regions of a set, of which the one written longest ago makes room.
const WAYS: usize = 4;
/// A logarithm of a life is kept in parts of a power of two, and classed in coarser ones.
const PARTS: f64 = 1024.0;
const BINS_PER_POWER: f64 = 8.0;
/// Powers of two above the floor that are told apart.
const BINS: usize = 128;
/// What is left of the histogram each time classes are found.
const KEPT: f64 = 0.98;
/// Regions of one write that are looked at: beyond them it is as good as a sequential one.
const LONGEST: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Shape {
    region_bytes: u64,
    /// In regions, as all times.
    capacity: u64,
    short: u64,
    floor: u64,
    memory: u8,
    skill: f64,
}

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    /// One more than its number, cut to 32 bits; 0 for a free entry.
    tag: u32,
    /// Clock of its last write, cut to 32 bits: lives of 2^32 regions and more appear shorter.
    born: u32,
    /// Mean logarithm of its lives.
    mean: u16,
    /// Lives in the mean, up to the memory.
    lives: u8,
    is_alive: bool,
}

/// Sums over lives that ended, older ones counting less, for the correlation of expected and actual ones.
#[derive(Clone, Copy, Debug, Default)]
struct Skill {
    weight: f64,
    expected: f64,
    actual: f64,
    expected_squares: f64,
    actual_squares: f64,
    products: f64,
}

impl Skill {
    fn add(&mut self, expected: f64, actual: f64, kept: f64) {
        self.weight = self.weight * kept + 1.0;
        self.expected = self.expected * kept + expected;
        self.actual = self.actual * kept + actual;
        self.expected_squares = self.expected_squares * kept + expected * expected;
        self.actual_squares = self.actual_squares * kept + actual * actual;
        self.products = self.products * kept + expected * actual;
    }

    /// 0 where either does not vary.
    fn correlation(&self) -> f64 {
        let weight = self.weight.max(1.0);
        let (expected, actual) = (self.expected / weight, self.actual / weight);
        let spread = (self.expected_squares / weight - expected * expected)
            * (self.actual_squares / weight - actual * actual);
        let together = self.products / weight - expected * actual;
        if spread > 1e-9 { together / spread.sqrt() } else { 0.0 }
    }
}

#[derive(Debug)]
struct DeathTime {
    shape: Shape,
    streams: u16,
    /// Sets of [`WAYS`].
    regions: Vec<Region>,
    /// Regions written.
    clock: u64,
    /// Logarithms of the shares of the capacity.
    short: f64,
    floor: f64,
    histogram: Vec<f64>,
    /// First bin of each class but the first.
    borders: Vec<usize>,
    /// When classes are found next.
    due: u64,
    skill: Skill,
    /// Lives that were expected and ended.
    ended: u64,
    is_on: bool,
}

impl DeathTime {
    fn new(shape: Shape, entries: u64, streams: u16) -> Self {
        let sets = (entries as usize / WAYS).next_power_of_two();
        let share = |part: u64| (shape.capacity as f64 / part as f64).max(1.0).log2();
        Self {
            shape,
            streams,
            regions: if streams == 0 { Vec::new() } else { vec![Region::default(); sets * WAYS] },
            clock: 0,
            short: share(shape.short),
            floor: share(shape.floor),
            histogram: vec![0.0; BINS],
            borders: Vec::new(),
            due: 0,
            skill: Skill::default(),
            ended: 0,
            is_on: shape.skill == 0.0,
        }
    }

    /// Where the set of a region begins, and its tag.
    fn set(&self, region: u64) -> (usize, u32) {
        let hash = region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let sets = self.regions.len() / WAYS;
        // Their number is a power of two.
        ((hash as usize & (sets - 1)) * WAYS, (region as u32).wrapping_add(1).max(1))
    }

    fn find(&self, region: u64) -> Option<usize> {
        let (start, tag) = self.set(region);
        self.find_in(start, tag)
    }

    fn find_in(&self, start: usize, tag: u32) -> Option<usize> {
        (start..start + WAYS).find(|at| self.regions[*at].tag == tag)
    }

    /// The entry of a region, made if need be in place of the one that was written longest ago.
    fn entry(&mut self, region: u64) -> usize {
        let (start, tag) = self.set(region);
        if let Some(at) = self.find_in(start, tag) {
            return at;
        }
        let now = self.clock as u32;
        let oldest = (start..start + WAYS).max_by_key(|at| {
            let region = &self.regions[*at];
            (region.tag == 0, now.wrapping_sub(region.born))
        });
        let at = oldest.expect("a set has entries");
        self.regions[at] = Region { tag, ..Region::default() };
        at
    }

    /// What a region held is dead: learns from how long it lived.
    fn die(&mut self, at: usize) {
        let region = &mut self.regions[at];
        if !std::mem::replace(&mut region.is_alive, false) {
            return;
        }
        let life = f64::from((self.clock as u32).wrapping_sub(region.born).max(1)).log2();
        if life <= self.short {
            return;
        }
        let life = life.max(self.floor);
        let mean = f64::from(region.mean) / PARTS;
        if region.lives > 0 {
            self.skill.add(mean, life, 1.0 - 1.0 / self.shape.capacity as f64);
            self.ended += 1;
        }
        region.lives = region.lives.saturating_add(1).min(self.shape.memory);
        let mean = mean + (life - mean) / f64::from(region.lives);
        region.mean = (mean * PARTS).round() as u16;
    }

    /// The bin of the life that is expected of a region, if anything is known of it.
    fn bin(&self, region: u64) -> Option<usize> {
        let region = &self.regions[self.find(region)?];
        let above = f64::from(region.mean) / PARTS - self.floor;
        (region.lives > 0).then(|| ((above * BINS_PER_POWER).max(0.0) as usize).min(BINS - 1))
    }

    /// Classes anew, and whether they pay.
    fn review(&mut self) {
        self.due = self.clock + (self.shape.capacity / 64).max(1024);
        self.borders = natural_breaks(&self.histogram, usize::from(self.streams) + 1);
        for weight in &mut self.histogram {
            *weight *= KEPT;
        }
        let least = self.shape.skill;
        if least > 0.0 {
            let needed = if self.is_on { least / 1.5 } else { least };
            self.is_on = self.ended >= self.shape.capacity && self.skill.correlation() >= needed;
        }
    }
}

/// First bins of the classes but the first, of at most `classes`, that make the sum of squared distances to
/// the mean of the class least; found by dynamic programming over the range of bins in use.
fn natural_breaks(histogram: &[f64], classes: usize) -> Vec<usize> {
    let Some(first) = histogram.iter().position(|weight| *weight > 0.0) else { return Vec::new() };
    let end = histogram.iter().rposition(|weight| *weight > 0.0).map_or(0, |last| last + 1);
    let mut sums = vec![[0.0; 3]];
    for (bin, weight) in histogram[first..end].iter().enumerate() {
        let [all, once, twice] = sums[bin];
        let x = bin as f64;
        sums.push([all + weight, once + weight * x, twice + weight * x * x]);
    }
    let cost = |from: usize, to: usize| {
        let [all, once, twice] = [0, 1, 2].map(|power: usize| sums[to][power] - sums[from][power]);
        if all > 0.0 { (twice - once * once / all).max(0.0) } else { 0.0 }
    };
    let bins = end - first;
    // Least cost of the first bins in so many classes, and where the last of those begins.
    let mut best: Vec<f64> = (0..=bins).map(|to| cost(0, to)).collect();
    let mut starts: Vec<Vec<usize>> = Vec::new();
    for class in 1..classes.min(bins) {
        let mut next = (vec![f64::INFINITY; bins + 1], vec![0; bins + 1]);
        for to in class + 1..=bins {
            for (from, least) in best.iter().enumerate().take(to).skip(class) {
                let sum = least + cost(from, to);
                if sum < next.0[to] {
                    (next.0[to], next.1[to]) = (sum, from);
                }
            }
        }
        best = next.0;
        starts.push(next.1);
    }
    let mut to = bins;
    let mut borders: Vec<usize> = starts
        .iter()
        .rev()
        .map(|starts| {
            to = starts[to];
            first + to
        })
        .collect();
    borders.reverse();
    borders
}

impl StreamPolicy for DeathTime {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        if self.streams == 0 || write.len == 0 {
            return 0;
        }
        let first = write.offset / self.shape.region_bytes;
        let end = write.offset.saturating_add(write.len).div_ceil(self.shape.region_bytes);
        let regions = (end - first).min(LONGEST);
        // The middle one stands for the write.
        let mut stream = 0;
        if let Some(bin) = self.bin(first + regions / 2) {
            self.histogram[bin] += regions as f64;
            if self.is_on {
                stream = self.borders.partition_point(|border| *border <= bin) as u16;
            }
        }
        for region in first..first + regions {
            let at = self.entry(region);
            self.die(at);
            let born = self.clock as u32;
            let region = &mut self.regions[at];
            (region.born, region.is_alive) = (born, true);
        }
        self.clock += regions;
        if self.clock >= self.due {
            self.review();
        }
        stream
    }

    fn trimmed(&mut self, offset: u64, len: u64) {
        if self.streams == 0 {
            return;
        }
        // A region that is trimmed only in part lives on.
        let first = offset.div_ceil(self.shape.region_bytes);
        let end = offset.saturating_add(len) / self.shape.region_bytes;
        // A trim of more regions than there are entries asks each entry instead: see `trim_all`.
        if end.saturating_sub(first) > self.regions.len() as u64 {
            return self.trim_all(first, end);
        }
        for region in first..end {
            if let Some(at) = self.find(region) {
                self.die(at);
            }
        }
    }

    fn memory_bytes(&self) -> u64 {
        (self.regions.len() * size_of::<Region>() + self.histogram.len() * 8) as u64
    }
}

impl DeathTime {
    /// A long trim: whatever entry lies inside. Entries know the low bits of their number only, which is
    /// enough below 2^32 regions.
    fn trim_all(&mut self, first: u64, end: u64) {
        for at in 0..self.regions.len() {
            let tag = self.regions[at].tag;
            if tag > 0 && (first..end).contains(&u64::from(tag - 1)) {
                self.die(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts};
    use super::*;
    use nandscape_core::rng::{below, seeded};
    use std::collections::BTreeMap;

    /// Pages of the device of these tests: 1 GiB, of which loads use this share.
    const PAGES: u64 = 1 << 18;

    fn learned(streams: u16, writes: u64, mut page: impl FnMut(u64) -> u64) -> BTreeMap<(bool, u16), u64> {
        let mut policy = build("death-time", &[], streams);
        let mut counts = BTreeMap::new();
        for write in 0..writes {
            let page = page(write);
            let stream = policy.assign(&facts(page * 4096));
            if write >= writes / 2 {
                *counts.entry((page < PAGES / 10, stream)).or_default() += 1;
            }
        }
        counts
    }

    #[test]
    fn hot_and_cold_pages_have_different_streams() {
        let mut rng = seeded(1);
        let counts = learned(4, 8 * PAGES, |_| {
            let is_hot = below(&mut rng, 10) < 9;
            if is_hot { below(&mut rng, PAGES / 10) } else { below(&mut rng, PAGES) }
        });
        // Each stream has pages of one kind. Cold pages that are written for the first time have none.
        let mixed: u64 = (1..=4)
            .map(|stream| {
                let of = |is_hot| counts.get(&(is_hot, stream)).copied().unwrap_or(0);
                of(true).min(of(false))
            })
            .sum();
        let all: u64 = counts.values().sum();
        assert!(mixed * 25 < all, "{mixed} of {all} beside their opposites: {counts:?}");
    }

    #[test]
    fn uniform_writes_have_no_stream() {
        for seed in 0..3 {
            let mut rng = seeded(seed);
            let counts = learned(8, 8 * PAGES, |_| below(&mut rng, PAGES));
            assert!(counts.keys().all(|(_, stream)| *stream == 0), "seed {seed}: {counts:?}");
        }
    }

    #[test]
    fn a_tail_that_is_rewritten_does_not_hide_the_round_of_its_log() {
        let shape =
            Shape { region_bytes: 4096, capacity: 4096, short: 128, floor: 16, memory: 20, skill: 0.0 };
        let mut policy = DeathTime::new(shape, 8192, 4);
        // A log of 1024 pages, each written five times in a row.
        for write in 0..5 * 1024 * 4 {
            policy.assign(&facts(write / 5 % 1024 * 4096));
        }
        let region = policy.regions[policy.find(500).unwrap()];
        let round = f64::from(5 * 1024 - 4).log2();
        assert!((f64::from(region.mean) / PARTS - round).abs() < 0.01, "{region:?}");
    }

    #[test]
    fn a_trim_is_a_death_and_leaves_alone_what_it_covers_in_part() {
        let shape = Shape { region_bytes: 4096, capacity: 64, short: 64, floor: 64, memory: 20, skill: 0.0 };
        let mut policy = DeathTime::new(shape, 1024, 4);
        for page in 0..16 {
            policy.assign(&facts(page * 4096));
        }
        policy.trimmed(100, 3 * 4096);
        let of = |policy: &DeathTime, page| policy.regions[policy.find(page).unwrap()];
        assert_eq!([0, 1, 2, 3].map(|page| of(&policy, page).is_alive), [true, false, false, true]);
        assert_eq!(of(&policy, 1).mean, (f64::from(15).log2() * PARTS).round() as u16);
        policy.trimmed(0, 1 << 40);
        assert!((0..16).all(|page| !of(&policy, page).is_alive));
    }

    #[test]
    fn memory_is_that_of_the_entries_whatever_is_written() {
        let mut policy = build("death-time", &[("entries", "1024")], 8);
        let before = policy.memory_bytes();
        for page in 0..100_000 {
            policy.assign(&facts(page * 4096));
        }
        assert_eq!(policy.memory_bytes(), before);
        assert_eq!(before, 1024 * 12 + 128 * 8);
    }

    #[test]
    fn natural_breaks_fall_between_clusters() {
        let mut histogram = vec![0.0; BINS];
        for (bin, weight) in [(3, 5.0), (4, 9.0), (40, 1.0), (41, 2.0), (90, 50.0)] {
            histogram[bin] = weight;
        }
        let borders = natural_breaks(&histogram, 3);
        assert!(borders.len() == 2 && (5..=40).contains(&borders[0]) && (42..=90).contains(&borders[1]));
        assert_eq!(natural_breaks(&histogram, 1), []);
        assert_eq!(natural_breaks(&[0.0; 9], 3), []);
        // No more classes than bins.
        assert_eq!(natural_breaks(&[1.0, 1.0], 5), [1]);
    }
}
