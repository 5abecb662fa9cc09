//! The open-channel device of the thesis: 8 channels x 4 LUNs x 16 blocks x 32 pages of 32 KiB
//! [thesis table 4.1], with the latencies of [thesis table 3.1].

use nandscape_core::vector::MediaTimes;
use nandscape_core::{Geometry, SimTime, Subsystem};
use nandscape_media::{Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_namespace::zones::ImpliedOob;
use nandscape_openchannel::Host;
use nandscape_openchannel::bench::{Engine, Log, Workload, run};

const GEOMETRY: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 4,
    planes_per_die: 1,
    blocks_per_plane: 16,
    pages_per_block: 32,
    page_bytes: 32_768,
    sector_bytes: 4096,
    oob_bytes: 128,
};

/// One page operation at a time, transfers included.
pub const SERIAL: Timing = Timing {
    read_ns: 101_000,
    program_ns: 116_000,
    erase_ns: 434_000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};

/// The same latencies, with transfers over buses of 800 MB/s taken out: 32 dies side by side.
pub const PARALLEL: Timing = Timing {
    read_ns: 60_000,
    program_ns: 75_000,
    erase_ns: 434_000,
    channel_bytes_per_s: 800_000_000,
    command_ns: 0,
};

/// The device, without data.
pub fn device<S: Scheduler + Send>(timing: &Timing) -> impl Subsystem + use<S> {
    let nand = Nand::<ImpliedOob>::with_oob(GEOMETRY, &NandOptions::default()).unwrap();
    let setup = VectorSetup {
        times: MediaTimes { read_ns: 101_000, write_ns: 116_000, reset_ns: 434_000 },
        ..VectorSetup::default()
    };
    let timed = Timed::new(nand, S::new(&GEOMETRY, timing));
    VectorNamespace::<_, ImpliedOob>::new(timed, &setup).unwrap()
}

/// All of the device.
pub fn workload(engine: Engine, jobs: u32, read_percent: u32) -> Workload {
    Workload { engine, jobs, channels: 8, luns: 4, blocks: 16, pages: 32, read_percent, compares: false }
}

/// Runs a workload on a new device.
pub fn run_on<S: Scheduler + Send>(timing: &Timing, workload: &Workload) -> Log {
    let mut device = device::<S>(timing);
    let mut host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    workload.check(host.geometry()).unwrap();
    run(&mut host, workload, SimTime::ZERO).unwrap()
}
