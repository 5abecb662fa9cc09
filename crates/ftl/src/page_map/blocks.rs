//! Valid pages: a bit for each physical page and a count for each block.

use crate::victim::BlockInfo;
use nandscape_core::{Divider, Ppn, state};
use nandscape_memory::prefetch;

/// Valid pages of blocks.
#[derive(Debug)]
pub struct Blocks {
    /// Valid pages and state of each block.
    pub infos: Vec<BlockInfo>,
    bits: Vec<u64>,
    pages_per_block: Divider,
}

state!(impl [] Blocks { tables: infos, bits; fixed: pages_per_block; });

/// Walks over the valid pages of a block, which must not lose or gain any meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct ValidPages {
    word: u32,
    bits: u64,
    end: u32,
}

impl Blocks {
    /// So many blocks without valid pages.
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let pages = u64::from(blocks) * u64::from(pages_per_block);
        Self {
            infos: vec![BlockInfo::default(); blocks as usize],
            bits: vec![0; pages.div_ceil(64) as usize],
            pages_per_block: Divider::new(pages_per_block),
        }
    }

    /// The block of a page.
    #[inline]
    pub const fn block_of(&self, page: Ppn) -> u32 {
        self.pages_per_block.quotient(page.0)
    }

    /// A page of a block becomes valid.
    #[inline]
    pub fn set(&mut self, page: Ppn, block: u32) {
        let (word, bit) = (&mut self.bits[page.index() / 64], 1 << (page.0 % 64));
        assert!(*word & bit == 0, "page {} of block {block} is valid already", page.0);
        *word |= bit;
        self.infos[block as usize].valid += 1;
    }

    /// Neighbouring pages of a block become valid.
    #[inline]
    pub fn set_run(&mut self, first: Ppn, count: u32, block: u32) {
        let (mut page, end) = (first.0, first.0 + count);
        while page < end {
            let within = page % 64;
            let bits = (end - page).min(64 - within);
            let mask = u64::MAX >> (64 - bits) << within;
            let word = &mut self.bits[page as usize / 64];
            assert!(*word & mask == 0, "of pages {page} to {end} of block {block} some are valid already");
            *word |= mask;
            page += bits;
        }
        self.infos[block as usize].valid += count;
    }

    /// A page of a block is valid no longer; returns what is known of the block now.
    #[inline]
    pub fn clear(&mut self, page: Ppn, block: u32) -> BlockInfo {
        let (word, bit) = (&mut self.bits[page.index() / 64], 1 << (page.0 % 64));
        assert!(*word & bit != 0, "page {} of block {block} is not valid", page.0);
        *word &= !bit;
        let info = &mut self.infos[block as usize];
        info.valid -= 1;
        *info
    }

    /// Whether a page is valid.
    #[inline]
    pub fn is_valid(&self, page: Ppn) -> bool {
        self.bits[page.index() / 64] >> (page.0 % 64) & 1 == 1
    }

    /// Starts to load what says whether a page is valid.
    #[inline]
    pub fn prefetch(&self, page: Ppn) {
        prefetch(&self.bits[page.index() / 64]);
    }

    /// The valid pages of a block.
    pub fn valid_pages(&self, block: u32) -> ValidPages {
        self.valid_pages_from(block, Ppn(block * self.pages_per_block.divisor()))
    }

    /// The valid pages of a block from one of its pages on.
    #[inline]
    pub fn valid_pages_from(&self, block: u32, first: Ppn) -> ValidPages {
        let bits = self.bits[first.index() / 64] & (u64::MAX << (first.0 % 64));
        ValidPages { word: first.0 / 64, bits, end: (block + 1) * self.pages_per_block.divisor() }
    }

    /// The next of them.
    #[inline]
    pub fn next_valid(&self, pages: &mut ValidPages) -> Option<Ppn> {
        while pages.bits == 0 {
            pages.word += 1;
            if u64::from(pages.word) * 64 >= u64::from(pages.end) {
                return None;
            }
            pages.bits = self.bits[pages.word as usize];
        }
        let page = pages.word * 64 + pages.bits.trailing_zeros();
        pages.bits &= pages.bits - 1;
        (page < pages.end).then_some(Ppn(page))
    }

    /// Drops the first valid pages of a block, `count` of them, the last of which is `last`.
    pub fn clear_to(&mut self, block: u32, last: Ppn, count: u32) {
        let first = block * self.pages_per_block.divisor();
        let valid = self.infos[block as usize].valid;
        assert!(count <= valid, "{count} pages of block {block} are dropped, of {valid} that are valid");
        assert_eq!(self.block_of(last), block, "the block of {last:?}");
        for word in first / 64..=last.0 / 64 {
            let from = first.max(word * 64) % 64;
            let to = last.0.min(word * 64 + 63) % 64;
            self.bits[word as usize] &= !((u64::MAX >> (63 - to + from)) << from);
        }
        self.infos[block as usize].valid = valid - count;
        debug_assert_eq!(self.count_bits(block), valid - count, "valid bits of block {block} after {last:?}");
    }

    /// Valid pages of a block, counted one by one.
    pub fn count_bits(&self, block: u32) -> u32 {
        let mut pages = self.valid_pages(block);
        std::iter::from_fn(|| self.next_valid(&mut pages)).count() as u32
    }

    /// Memory of it.
    pub const fn bytes(&self) -> u64 {
        (self.infos.len() * size_of::<BlockInfo>() + self.bits.len() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(blocks: &Blocks, block: u32) -> Vec<u32> {
        let mut pages = blocks.valid_pages(block);
        std::iter::from_fn(|| blocks.next_valid(&mut pages)).map(|page| page.0).collect()
    }

    #[test]
    fn valid_pages_are_found_in_order_and_inside_their_block() {
        let mut blocks = Blocks::new(3, 70);
        for page in [0, 63, 64, 69, 70, 139, 140, 209] {
            blocks.set(Ppn(page), page / 70);
        }
        assert_eq!(found(&blocks, 0), [0, 63, 64, 69]);
        assert_eq!(found(&blocks, 1), [70, 139]);
        assert_eq!(found(&blocks, 2), [140, 209]);
        assert_eq!(blocks.clear(Ppn(139), 1).valid, 1);
        assert_eq!(found(&blocks, 1), [70]);
    }

    #[test]
    fn neighbouring_pages_become_valid_together() {
        for (first, count) in [(140, 70), (140, 1), (150, 40), (191, 2), (192, 1), (209, 1), (140, 0)] {
            let mut blocks = Blocks::new(3, 70);
            blocks.set_run(Ppn(first), count, 2);
            assert_eq!(found(&blocks, 2), (first..first + count).collect::<Vec<_>>());
            assert_eq!((blocks.infos[2].valid, found(&blocks, 1)), (count, vec![]));
        }
    }

    #[test]
    fn the_first_pages_of_a_block_are_dropped_together() {
        for (size, cut) in [(70, 3), (70, 64), (5, 5), (64, 64), (256, 200), (1, 1)] {
            let mut blocks = Blocks::new(3, size);
            for page in 0..3 * size {
                blocks.set(Ppn(page), page / size);
            }
            blocks.clear_to(1, Ppn(size + cut - 1), cut);
            assert_eq!(blocks.infos[1].valid, size - cut);
            assert_eq!(found(&blocks, 0), (0..size).collect::<Vec<_>>());
            assert_eq!(found(&blocks, 1), (size + cut..2 * size).collect::<Vec<_>>(), "{size} {cut}");
            assert_eq!(found(&blocks, 2), (2 * size..3 * size).collect::<Vec<_>>());
        }
    }
}
