//! The host library over an emulated device: data that comes back, in commands of any length; virtual blocks;
//! the engines on the device of the thesis.

mod bench;
mod lsm;
mod thesis;
mod virtual_block;

use nandscape_core::vector::SectorAddress;
use nandscape_core::{Capabilities, Geometry, Oob, SimTime};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};

/// Four dies of two planes of 3 blocks of 6 pages; a page is four sectors.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 3,
    pages_per_block: 6,
    page_bytes: 2048,
    sector_bytes: 512,
    oob_bytes: 64,
};

type Device<S> = VectorNamespace<Timed<Nand, S>, Oob>;

/// A device that keeps data, programs so many pages at a time, and cannot read these at once.
fn device<S: Scheduler>(program_pages: u32) -> Device<S> {
    let capabilities =
        Capabilities { stores_data: true, partial_transfer: true, program_pages, ..Capabilities::default() };
    let nand = Nand::new(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
    let timing = Timing {
        read_ns: 50_000,
        program_ns: 500_000,
        erase_ns: 2_000_000,
        channel_bytes_per_s: 1_000_000_000,
        command_ns: 0,
    };
    let setup = VectorSetup { spans_planes: true, ..VectorSetup::default() };
    VectorNamespace::new(Timed::new(nand, S::new(&GEOMETRY, &timing)), &setup).unwrap()
}

/// Bytes that differ from sector to sector.
fn bytes(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|at| (at / 512 * 7 + at + seed) as u8).collect()
}

#[test]
fn long_lists_are_done_in_commands_of_64_addresses() {
    let mut device = device::<Fifo>(1);
    let mut host = nandscape_openchannel::Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    let chunks = [0, 1].map(|chunk| SectorAddress { chunk, ..SectorAddress::default() });
    let all: Vec<_> = chunks.iter().flat_map(|chunk| (0..48).map(|sector| chunk.at(sector))).collect();
    let data = bytes(all.len() * 512, 1);
    let written = host.write(&all, Some(&data), SimTime::ZERO).unwrap();
    let mut back = vec![0; data.len()];
    let read = host.read(&all, Some(&mut back), written).unwrap();
    assert!(read > written && back == data);
    // Copied to another parallel unit, without the host.
    let targets: Vec<_> = all.iter().map(|address| SectorAddress { group: 1, ..*address }).collect();
    let copied = host.copy(&all, &targets, read).unwrap();
    back.fill(0);
    host.read(&targets, Some(&mut back), copied).unwrap();
    assert!(back == data);
    host.reset(&chunks, copied).unwrap();
    let error = host.read(&all[70..], None, copied).unwrap_err().to_string();
    assert_eq!(
        error,
        "group 0, unit 0, chunk 1, sector 22: Deallocated or Unwritten Logical Block, and 25 more"
    );
    assert!(host.media_events(0, copied).unwrap().is_empty());
    let error = host.write(&all[..64], Some(&data[..100]), copied).unwrap_err().to_string();
    assert_eq!(error, "Invalid Field in Command");
}
