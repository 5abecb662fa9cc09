//! What no simulator of a greedy page map can do without: the map, the inverse map, the valid bits and
//! counts, the bucket lists, and the copies. No traits, no time, no statistics, no dies, no checks beyond
//! those of the language.

use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};

const NONE: u32 = u32::MAX;

/// One open block.
#[derive(Clone, Copy)]
struct Frontier {
    next: u32,
    end: u32,
}

/// A greedy page map over single pages, filled and ready to be overwritten.
pub struct Bare {
    pages_per_block: u32,
    map: Vec<u32>,
    inverse: Vec<u32>,
    valid_bits: Vec<u64>,
    valid: Vec<u32>,
    sealed: Vec<bool>,
    /// Bucket lists by valid pages; the sentinel of bucket v is node `blocks + v`.
    links: Vec<[u32; 2]>,
    lowest: u32,
    free: Vec<u32>,
    host: Frontier,
    gc: Frontier,
    rng: Xoshiro256PlusPlus,
    writes: u64,
    copies: u64,
}

impl Bare {
    pub fn new(blocks: u32, pages_per_block: u32, logical_pages: u32) -> Self {
        let pages = (blocks * pages_per_block) as usize;
        let mut this = Self {
            pages_per_block,
            map: vec![NONE; logical_pages as usize],
            inverse: vec![NONE; pages],
            valid_bits: vec![0; pages.div_ceil(64)],
            valid: vec![0; blocks as usize],
            sealed: vec![false; blocks as usize],
            links: (0..=blocks + pages_per_block).map(|node| [node, node]).collect(),
            lowest: pages_per_block,
            free: (0..blocks).rev().collect(),
            host: Frontier { next: 0, end: 0 },
            gc: Frontier { next: 0, end: 0 },
            rng: seeded(1),
            writes: 0,
            copies: 0,
        };
        (0..logical_pages).for_each(|lpn| this.write(lpn));
        this
    }

    /// Programs over host writes since the last reset.
    pub fn waf(&self) -> f64 {
        1.0 + self.copies as f64 / self.writes as f64
    }

    pub fn reset_waf(&mut self) {
        (self.writes, self.copies) = (0, 0);
    }

    pub fn overwrite(&mut self, writes: u64) {
        for _ in 0..writes {
            let lpn = below(&mut self.rng, self.map.len() as u64) as u32;
            self.write(lpn);
        }
    }

    #[inline]
    fn write(&mut self, lpn: u32) {
        self.writes += 1;
        if self.host.next == self.host.end {
            while self.free.len() < 3 {
                self.collect();
            }
            self.host = self.open();
        }
        let page = self.host.next;
        self.host.next += 1;
        let end = self.host.end;
        let old = std::mem::replace(&mut self.map[lpn as usize], page);
        self.place(lpn, page, end);
        if old != NONE {
            self.drop_page(old);
        }
    }

    fn open(&mut self) -> Frontier {
        let next = self.free.pop().expect("collection keeps blocks free") * self.pages_per_block;
        Frontier { next, end: next + self.pages_per_block }
    }

    #[inline]
    fn place(&mut self, lpn: u32, page: u32, end: u32) {
        let block = page / self.pages_per_block;
        self.inverse[page as usize] = lpn;
        self.valid_bits[page as usize / 64] |= 1 << (page % 64);
        self.valid[block as usize] += 1;
        if page + 1 == end {
            self.sealed[block as usize] = true;
            let valid = self.valid[block as usize];
            self.link(block, valid);
        }
    }

    #[inline]
    fn drop_page(&mut self, page: u32) {
        let block = page / self.pages_per_block;
        self.valid_bits[page as usize / 64] &= !(1 << (page % 64));
        self.valid[block as usize] -= 1;
        if self.sealed[block as usize] {
            self.unlink(block);
            let valid = self.valid[block as usize];
            self.link(block, valid);
        }
    }

    #[inline]
    fn link(&mut self, block: u32, valid: u32) {
        let sentinel = self.valid.len() as u32 + valid;
        let last = self.links[sentinel as usize][0];
        self.links[block as usize] = [last, sentinel];
        self.links[last as usize][1] = block;
        self.links[sentinel as usize][0] = block;
        self.lowest = self.lowest.min(valid);
    }

    #[inline]
    fn unlink(&mut self, block: u32) {
        let [prev, next] = self.links[block as usize];
        self.links[prev as usize][1] = next;
        self.links[next as usize][0] = prev;
    }

    fn collect(&mut self) {
        let blocks = self.valid.len() as u32;
        let victim = loop {
            let first = self.links[(blocks + self.lowest) as usize][1];
            if first < blocks {
                break first;
            }
            self.lowest += 1;
        };
        self.unlink(victim);
        self.sealed[victim as usize] = false;
        let words = (self.pages_per_block / 64) as usize;
        for word in victim as usize * words..(victim as usize + 1) * words {
            let mut bits = std::mem::take(&mut self.valid_bits[word]);
            while bits != 0 {
                let page = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if self.gc.next == self.gc.end {
                    self.gc = self.open();
                }
                let target = self.gc.next;
                self.gc.next += 1;
                let lpn = self.inverse[page as usize];
                self.map[lpn as usize] = target;
                let end = self.gc.end;
                self.place(lpn, target, end);
                self.copies += 1;
            }
        }
        self.valid[victim as usize] = 0;
        self.free.push(victim);
    }
}
