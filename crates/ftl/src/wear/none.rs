//! No care for wear: free blocks are used in the order in which they were erased.

use super::{WearEntry, WearPolicy};
use nandscape_core::{Info, state};

/// Registry entry.
pub const ENTRY: WearEntry = WearEntry {
    info: Info {
        name: "none",
        summary: "free blocks in the order in which they were erased",
        source: "",
        params: &[],
    },
    build: |_, _| Box::new(Untouched),
};

#[derive(Debug)]
struct Untouched;

state!(impl [] Untouched {});

impl WearPolicy for Untouched {}
