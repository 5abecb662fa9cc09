//! Fewest valid pages first.

use super::lists::BlockLists;
use super::{VictimEntry, VictimFacts, VictimPolicy};
use nandscape_core::{Info, state};

/// Registry entry.
pub const ENTRY: VictimEntry = VictimEntry {
    info: Info {
        name: "greedy",
        summary: "the block with the fewest valid pages; O(1)",
        source: "Bux and Iliadis, Performance Evaluation 67 (2010)",
        params: &[],
    },
    build: |setup| {
        let pages_per_block = setup.pages_per_block;
        let buckets = BlockLists::new(setup.blocks, pages_per_block + 1);
        Box::new(Greedy { buckets, lowest: pages_per_block, pages_per_block })
    },
};

/// Greedy by bucket lists, one for each number of valid pages, with a cursor that is never above the lowest
/// filled bucket. Of several blocks with the fewest valid pages the one goes that has had that number
/// longest.
#[derive(Debug)]
struct Greedy {
    buckets: BlockLists,
    lowest: u32,
    pages_per_block: u32,
}

state!(impl [] Greedy { saved: buckets, lowest; fixed: pages_per_block; });

impl VictimPolicy for Greedy {
    fn sealed(&mut self, block: u32, valid: u32, _: u64) {
        self.buckets.append(valid, block);
        self.lowest = self.lowest.min(valid);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, valid: u32, _: u64) {
        self.buckets.relink(valid, block);
        self.lowest = self.lowest.min(valid);
    }

    fn removed(&mut self, block: u32) {
        self.buckets.unlink(block);
    }

    fn pick(&mut self, _: &VictimFacts<'_>) -> Option<u32> {
        loop {
            if let Some(block) = self.buckets.first(self.lowest) {
                return Some(block);
            }
            if self.lowest == self.pages_per_block {
                return None;
            }
            self.lowest += 1;
        }
    }
}
