//! Which blocks of a region were hit already: one bit a block, with summaries above, so that the next free
//! block is found in a few steps however full the region is. For jobs whose requests differ in size; others
//! need no memory (see `permutation`).

/// Levels of words; bit b of a word above says that word b below is all ones.
#[derive(Clone, Debug)]
pub(crate) struct Axmap {
    blocks: u64,
    levels: Vec<Vec<u64>>,
    taken: u64,
}

impl Axmap {
    pub fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut count = blocks;
        loop {
            let words = count.div_ceil(64).max(1);
            let mut level = vec![0u64; words as usize];
            // Bits beyond the end count as taken, so that full words can be told by being all ones.
            if !count.is_multiple_of(64) || count == 0 {
                level[words as usize - 1] = u64::MAX << (count % 64);
            }
            levels.push(level);
            if words == 1 {
                break;
            }
            count = words;
        }
        Self { blocks, levels, taken: 0 }
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.blocks);
    }

    pub const fn is_full(&self) -> bool {
        self.taken == self.blocks
    }

    /// Whether a block is free.
    pub fn is_free(&self, block: u64) -> bool {
        self.levels[0].get((block / 64) as usize).is_none_or(|word| word >> (block % 64) & 1 == 0)
    }

    /// The first free block at or after `from`, else the first free block of all; `None` if there is none.
    pub fn next_free(&self, from: u64) -> Option<u64> {
        if self.is_full() { None } else { self.search(from).or_else(|| self.search(0)) }
    }

    fn search(&self, from: u64) -> Option<u64> {
        let mut at = from;
        let mut level = 0;
        // Up until a word has a free bit at or after `at`, then down to the lowest free bit.
        loop {
            let word = *self.levels.get(level)?.get((at / 64) as usize)?;
            let free = !word & (u64::MAX << (at % 64));
            if free != 0 {
                at = at / 64 * 64 + u64::from(free.trailing_zeros());
                break;
            }
            at = at / 64 + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            let word = self.levels[level][at as usize];
            at = at * 64 + u64::from((!word).trailing_zeros());
        }
        Some(at)
    }

    /// Takes up to `count` free blocks in a row from `block` on, which is free; gives how many there were.
    pub fn take(&mut self, block: u64, count: u64) -> u64 {
        let mut done = 0;
        while done < count && block + done < self.blocks && self.is_free(block + done) {
            self.set(block + done);
            done += 1;
        }
        self.taken += done;
        done
    }

    fn set(&mut self, mut bit: u64) {
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                break;
            }
            bit /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn every_block_is_found_once_whatever_the_order() {
        let mut rng = seeded(1);
        for blocks in [1, 2, 63, 64, 65, 4095, 4096, 4097, 300_000] {
            let mut map = Axmap::new(blocks);
            let mut seen = vec![false; blocks as usize];
            while let Some(block) = map.next_free(below(&mut rng, blocks)) {
                let run = map.take(block, 1 + below(&mut rng, 5));
                assert!(run > 0);
                for b in block..block + run {
                    assert!(!std::mem::replace(&mut seen[b as usize], true), "{b} of {blocks} twice");
                }
            }
            assert!(map.is_full() && seen.iter().all(|s| *s), "{blocks}");
            map.clear();
            assert_eq!(map.next_free(blocks - 1), Some(blocks - 1));
        }
    }
}
