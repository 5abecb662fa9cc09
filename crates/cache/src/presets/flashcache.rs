//! `FlashCache`.

use super::{AfterCut, Choice, Flushing, Grows, Partial, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

/// Format 3, with clusters of 256 KiB by hash; `map = "linear"` is what formats 1 and 2 do.
pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "flashcache",
        summary: "set-associative, FIFO, cleans sets that are too dirty; dirty blocks survive a power cut",
        source: "FlashCache, format 3; [cache-article flashcache]",
        params: &[],
    },
    device: "flash",
    block_bytes: 4096,
    block_range: (512, 1 << 20),
    map: Map::ClusterHashed { ways: 512, cluster: 64 },
    grows: Grows::Nothing,
    mode: Mode::WriteBack,
    modes: &[Mode::WriteBack, Mode::WriteThrough, Mode::WriteAround, Mode::WriteOnly],
    eviction: Choice::of("fifo"),
    admission: &[Choice::of("all")],
    cleaning: &[Choice::of("set-threshold"), Choice::of("idle-age")],
    metadata: Choice::of("slots"),
    flushing: Flushing::Nothing,
    flushing_source: "flashcache_main.c, flashcache_map: flushes are refused, where here they go to both; flashcache_md_write follows the completion of the data",
    after_cut: AfterCut::DirtyBlocks,
    quirks: Quirks {
        partial: Partial::Uncached,
        victims: Victims::CleanOnly,
        is_requeued_past_cache: true,
        has_torn_blocks: true,
        ..Quirks::NONE
    },
    published: &[
        ("reclaim_policy", "FIFO"),
        ("lru_hot_pct", "75"),
        ("lru_promote_thresh", "2"),
        ("skip_seq_thresh_kb", "0"),
        ("dirty_thresh_pct", "20"),
        ("fallow_delay", "900 s"),
        ("fallow_clean_speed", "2 a set and second"),
        ("max_clean_ios_set", "2"),
        ("max_clean_ios_total", "4"),
        ("metadata block size", "4096"),
        ("max_pids", "100"),
        ("pid_expiry_secs", "60"),
    ],
};
