//! A virtual block over all dies of a small device that keeps data:
//! `cargo run -p nandscape-openchannel --example virtual_block`. The program of docs/open-channel.md.
#![expect(clippy::print_stdout, reason = "an example prints")]

use nandscape_core::vector::MediaTimes;
use nandscape_core::{Capabilities, Geometry, Oob, SimTime};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_openchannel::{Host, VirtualBlock};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let geometry = Geometry {
        channels: 4,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 16,
        pages_per_block: 64,
        page_bytes: 16_384,
        sector_bytes: 4096,
        oob_bytes: 64,
    };
    let timing = Timing {
        read_ns: 60_000,
        program_ns: 600_000,
        erase_ns: 3_000_000,
        channel_bytes_per_s: 800_000_000,
        command_ns: 0,
    };
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    let nand = Nand::new(geometry, &NandOptions { capabilities, ..NandOptions::default() })?;
    let setup = VectorSetup {
        spans_planes: true,
        endurance: Some(3000),
        times: MediaTimes { read_ns: 60_000, write_ns: 600_000, reset_ns: 3_000_000 },
        ..VectorSetup::default()
    };
    let device = Timed::new(nand, Fifo::new(&geometry, &timing));
    let mut namespace = VectorNamespace::<_, Oob>::new(device, &setup)?;

    let mut host = Host::open(&mut namespace, 0, SimTime::ZERO)?;
    // Chunk 5 of all eight dies. A write unit is a page in both planes, 32 KiB.
    let mut block = VirtualBlock::over(&mut host, 0..8, 5, SimTime::ZERO)?;
    let data: Vec<u8> = (0..1 << 20).map(|byte: u32| (byte >> 12) as u8).collect();
    let written = block.write(&mut host, 1 << 20, Some(&data), SimTime::ZERO)?;
    let mut back = vec![0; 8192];
    let read = block.read(&mut host, 65_536, 8192, Some(&mut back), written)?;
    assert_eq!(back, data[65_536..65_536 + 8192]);
    println!("1 MiB written in {} us, 8 KiB read in {} us", written.0 / 1000, (read.0 - written.0) / 1000);

    let padded = block.pad(&mut host, read)?;
    let erased = block.erase(&mut host, padded)?;
    println!("{} KiB erased in {} us", block.bytes() >> 10, (erased.0 - padded.0) / 1000);
    Ok(())
}
