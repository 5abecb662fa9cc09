//! dm-cache of FIU.

use super::{AfterCut, Choice, Flushing, Grows, Partial, Preset, Quirks, Victims};
use crate::mode::Mode;
use nandscape_core::Info;
use nandscape_policies::Map;

/// 512 neighbouring blocks share a set, or as many as it has slots, if these are fewer. The default is
/// write-through; the article and every published result use write-back, as does this preset, and the
/// article's 16 ways are `ways = 16`.
pub(super) const PRESET: Preset = Preset {
    info: Info {
        name: "dm-cache-fiu",
        summary: "set-associative, LRU with clean blocks first; nothing survives a power cut in write-back",
        source: "dm-cache of FIU, 2006; [cache-article dm-cache]",
        params: &[],
    },
    device: "flash",
    block_bytes: 4096,
    block_range: (512, 1 << 20),
    map: Map::ClusterHashed { ways: 1024, cluster: 512 },
    grows: Grows::Cluster,
    mode: Mode::WriteBack,
    modes: &[Mode::WriteThrough, Mode::WriteBack],
    eviction: Choice::of("lru"),
    admission: &[Choice::of("all")],
    cleaning: &[Choice::of("none")],
    metadata: Choice::of("at-removal"),
    flushing: Flushing::Nothing,
    flushing_source: "dm-cache.c: metadata are written at removal",
    after_cut: AfterCut::DirtyLost,
    quirks: Quirks {
        partial: Partial::Filled,
        victims: Victims::CleanFirst,
        has_torn_blocks: true,
        ..Quirks::NONE
    },
    published: &[
        ("block size", "8 sectors"),
        ("cache blocks", "65536"),
        ("associativity", "1024"),
        ("write-back", "0"),
    ],
};
