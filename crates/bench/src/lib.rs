//! The flash and the zones that the benches of layers run on, and the time that they take.

use nandscape_core::{Capabilities, Geometry};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::zones::{
    CommandTimes, FlashRules, ImpliedOob, ZoneLayout, ZoneSetup, ZoneStripes, ZonedNamespace,
};
use std::time::{Duration, Instant};

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

/// Zones on that flash.
pub type Zoned = ZonedNamespace<Timed<Nand<ImpliedOob>, Fifo>, ImpliedOob>;

/// Dies of a zone, which has a block in each.
pub const ZONE_DIES: u32 = 32;

/// New zones.
pub fn zoned() -> Zoned {
    let pages = u64::from(ZONE_DIES * GEOMETRY.pages_per_block);
    let setup = ZoneSetup {
        name: "zns".to_owned(),
        layout: ZoneLayout {
            zones: 0,
            conventional: 0,
            size: pages,
            capacity: pages,
            block_bytes: 4096,
            max_active: Some(14),
            max_open: Some(14),
            extension_bytes: 0,
            random: None,
            reads_across: false,
        },
        stripes: ZoneStripes { dies: ZONE_DIES, blocks_per_die: 1, stripe_pages: 1 },
        rules: FlashRules { erases_at_reset: true, completes_stripe: false, pads: false, is_volatile: false },
        conventional_blocks: 0,
        spare_blocks: 2,
        times: CommandTimes::default(),
    };
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let nand = Nand::with_oob(GEOMETRY.checked().expect("a shape"), &options).expect("no bad blocks");
    ZonedNamespace::new(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING)), &setup).expect("a new device")
}

/// Processor time of this thread, so that others on the machine do not matter much; where the system does not
/// tell, the time on the wall since `start`.
pub fn processor_time(start: Instant) -> Duration {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .map_or_else(|| start.elapsed(), Duration::from_nanos)
}
