//! Old and empty first.

use super::lists::BlockLists;
use super::{VictimEntry, VictimFacts, VictimPolicy};
use nandscape_core::{Info, state};

/// Registry entry.
pub const ENTRY: VictimEntry = VictimEntry {
    info: Info {
        name: "cost-benefit",
        summary: "the greatest age x (1 - u) / 2u, u the valid share, age since the last page was invalidated",
        source: "Kawaguchi, Nishioka and Motoda, USENIX 1995, section 4.2",
        params: &[],
    },
    build: |setup| {
        Box::new(CostBenefit {
            buckets: BlockLists::new(setup.blocks, setup.pages_per_block + 1),
            changed: vec![0; setup.blocks as usize],
            pages_per_block: setup.pages_per_block,
        })
    },
};

/// Exact cost-benefit in O(pages per block): blocks wait in one list for each number of valid pages, in the
/// order in which they came to it, so the first of each list is the oldest there and only those are compared.
/// Ages count programmed pages. An empty block wins at once; of equals the one with fewer valid pages goes.
#[derive(Debug)]
struct CostBenefit {
    buckets: BlockLists,
    /// When each block was sealed or last lost a page.
    changed: Vec<u64>,
    pages_per_block: u32,
}

state!(impl [] CostBenefit { saved: buckets; tables: changed; fixed: pages_per_block; });

impl VictimPolicy for CostBenefit {
    fn sealed(&mut self, block: u32, valid: u32, now: u64) {
        self.buckets.append(valid, block);
        self.changed[block as usize] = now;
    }

    #[inline]
    fn invalidated(&mut self, block: u32, valid: u32, now: u64) {
        self.buckets.relink(valid, block);
        self.changed[block as usize] = now;
    }

    fn removed(&mut self, block: u32) {
        self.buckets.unlink(block);
    }

    fn pick(&mut self, facts: &VictimFacts<'_>) -> Option<u32> {
        if let Some(empty) = self.buckets.first(0) {
            return Some(empty);
        }
        // Benefit over cost is age x (b - v) over 2v. Without the common 2, and in 128 bits, it is exact.
        let mut best: Option<(u32, u128, u128)> = None;
        for valid in 1..=self.pages_per_block {
            let Some(block) = self.buckets.first(valid) else { continue };
            let age = facts.now - self.changed[block as usize];
            let benefit = u128::from(age) * u128::from(self.pages_per_block - valid);
            let cost = u128::from(valid);
            if best.is_none_or(|(_, best_benefit, best_cost)| benefit * best_cost > best_benefit * cost) {
                best = Some((block, benefit, cost));
            }
        }
        best.map(|(block, ..)| block)
    }
}
