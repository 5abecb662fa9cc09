//! Fewest valid pages among the oldest blocks.

use super::{VictimEntry, VictimFacts, VictimPolicy, VictimSetup};
use nandscape_core::{Info, state};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: VictimEntry = VictimEntry {
    info: Info {
        name: "windowed-greedy",
        summary: "the fewest valid pages among the eighth of the blocks that was filled first",
        source: "Hu, Eleftheriou, Haas, Iliadis and Pletka, SYSTOR 2009",
        params: &[],
    },
    build: |setup| Box::new(WindowedGreedy::new(setup)),
};

/// Between fifo, which it is with a window of one block, and greedy, which it is with a window of all. Of
/// equals the one goes that was filled first.
#[derive(Debug)]
struct WindowedGreedy {
    /// Candidates, first filled first.
    queue: VecDeque<u32>,
    window: usize,
}

impl WindowedGreedy {
    fn new(setup: &VictimSetup<'_>) -> Self {
        let window = (setup.blocks as usize / 8).max(1);
        Self { queue: VecDeque::with_capacity(setup.blocks as usize), window }
    }
}

state!(impl [] WindowedGreedy { saved: queue; fixed: window; });

impl VictimPolicy for WindowedGreedy {
    fn sealed(&mut self, block: u32, _: u32, _: u64) {
        self.queue.push_back(block);
    }

    // Valid pages are looked up when they are needed, so nothing has to follow them.
    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        // A victim is in the window, so this looks at a few entries; only wear levelling takes blocks from
        // further back.
        if let Some(at) = self.queue.iter().position(|queued| *queued == block) {
            self.queue.remove(at);
        }
    }

    fn pick(&mut self, facts: &VictimFacts<'_>) -> Option<u32> {
        // `min_by_key` gives the first of equals.
        self.queue.iter().take(self.window).copied().min_by_key(|block| facts.blocks[*block as usize].valid)
    }
}
