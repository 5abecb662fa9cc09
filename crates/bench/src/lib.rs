//! The flash that the benches of layers run on.

use nandscape_core::Geometry;
use nandscape_media::Timing;

/// 16 GiB of 4 KiB pages in 32 dies.
pub const GEOMETRY: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 4,
    planes_per_die: 2,
    blocks_per_plane: 256,
    pages_per_block: 256,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 64,
};

/// Latencies of TLC flash, and channels of 800 MB/s.
pub const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 700_000,
    erase_ns: 3_000_000,
    command_ns: 0,
    channel_bytes_per_s: 800_000_000,
};
