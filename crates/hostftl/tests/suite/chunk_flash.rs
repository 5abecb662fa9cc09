//! Translation layers of the device as software of the host, over chunks: random commands over restarts,
//! failing media, and the power cut at every operation.

use super::support::nand;
use nandscape_core::{BlockId, BlockState, Cause, FlashDevice, Geometry, Issue, Lpn, Oob, SimTime};
use nandscape_ftl::{Journal, JournalOptions, find};
use nandscape_hostftl::ChunkFlash;
use nandscape_hostftl::chunk_flash::Sabotage;
use nandscape_media::faults::FaultPlan;
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Layer, Setup, campaign, finds, points_from_environment,
};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 8_000;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 14,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

pub fn host_setup() -> VectorSetup {
    VectorSetup { host_oob: true, ..VectorSetup::default() }
}

pub type Flash = ChunkFlash<VectorNamespace<CrashDevice, Oob>>;

pub fn flash(device: CrashDevice, setup: &VectorSetup, sabotage: Sabotage) -> Result<Flash, String> {
    let vectored = VectorNamespace::new(device, setup).map_err(|error| error.to_string())?;
    ChunkFlash::with_sabotage(vectored, sabotage).map_err(|error| error.to_string())
}

fn case(
    layer: &'static str,
    name: &str,
    geometry: Geometry,
    setup: VectorSetup,
    sabotage: Sabotage,
) -> Setup<'static> {
    let entry = find(layer).expect("a registered layer");
    let params = entry.tiny(&[]).unwrap();
    let options = JournalOptions { interval: Some(40), ..JournalOptions::default() };
    let open = move |device: CrashDevice| -> Result<Layer, String> {
        let flash = flash(device, &setup, sabotage)?;
        let journal = Journal::open(flash, options).map_err(|error| format!("journal: {error}"))?;
        (entry.build)(Box::new(journal), &params).map_err(|error| error.to_string())
    };
    Setup {
        name: format!("{layer} on chunks{name}"),
        nand: nand(geometry),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: false,
        damage: None,
        effort: Effort { steps: 40, again_every: 200, row_every: 400, ..Effort::default() },
    }
}

fn cases(sabotage: Sabotage) -> Vec<Setup<'static>> {
    let cached = VectorSetup { cached_units: Some(2), ..host_setup() };
    let eager = VectorSetup { resets_open: true, resets_free: true, ..host_setup() };
    let sectors = Geometry { pages_per_block: 4, page_bytes: 2048, ..GEOMETRY };
    vec![
        case("page-map", "", GEOMETRY, host_setup(), sabotage),
        case("page-map", ", cached", sectors, cached.clone(), sabotage),
        case("pm-gcl", ", cached", GEOMETRY, cached, sabotage),
        case("pm-gcc", ", eager", GEOMETRY, eager, sabotage),
    ]
}

#[test]
fn layers_on_chunks_survive_every_cut() {
    let points = points_from_environment(POINTS, 60);
    let command = "cargo test -p nandscape-hostftl --test suite chunk_flash::layers_on_chunks_survive_every_cut -- --exact --nocapture";
    let tally = campaign("flash of chunks", &cases(Sabotage::None), points, command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || (tally.erases > 0 && tally.rows > 0), "{tally}");
}

#[test]
fn layers_on_chunks_survive_cuts_while_blocks_fail() {
    let points = points_from_environment(POINTS, 40);
    let command = "cargo test -p nandscape-hostftl --test suite chunk_flash::layers_on_chunks_survive_cuts_while_blocks_fail -- --exact --nocapture";
    let plan = FaultPlan { program: 0.004, erase: 0.03, ..FaultPlan::default() };
    let failing: Vec<_> =
        cases(Sabotage::None).into_iter().map(|case| Setup { plan: plan.clone(), ..case }).collect();
    campaign("flash of chunks failing", &failing, points, command);
}

#[test]
fn every_sabotage_of_flash_of_chunks_is_found() {
    let effort = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    let is_found =
        |sabotage| cases(sabotage).into_iter().any(|case| finds(&Setup { effort, ..case }, 12).0.is_some());
    let unnoticed: Vec<Sabotage> =
        Sabotage::ALL.into_iter().filter(|sabotage| !is_found(*sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}

/// A later start does not know that a block was given up: nothing of what it held may come back.
#[test]
fn a_block_that_was_given_up_is_empty_at_the_next_start() {
    let open = |nand| {
        let (device, handle) = CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false);
        (flash(device, &host_setup(), Sabotage::None).unwrap(), handle)
    };
    let (mut device, handle) = open(nand(GEOMETRY));
    let (block, other) = (BlockId(3), BlockId(4));
    let issue = Issue::new(SimTime::ZERO, Cause::Host);
    for block in [block, other] {
        let oob = Oob { lpn: Lpn(7), stream: 0, seq: 65_536 };
        let data = Some(&[7; 512][..]);
        device.program(GEOMETRY.page(block, 0), oob, 512, data, issue).unwrap();
    }
    device.mark_bad(block);
    assert!(device.is_bad(block) && !device.is_bad(other));
    drop(device);
    let (mut device, _) = open(handle.nand());
    assert_eq!([block, other].map(|block| device.write_pointer(block)), [0, 1]);
    let mut found = [0; 512];
    let read = device.read(GEOMETRY.page(other, 0), 512, Some(&mut found), issue).unwrap();
    assert_eq!((read.oob.lpn, read.oob.seq, found), (Lpn(7), 65_536, [7; 512]));
}
