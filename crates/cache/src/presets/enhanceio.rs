//! `EnhanceIO`.

use super::{AfterCut, Choice, Flushing, Grows, Partial, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

/// As its command-line tool makes it (LRU, 256 ways at 4 KiB; 128 at 2 KiB and 512 at 8 KiB), not as its
/// documentation says (FIFO, 512 ways).
pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "enhanceio",
        summary: "set-associative, LRU, cleans between watermarks and what is old; dirty blocks survive a power cut",
        source: "EnhanceIO of STEC; [cache-article enhanceio]",
        params: &[],
    },
    device: "flash",
    block_bytes: 4096,
    block_range: (2048, 8192),
    map: Map::Linear { ways: 256 },
    grows: Grows::Ways,
    mode: Mode::WriteBack,
    modes: &[Mode::WriteAround, Mode::WriteThrough, Mode::WriteBack],
    eviction: Choice::of("lru"),
    admission: &[Choice::of("all")],
    cleaning: &[
        Choice {
            name: "watermarks",
            params: &[
                ("clean_high", "30%"),
                ("clean_low", "10%"),
                ("clean_set_high", "100%"),
                ("clean_set_low", "30%"),
            ],
        },
        Choice { name: "set-age", params: &[("set_age", "60s"), ("set_age_per", "16GiB")] },
    ],
    metadata: Choice::of("slots"),
    flushing: Flushing::Nothing,
    flushing_source: "eio_ttc.c, eio_process_zero_size_bio: a flush goes to both",
    after_cut: AfterCut::DirtyBlocks,
    quirks: Quirks {
        partial: Partial::Uncached,
        victims: Victims::CleanOnly,
        has_torn_blocks: true,
        ..Quirks::NONE
    },
    published: &[
        ("dirty_high_threshold", "30"),
        ("dirty_low_threshold", "10"),
        ("dirty_set_high_threshold", "100"),
        ("dirty_set_low_threshold", "30"),
        ("time_based_clean_interval", "1 min a 16 GiB, at least 1"),
        ("autoclean_threshold", "128"),
    ],
};
