//! The integration tests of this crate, in one program.

mod admin;
mod directives;
mod predictable;
mod sets;
mod store;
mod subsystem;
mod vector;
mod zones;

use nandscape_media::Timing;

/// 1 ns a byte on each channel.
const TIMING: Timing = Timing {
    read_ns: 50_000,
    program_ns: 500_000,
    erase_ns: 2_000_000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};
