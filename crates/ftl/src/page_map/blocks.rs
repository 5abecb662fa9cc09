//! Valid pages: a bit for each physical page and a count for each block.

use crate::victim::BlockInfo;
use nandscape_core::Ppn;

#[derive(Debug)]
pub(super) struct Blocks {
    pub infos: Vec<BlockInfo>,
    bits: Vec<u64>,
    pages_per_block: u32,
}

impl Blocks {
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let pages = u64::from(blocks) * u64::from(pages_per_block);
        Self {
            infos: vec![BlockInfo::default(); blocks as usize],
            bits: vec![0; pages.div_ceil(64) as usize],
            pages_per_block,
        }
    }

    #[inline]
    pub const fn block_of(&self, page: Ppn) -> u32 {
        page.0 / self.pages_per_block
    }

    #[inline]
    pub fn set(&mut self, page: Ppn, block: u32) {
        self.bits[page.index() / 64] |= 1 << (page.0 % 64);
        self.infos[block as usize].valid += 1;
    }

    #[inline]
    pub fn clear(&mut self, page: Ppn, block: u32) -> BlockInfo {
        self.bits[page.index() / 64] &= !(1 << (page.0 % 64));
        let info = &mut self.infos[block as usize];
        info.valid -= 1;
        *info
    }

    #[inline]
    pub fn is_valid(&self, page: Ppn) -> bool {
        self.bits[page.index() / 64] >> (page.0 % 64) & 1 == 1
    }

    /// The first valid page at or after `from` and before `end`.
    #[inline]
    pub fn next_valid(&self, from: u32, end: u32) -> Option<Ppn> {
        let mut word = from / 64;
        if from >= end {
            return None;
        }
        let mut bits = self.bits[word as usize] & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                let page = word * 64 + bits.trailing_zeros();
                return (page < end).then_some(Ppn(page));
            }
            word += 1;
            if u64::from(word) * 64 >= u64::from(end) {
                return None;
            }
            bits = self.bits[word as usize];
        }
    }

    pub const fn bytes(&self) -> u64 {
        (self.infos.len() * size_of::<BlockInfo>() + self.bits.len() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_pages_are_found_in_order_across_words() {
        let mut blocks = Blocks::new(3, 70);
        let pages = [0, 63, 64, 69, 70, 139, 140, 209];
        for page in pages {
            blocks.set(Ppn(page), page / 70);
        }
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(page) = blocks.next_valid(at, 210) {
            found.push(page.0);
            at = page.0 + 1;
        }
        assert_eq!(found, pages);
        assert_eq!(blocks.next_valid(71, 139), None);
        assert_eq!(blocks.next_valid(139, 140), Some(Ppn(139)));
        assert_eq!(blocks.clear(Ppn(139), 1).valid, 1);
        assert_eq!(blocks.next_valid(71, 140), None);
    }
}
