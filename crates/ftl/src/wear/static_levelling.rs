//! Cold data is moved when erase counts drift apart.

use super::{WearEntry, WearPolicy};
use crate::victim::{BlockInfo, BlockState};
use nandscape_core::{Info, keys, state};
use std::collections::VecDeque;

keys! { PARAMS:
    pub WEAR_THRESHOLD: u32 = int(1, 1 << 30) or "100",
        "static wear levelling moves data when the most and the least erased block differ by more erases \
         than this";
}

/// Registry entry.
pub const ENTRY: WearEntry = WearEntry {
    info: Info {
        name: "static",
        summary: "dynamic, and data of the least erased block moves to the most erased free one when counts drift apart",
        source: "Gal and Toledo, ACM Computing Surveys 37(2), 2005, section 3",
        params: PARAMS,
    },
    build: |params, counts| Box::new(StaticLevelling::new(params.get(WEAR_THRESHOLD), counts)),
};

/// Keeps how many blocks have each erase count, from the least up, so that the spread is known without a
/// scan. The scan for the block itself goes round, and after a vain one waits until an eighth of the blocks
/// has been erased.
#[derive(Debug)]
struct StaticLevelling {
    threshold: u32,
    least: u32,
    /// `levels[i]` blocks have been erased `least + i` times. Neither end is 0.
    levels: VecDeque<u32>,
    cursor: usize,
    wait: usize,
}

state!(impl [] StaticLevelling { saved: least, levels, cursor, wait; fixed: threshold; });

impl StaticLevelling {
    fn new(threshold: u32, counts: &mut dyn Iterator<Item = u32>) -> Self {
        let mut sorted: Vec<u32> = counts.collect();
        sorted.sort_unstable();
        let least = sorted.first().copied().unwrap_or(0);
        let mut this = Self { threshold, least, levels: VecDeque::new(), cursor: 0, wait: 0 };
        for count in sorted {
            this.enter(count);
        }
        this
    }

    fn enter(&mut self, count: u32) {
        let level = (count - self.least) as usize;
        if level >= self.levels.len() {
            self.levels.resize(level + 1, 0);
        }
        self.levels[level] += 1;
    }

    fn leave(&mut self, count: u32) {
        self.levels[(count - self.least) as usize] -= 1;
        while self.levels.len() > 1 && self.levels[0] == 0 {
            self.levels.pop_front();
            self.least += 1;
        }
        while self.levels.len() > 1 && self.levels.back() == Some(&0) {
            self.levels.pop_back();
        }
    }
}

impl WearPolicy for StaticLevelling {
    fn sorts_free_blocks(&self) -> bool {
        true
    }

    fn migrates(&self) -> bool {
        true
    }

    fn erased(&mut self, count: u32) {
        self.enter(count);
        self.leave(count - 1);
        self.wait = self.wait.saturating_sub(1);
    }

    fn retired(&mut self, count: u32) {
        self.leave(count);
    }

    fn pick(&mut self, blocks: &[BlockInfo], erase_count: &dyn Fn(u32) -> u32) -> Option<u32> {
        if self.levels.len() as u32 <= self.threshold + 1 || self.wait > 0 {
            return None;
        }
        for _ in 0..blocks.len() {
            let block = self.cursor;
            self.cursor = if block + 1 == blocks.len() { 0 } else { block + 1 };
            if blocks[block].state == BlockState::Sealed && erase_count(block as u32) == self.least {
                return Some(block as u32);
            }
        }
        self.wait = blocks.len() / 8 + 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_erased_sealed_block_is_moved_once_the_spread_exceeds_the_threshold() {
        let mut counts = [3, 3, 1, 3];
        let mut policy = StaticLevelling::new(2, &mut counts.into_iter());
        let sealed = [BlockInfo { valid: 4, state: BlockState::Sealed }; 4];
        assert_eq!(policy.pick(&sealed, &|b| counts[b as usize]), None, "spread 2 is allowed");
        counts[0] += 1;
        policy.erased(counts[0]);
        assert_eq!(policy.pick(&sealed, &|b| counts[b as usize]), Some(2));
        counts[2] += 1;
        policy.erased(counts[2]);
        assert_eq!(policy.pick(&sealed, &|b| counts[b as usize]), None, "spread 2 again");
    }

    #[test]
    fn a_vain_search_is_not_repeated_at_once() {
        let counts = [9, 0];
        let mut policy = StaticLevelling::new(2, &mut counts.into_iter());
        let open = [BlockInfo { valid: 4, state: BlockState::Sealed }, BlockInfo::default()];
        assert_eq!(policy.pick(&open, &|b| counts[b as usize]), None, "the least erased block is free");
        assert_eq!(policy.wait, 1);
        policy.retired(0);
        assert_eq!(policy.levels.len(), 1);
    }
}
