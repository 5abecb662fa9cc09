//! A store of sorted tables on an open channel, with each placement:
//! `cargo run --release -p nandscape-openchannel --example lsm`. 16 channels of two dies, chunks of 4 MiB.
#![expect(clippy::print_stdout, reason = "an example prints")]

use nandscape_core::vector::MediaTimes;
use nandscape_core::{Geometry, SimTime};
use nandscape_media::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Timed, Timing};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_namespace::zones::ImpliedOob;
use nandscape_openchannel::Host;
use nandscape_openchannel::lsm::{LsmReport, LsmSetup, Placement, run_lsm};

const GEOMETRY: Geometry = Geometry {
    channels: 16,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 32,
    pages_per_block: 256,
    page_bytes: 16_384,
    sector_bytes: 4096,
    oob_bytes: 128,
};

const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 700_000,
    erase_ns: 5_000_000,
    channel_bytes_per_s: 400_000_000,
    command_ns: 0,
};

fn run<S: Scheduler + Send + 'static>(setup: &LsmSetup) -> LsmReport {
    let nand = Nand::<ImpliedOob>::with_oob(GEOMETRY, &NandOptions::default()).expect("no bad blocks");
    let times = MediaTimes { read_ns: 60_000, write_ns: 700_000, reset_ns: 5_000_000 };
    let vector = VectorSetup { times, ..VectorSetup::default() };
    let device = Timed::new(nand, S::new(&GEOMETRY, &TIMING));
    let mut device = VectorNamespace::<_, ImpliedOob>::new(device, &vector).expect("a new device");
    let mut host = Host::open(&mut device, 0, SimTime::ZERO).expect("vector access");
    setup.check(host.geometry()).expect("it fits");
    run_lsm(&mut host, setup, SimTime::ZERO).expect("nothing fails")
}

fn main() {
    println!("device     puts %  placement     puts/s  stalled %  WAF   get us: mean     p99   p99.9");
    for is_fifo in [true, false] {
        for put_percent in [100, 50, 10] {
            for placement in Placement::ALL {
                let setup = LsmSetup {
                    placement,
                    clients: 16,
                    operations: 2_000_000,
                    put_percent,
                    keys: 1_000_000,
                    entry_bytes: 1024,
                    flushers: 8,
                    level0: 4,
                    level0_stop: 12,
                    level1: 10,
                    fanout: 10,
                    seed: 1,
                };
                let it = if is_fifo { run::<Fifo>(&setup) } else { run::<ReadFirst>(&setup) };
                let stalled = it.stalled_ns as f64 / it.elapsed_ns as f64 / f64::from(setup.clients) * 100.0;
                println!(
                    "{:10} {put_percent:6}  {:11} {:8.0}  {stalled:9.1} {:4.2}  {:12.0} {:7} {:7}",
                    if is_fifo { "fifo" } else { "read-first" },
                    placement.name(),
                    it.puts_per_s(),
                    it.write_amplification(),
                    it.get_ns_mean() / 1e3,
                    it.get_ns_at(0.99) / 1000,
                    it.get_ns_at(0.999) / 1000,
                );
            }
        }
    }
}
