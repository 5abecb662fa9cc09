//! The worked example of `docs/extending.md`: the document shows the code that is compiled here, and the code
//! does what it says.

use nandscape_core::Params;
use nandscape_ftl::page_map;
use nandscape_ftl::victim::{
    BlockInfo, BlockState, VICTIMS, VictimEntry, VictimFacts, VictimPolicy, VictimSetup,
};
use std::path::Path;

#[path = "../../examples/new_victim/windowed_greedy.rs"]
mod windowed_greedy;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn document() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/extending.md")).unwrap()
}

/// A policy over 16 full blocks of 8 pages, which gives it a window of 2.
fn full_device() -> Box<dyn VictimPolicy> {
    let params = Params::defaults(&page_map::INFO);
    let mut policy = (windowed_greedy::ENTRY.build)(&VictimSetup {
        blocks: 16,
        pages_per_block: 8,
        domain: 0,
        params: &params,
    });
    for block in 0..16 {
        policy.sealed(block, 8, u64::from(block));
    }
    policy
}

fn infos(valid: [u32; 16]) -> [BlockInfo; 16] {
    valid.map(|valid| BlockInfo { valid, state: BlockState::Sealed })
}

#[test]
fn the_document_shows_the_code_that_compiles() {
    let code =
        std::fs::read_to_string(Path::new(ROOT).join("crates/ftl/examples/new_victim/windowed_greedy.rs"));
    let block = format!("```rust\n{}```", code.unwrap());
    assert!(document().contains(&block), "docs/extending.md does not show windowed_greedy.rs as it is");
}

#[test]
fn every_file_that_the_document_names_exists() {
    let document = document();
    let named: Vec<&str> = document
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|text| text.starts_with("crates/") && !text.contains("NAME") && !text.contains(' '))
        .collect();
    assert!(named.len() > 8, "{named:?}");
    for path in named {
        assert!(Path::new(ROOT).join(path).exists(), "{path} does not exist");
    }
}

#[test]
fn the_window_hides_emptier_blocks_that_are_younger() {
    let mut policy = full_device();
    // Block 15 is empty, but too young to be seen.
    let blocks = infos([7, 3, 5, 8, 6, 8, 4, 2, 1, 8, 7, 5, 3, 6, 4, 0]);
    let facts = VictimFacts { blocks: &blocks, now: 100 };
    assert_eq!(policy.pick(&facts), Some(1));
    policy.removed(1);
    assert_eq!(policy.pick(&facts), Some(2), "the window moved on to block 2");
}

#[test]
fn of_equals_the_oldest_goes_and_at_the_end_there_is_none() {
    let mut policy = full_device();
    let blocks = infos([4; 16]);
    let facts = VictimFacts { blocks: &blocks, now: 100 };
    for expected in 0..16 {
        assert_eq!(policy.pick(&facts), Some(expected));
        policy.removed(expected);
    }
    assert_eq!(policy.pick(&facts), None);
}

#[test]
fn the_example_is_no_duplicate_of_a_registered_policy() {
    assert!(VICTIMS.iter().all(|entry: &VictimEntry| entry.info.name != windowed_greedy::ENTRY.info.name));
}
