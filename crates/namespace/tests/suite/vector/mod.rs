//! Vector access: random commands against a plain model, on devices that keep bytes; failing media and losses
//! of power; flash operations of each command; wire forms.

mod cost;
mod faults;
mod model;
mod order;
mod random;
mod wire;

use nandscape_core::command::Payload;
use nandscape_core::vector::{MediaTimes, SectorAddress, VectorCommand, VectorGeometry};
use nandscape_core::{Capabilities, Command, Geometry, NamespaceError, Oob, Reply, SimTime, Subsystem};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{BadBlocks, Nand, NandOptions};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_testkit::crash::{Buffer, CrashDevice, Handle};

/// Four dies of two planes of 4 blocks of 6 pages; a page is four sectors.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 4,
    pages_per_block: 6,
    page_bytes: 2048,
    sector_bytes: 512,
    oob_bytes: 64,
};

fn setup() -> VectorSetup {
    VectorSetup {
        endurance: Some(50),
        times: MediaTimes { read_ns: 50_000, write_ns: 500_000, reset_ns: 2_000_000 },
        ..VectorSetup::default()
    }
}

fn setups() -> [VectorSetup; 3] {
    [
        setup(),
        VectorSetup { spans_planes: true, cached_units: Some(2), ..setup() },
        VectorSetup { resets_free: true, cached_units: Some(1), endurance: None, ..setup() },
    ]
}

fn nand(bad_blocks: BadBlocks, endurance: Option<u32>) -> Nand {
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    Nand::new(GEOMETRY, &NandOptions { capabilities, bad_blocks, endurance, ..NandOptions::default() })
        .unwrap()
}

type Vectored = VectorNamespace<CrashDevice, Oob>;

fn open(nand: Nand, setup: &VectorSetup, plan: &FaultPlan) -> (Vectored, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    (VectorNamespace::new(device, setup).unwrap(), handle)
}

fn submit(
    vectored: &mut Vectored,
    command: VectorCommand,
    payload: Payload<'_>,
) -> Result<Reply, NamespaceError> {
    vectored.submit(0, Command::Vector(command), payload, SimTime::ZERO).map(|answer| answer.reply)
}

fn geometry(vectored: &mut Vectored) -> VectorGeometry {
    match submit(vectored, VectorCommand::Geometry, Payload::None).unwrap() {
        Reply::Geometry(geometry) => *geometry,
        reply => panic!("{reply:?}"),
    }
}

/// Sectors of a chunk from one on.
fn run(chunk: SectorAddress, from: u32, count: u32) -> Box<[SectorAddress]> {
    (from..from + count).map(|sector| chunk.at(sector)).collect()
}
