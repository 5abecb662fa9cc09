//! dm-cache of Linux since 3.9.

use super::{AfterCut, Choice, Flushing, Grows, Partial, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

/// Promotion by hotspots is part of the original's smq; here a filter that asks for repeated hits stands for
/// it.
pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "dm-cache",
        summary: "large blocks that are promoted when hot, smq; after a power cut every block counts as dirty",
        source: "dm-cache in Linux, policy smq",
        params: &[],
    },
    device: "flash",
    block_bytes: 32 << 10,
    block_range: (32 << 10, 1 << 20),
    map: Map::Full,
    grows: Grows::Nothing,
    mode: Mode::WriteBack,
    modes: &[Mode::WriteBack, Mode::WriteThrough, Mode::PassThrough],
    eviction: Choice::of("smq"),
    admission: &[Choice { name: "n-hit", params: &[("hits", "2"), ("hits_from", "0%")] }],
    cleaning: &[Choice::of("smq")],
    metadata: Choice::of("periodic"),
    flushing: Flushing::CacheDevice,
    flushing_source: "dm-cache-target.c, process_flush_bio: a flush commits, then goes to both; a commit flushes the metadata alone, which here are on the cache device",
    after_cut: AfterCut::AllAsDirty,
    quirks: Quirks {
        partial: Partial::Filled,
        victims: Victims::CleanOnly,
        has_torn_blocks: true,
        ..Quirks::NONE
    },
    published: &[
        ("migration_threshold", "2048 sectors"),
        ("commit period", "1 s"),
        ("hotspot period", "1 s"),
        ("cache period", "60 s"),
        ("writeback period", "10 s"),
        ("demote period", "60 s"),
    ],
};
