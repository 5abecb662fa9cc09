//! bcache.

use super::{AfterCut, Choice, Flushing, Grows, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

/// The original keeps extents of sectors in buckets of 512 KiB and evicts whole buckets; here it is blocks of
/// 4 KiB with sub-block bits.
pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "bcache",
        summary: "fully associative, LRU, bypasses streams and congestion, cleans at a controlled rate; everything flushed survives",
        source: "bcache in Linux; [cache-article bcache]",
        params: &[],
    },
    device: "flash",
    block_bytes: 4096,
    block_range: (512, 1 << 20),
    map: Map::Full,
    grows: Grows::Nothing,
    mode: Mode::WriteBack,
    modes: &[Mode::WriteThrough, Mode::WriteBack, Mode::WriteAround, Mode::PassThrough],
    eviction: Choice::of("lru"),
    admission: &[Choice::of("bcache"), Choice::of("dirty-cutoff")],
    cleaning: &[Choice::of("pi-rate")],
    metadata: Choice::of("journal"),
    flushing: Flushing::CacheDevice,
    flushing_source: "request.c, cached_dev_nodata: a flush goes to the journal and to the disk; writeback.c, write_dirty: what is cleaned is written plainly",
    after_cut: AfterCut::Everything,
    quirks: Quirks { victims: Victims::CleanOnly, ..Quirks::NONE },
    published: &[
        ("bucket_size", "512k"),
        ("sequential_cutoff", "4.0M"),
        ("congested_read_threshold_us", "2000"),
        ("congested_write_threshold_us", "20000"),
        ("writeback_percent", "10"),
        ("writeback_delay", "30"),
        ("writeback_rate_update_seconds", "5"),
        ("writeback_rate_p_term_inverse", "40"),
        ("writeback_rate_i_term_inverse", "10000"),
        ("writeback_rate_minimum", "8"),
        ("CUTOFF_WRITEBACK_SYNC", "70"),
        ("CUTOFF_WRITEBACK", "40"),
        ("journal_delay_ms", "100"),
    ],
};
