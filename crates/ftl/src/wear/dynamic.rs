//! The least worn free block first. Levels the blocks that hold changing data; blocks full of cold data stay
//! as they are.

use super::{WearEntry, WearPolicy};
use nandscape_core::{Info, state};

/// Registry entry.
pub const ENTRY: WearEntry = WearEntry {
    info: Info {
        name: "dynamic",
        summary: "the free block with the fewest erases first",
        source: "Gal and Toledo, ACM Computing Surveys 37(2), 2005, section 3",
        params: &[],
    },
    build: |_, _| Box::new(LeastWornFirst),
};

#[derive(Debug)]
struct LeastWornFirst;

state!(impl [] LeastWornFirst {});

impl WearPolicy for LeastWornFirst {
    fn sorts_free_blocks(&self) -> bool {
        true
    }
}
