//! LRU at every size in one pass.

use super::{Accesses, Counts, Request};
use crate::hash::KeyMap;
use std::collections::BinaryHeap;

const WORDS_MIN: usize = 16;

/// Stack distances of a stream of requests (Mattson, Gecsei, Slutz and Traiger, IBM Systems Journal 9(2),
/// 1970): a request hits in an LRU cache of `C` blocks if and only if its block is among the `C` used last.
/// How deep it lies is counted by a tree over the times of last use (Bennett and Kruskal, IBM J. Res. Dev.
/// 19(4), 1975), so a request costs O(log n), n being the blocks that are alive.
///
/// A trimmed block leaves a hole. Caches that reach the hole's depth have a free slot, and the next miss that
/// they see takes it: everything above the first hole sinks by one, and nothing below it.
#[derive(Clone, Debug)]
pub struct StackDistances {
    /// Time of the last use of each block.
    last: KeyMap,
    /// A mark for each block and each hole, by time.
    marks: Marks,
    /// Times of holes, the youngest first.
    holes: BinaryHeap<u64>,
    now: u64,
    hits: [Histogram; 2],
    /// Reads and writes of blocks that no cache could have.
    cold: [u64; 2],
    trims: Histogram,
}

/// Hits by distance; the first is distance 1.
type Histogram = Vec<u64>;

impl Default for StackDistances {
    fn default() -> Self {
        Self {
            last: KeyMap::default(),
            marks: Marks::new(WORDS_MIN),
            holes: BinaryHeap::new(),
            now: 0,
            hits: [Vec::new(), Vec::new()],
            cold: [0; 2],
            trims: Vec::new(),
        }
    }
}

impl StackDistances {
    /// Nothing asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds the next requests.
    pub fn feed(&mut self, requests: &[Request]) {
        for request in requests {
            if request.is_trim() {
                self.trim(*request);
            } else {
                self.request(*request);
            }
        }
    }

    #[inline]
    fn request(&mut self, request: Request) {
        if self.now == self.marks.len() {
            self.renumber();
        }
        let side = usize::from(request.is_write());
        let before = self.last.insert(request.key().0, self.now);
        match before {
            Some(before) => add(&mut self.hits[side], self.marks.since(before)),
            None => self.cold[side] += 1,
        }
        match self.holes.peek() {
            Some(&hole) if before.is_none_or(|before| before < hole) => self.fill(hole, before),
            _ => {
                if let Some(before) = before {
                    self.marks.clear(before);
                }
            }
        }
        self.marks.set(self.now);
        self.now += 1;
    }

    /// The youngest hole is taken, and the block's old place becomes one.
    #[cold]
    fn fill(&mut self, hole: u64, before: Option<u64>) {
        self.holes.pop();
        self.marks.clear(hole);
        self.holes.extend(before);
    }

    #[cold]
    fn trim(&mut self, request: Request) {
        if let Some(before) = self.last.remove(&{ request.key().0 }) {
            add(&mut self.trims, self.marks.since(before));
            self.holes.push(before);
        }
    }

    /// Gives the marks the times 0, 1 ... again, in a clock with room for seven times as many more: a bit
    /// each.
    #[cold]
    fn renumber(&mut self) {
        let marked = self.marks.total();
        let mut younger = Marks::new((8 * marked as usize).div_ceil(64).max(WORDS_MIN));
        let ranks = &self.marks;
        for time in self.last.values_mut() {
            *time = marked - ranks.since(*time);
        }
        self.holes = self.holes.drain().map(|time| marked - ranks.since(time)).collect();
        younger.fill(marked);
        self.marks = younger;
        self.now = marked;
    }

    /// Blocks that were asked for and not trimmed since.
    pub fn blocks(&self) -> u64 {
        self.last.len() as u64
    }

    /// Reads and writes that miss in every cache: the first of each block, and the first after a trim.
    pub fn first_uses(&self) -> u64 {
        self.cold.iter().sum()
    }

    /// The smallest size at which a larger cache has no hit more.
    pub fn size_max(&self) -> u64 {
        let longest = self.hits.iter().map(Vec::len).max().unwrap_or(0);
        longest.max(1) as u64
    }

