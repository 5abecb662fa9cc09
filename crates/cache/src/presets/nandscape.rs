//! nandscape's own.

use super::{AfterCut, Choice, Flushing, Grows, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "nandscape",
        summary: "fully associative, sub-block bits, journalled metadata: everything flushed survives, and stays warm",
        source: "",
        params: &[],
    },
    device: "flash",
    block_bytes: 4096,
    block_range: (512, 1 << 20),
    map: Map::Full,
    grows: Grows::Nothing,
    mode: Mode::WriteBack,
    modes: &Mode::ALL,
    eviction: Choice::of("s3-fifo-compact"),
    admission: &[
        Choice::of("sequential"),
        Choice { name: "dirty-cutoff", params: &[("cutoff_dirty", "80%"), ("cutoff_large", "32KiB")] },
    ],
    // Idle time comes in short pieces, and a request that comes meanwhile should not wait for long. Near the
    // cut-off the disk is what everything waits for, and what is cleaned in the disk's order costs it
    // less than what goes past the cache as it comes.
    cleaning: &[Choice {
        name: "pi-rate",
        params: &[
            ("rate_idle", "1s"),
            ("rate_idle_max", "8MiB"),
            ("rate_in_turn", "true"),
            ("rate_high", "60%"),
        ],
    }],
    metadata: Choice::of("journal"),
    flushing: Flushing::Both,
    flushing_source: "docs/formats/cache.md",
    after_cut: AfterCut::Everything,
    quirks: Quirks { victims: Victims::PreferClean, ..Quirks::NONE },
    published: &[],
};
