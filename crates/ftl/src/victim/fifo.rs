//! Oldest first.

use super::lists::BlockLists;
use super::{VictimEntry, VictimFacts, VictimPolicy};
use nandscape_core::{Info, state};

/// Registry entry.
pub const ENTRY: VictimEntry = VictimEntry {
    info: Info {
        name: "fifo",
        summary: "the block that was filled first, whatever it holds",
        source: "Desnoyers, SYSTOR 2012, section 3 (there called LRU)",
        params: &[],
    },
    build: |setup| Box::new(Fifo { queue: BlockLists::new(setup.blocks, 1) }),
};

/// First sealed, first taken.
#[derive(Debug)]
struct Fifo {
    queue: BlockLists,
}

state!(impl [] Fifo { saved: queue; });

impl VictimPolicy for Fifo {
    fn sealed(&mut self, block: u32, _: u32, _: u64) {
        self.queue.append(0, block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        self.queue.unlink(block);
    }

    fn pick(&mut self, _: &VictimFacts<'_>) -> Option<u32> {
        self.queue.first(0)
    }
}