    /// What an LRU cache of each of these sizes counts, in ascending order; one pass over the histogram.
    /// Evictions are those that follow from the rest.
    pub fn at(&self, sizes: &[u64]) -> Vec<Counts> {
        debug_assert!(sizes.is_sorted());
        let mut sums = [(0, 0); 3];
        let mut upto = |which: usize, histogram: &Histogram, size: u64| {
            let (sum, next) = &mut sums[which];
            let end = usize::try_from(size).unwrap_or(usize::MAX).min(histogram.len());
            *sum += histogram[*next..end.max(*next)].iter().sum::<u64>();
            *next = end.max(*next);
            *sum
        };
        let total = |side: usize| self.cold[side] + self.hits[side].iter().sum::<u64>();
        let (reads, writes) = (total(0), total(1));
        sizes
            .iter()
            .map(|&size| {
                let (read_hits, write_hits) = (upto(0, &self.hits[0], size), upto(1, &self.hits[1], size));
                let accesses = Accesses {
                    read_hits,
                    read_misses: reads - read_hits,
                    write_hits,
                    write_misses: writes - write_hits,
                };
                let (trimmed, used) = (upto(2, &self.trims, size), self.used(size));
                Counts { accesses, evictions: accesses.misses() - trimmed - used, trimmed, used }
            })
            .collect()
    }

    /// Blocks that a cache of that size holds now: its share of the stack without the holes.
    fn used(&self, size: u64) -> u64 {
        let depth = self.marks.total().min(size);
        let holes = self.holes.iter().filter(|hole| self.marks.since(**hole) <= size).count();
        depth - holes as u64
    }

    /// Sizes at which an LRU cache misses less often than at any smaller size, ascending.
    pub fn steps(&self) -> Vec<u64> {
        let at = |distance: usize| self.hits.iter().any(|h| h.get(distance).is_some_and(|n| *n > 0));
        (0..self.size_max() as usize).filter(|distance| at(*distance)).map(|d| d as u64 + 1).collect()
    }
}

#[inline]
fn add(histogram: &mut Histogram, distance: u64) {
    let at = distance as usize - 1;
    if at >= histogram.len() {
        histogram.resize(at + 1, 0);
    }
    histogram[at] += 1;
}

/// A bit for each time, and a tree (Fenwick, Software: Practice and Experience 24(3), 1994) of the bits set
/// in its words.
#[derive(Clone, Debug)]
struct Marks {
    words: Vec<u64>,
    /// One-based: entry `i` has the sum of the `i & -i` words that end with word `i - 1`.
    tree: Vec<u32>,
    total: u64,
}

impl Marks {
    fn new(words: usize) -> Self {
        Self { words: vec![0; words], tree: vec![0; words + 1], total: 0 }
    }

    const fn len(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    const fn total(&self) -> u64 {
        self.total
    }

    /// Sets the first `count`, of none.
    fn fill(&mut self, count: u64) {
        for time in 0..count {
            self.words[(time / 64) as usize] |= 1 << (time % 64);
        }
        for at in 1..self.tree.len() {
            self.tree[at] += self.words[at - 1].count_ones();
            let parent = at + (at & at.wrapping_neg());
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[at];
            }
        }
        self.total = count;
    }

    #[inline]
    fn set(&mut self, time: u64) {
        self.words[(time / 64) as usize] |= 1 << (time % 64);
        self.total += 1;
        self.change(time, 1);
    }

    #[inline]
    fn clear(&mut self, time: u64) {
        self.words[(time / 64) as usize] &= !(1 << (time % 64));
        self.total -= 1;
        self.change(time, u32::MAX);
    }

    #[inline]
    fn change(&mut self, time: u64, by: u32) {
        let mut at = (time / 64) as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    #[inline]
    fn since(&self, time: u64) -> u64 {
        let word = (time / 64) as usize;
        let mut before = u64::from((self.words[word] & ((1 << (time % 64)) - 1)).count_ones());
        let mut at = word;
        while at > 0 {
            before += u64::from(self.tree[at]);
            at &= at - 1;
        }
        self.total - before
    }
}
