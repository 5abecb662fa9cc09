//! Any block.

use super::VictimEntry;
use super::d_choices::{DChoices, SEED};
use nandscape_core::{Info, keys};

keys! { PARAMS: SEED; }

/// Registry entry.
pub const ENTRY: VictimEntry = VictimEntry {
    info: Info {
        name: "random",
        summary: "any full block, with equal chance",
        source: "Van Houdt, SIGMETRICS 2013, d = 1",
        params: PARAMS,
    },
    build: |setup| Box::new(DChoices::new(setup, 1)),
};
