//! `RapidCache`, over a RAM disk.

use super::{AfterCut, Choice, Flushing, Grows, Partial, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

/// The block is a memory page, whatever the configuration of the original says.
pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "rapidcache",
        summary: "write-through over a RAM disk, set-associative, FIFO; a power cut empties it and loses nothing",
        source: "RapidDisk 2.9; [cache-article rapiddisk]",
        params: &[],
    },
    device: "ram",
    block_bytes: 4096,
    block_range: (4096, 4096),
    map: Map::Linear { ways: 512 },
    grows: Grows::Nothing,
    mode: Mode::WriteThrough,
    modes: &[Mode::WriteThrough, Mode::WriteAround],
    eviction: Choice::of("fifo"),
    admission: &[Choice::of("all")],
    cleaning: &[Choice::of("none")],
    metadata: Choice::of("none"),
    flushing: Flushing::Nothing,
    flushing_source: "rapiddisk-cache.c (rxcache.c): flushes are refused, where here they go to the disk",
    after_cut: AfterCut::EmptyCache,
    quirks: Quirks {
        partial: Partial::Uncached,
        victims: Victims::Any,
        is_write_through_never_hit: true,
        ..Quirks::NONE
    },
    published: &[("associativity", "512"), ("block size", "a page")],
};
