//! The worked example of `docs/extending.md`: a victim policy as it would stand in `victim/`, beside the
//! built-in ones.
//!
//! `cargo run -p nandscape-ftl --example new_victim` shows which blocks each policy takes from the same
//! device.

// What a file in `victim/` finds in the module above it.
use nandscape_ftl::victim::{VICTIMS, VictimEntry, VictimFacts, VictimPolicy, VictimSetup};

mod windowed_greedy;

use nandscape_core::{Info, Params};
use nandscape_ftl::page_map;
use nandscape_ftl::victim::{BlockInfo, BlockState};

/// Valid pages of 16 full blocks of 8 pages, in the order in which they were filled.
const VALID: [u32; 16] = [7, 3, 5, 8, 6, 0, 4, 2, 1, 8, 7, 5, 3, 6, 4, 2];
const PAGES_PER_BLOCK: u32 = 8;

/// The blocks that a policy takes, first to last.
fn order(entry: &VictimEntry, params: &Params) -> Vec<u32> {
    let blocks = VALID.map(|valid| BlockInfo { valid, state: BlockState::Sealed });
    let setup =
        VictimSetup { blocks: VALID.len() as u32, pages_per_block: PAGES_PER_BLOCK, domain: 0, params };
    let mut policy = (entry.build)(&setup);
    for (block, valid) in (0..).zip(VALID) {
        policy.sealed(block, PAGES_PER_BLOCK, u64::from(block));
        for left in (valid..PAGES_PER_BLOCK).rev() {
            policy.invalidated(block, left, 100);
        }
    }
    let mut taken = Vec::new();
    while let Some(block) = policy.pick(&VictimFacts { blocks: &blocks, now: 200 }) {
        policy.removed(block);
        taken.push(block);
    }
    taken
}

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    // Parameters of the built-in policies are keys of the page map; the new one has none.
    let params = Params::defaults(&page_map::INFO);
    for entry in VICTIMS.iter().chain([&windowed_greedy::ENTRY]) {
        let Info { name, summary, .. } = entry.info;
        println!("{name:16} {:?}  {summary}", order(entry, &params));
    }
}
