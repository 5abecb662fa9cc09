//! What zones hold in memory without data, as counted by the allocator: nothing for each page.
#![expect(clippy::print_stdout, reason = "the figures of the documents")]

use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Capabilities, Clocked, Extent, Geometry, Hint, Oob, Op, SimTime, Subsystem,
};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::zones::{
    CommandTimes, FlashRules, ImpliedOob, ZoneLayout, ZoneOob, ZoneSetup, ZoneStripes, ZonedNamespace,
};
use nandscape_testkit::allocator::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TIB: u64 = 1 << 40;
const LIMIT: isize = 64 << 20;

/// A little more than 1 TiB in pages of 16 KiB.
const GEOMETRY: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 4,
    planes_per_die: 2,
    blocks_per_plane: 1056,
    pages_per_block: 1024,
    page_bytes: 16_384,
    sector_bytes: 4096,
    oob_bytes: 64,
};

const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 700_000,
    erase_ns: 3_000_000,
    command_ns: 0,
    channel_bytes_per_s: 800_000_000,
};

/// Zones over so many dies each, a block in each.
fn zones<O: ZoneOob>(dies: u32) -> ZonedNamespace<Timed<Nand<O>, Fifo>, O> {
    let stripes = ZoneStripes { dies, blocks_per_die: 1, stripe_pages: 1 };
    let blocks = stripes.pages(&GEOMETRY) * 4;
    let setup = ZoneSetup {
        name: "zns".to_owned(),
        layout: ZoneLayout {
            zones: 0,
            size: blocks,
            capacity: blocks,
            block_bytes: 4096,
            max_active: Some(14),
            max_open: Some(14),
            extension_bytes: 0,
            random: None,
            reads_across: false,
            conventional: 0,
        },
        stripes,
        rules: FlashRules { erases_at_reset: true, completes_stripe: false, pads: true, is_volatile: true },
        spare_blocks: 64,
        conventional_blocks: 0,
        times: CommandTimes::default(),
    };
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let nand = Nand::with_oob(GEOMETRY.checked().unwrap(), &options).unwrap();
    ZonedNamespace::new(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING)), &setup).unwrap()
}

/// Bytes held at most while a tebibyte of zones is made and wholly written.
fn most_while_written(dies: u32) -> isize {
    let before = allocator::start();
    let mut zones = zones::<ImpliedOob>(dies);
    let capacity = zones.namespaces()[0].capacity_bytes;
    assert!(capacity >= TIB, "{capacity} bytes");
    let step = 4 << 20;
    let mut at = SimTime::ZERO;
    for offset in (0..capacity).step_by(step) {
        let write = BlockCommand::new(Op::Write, Extent::new(offset, step as u64), Hint(0));
        let answer = zones.submit(0, write.into(), Payload::None, at).unwrap();
        // A few writes are under way, as of a host that keeps all dies busy.
        at = zones.completion(answer.done).unwrap().max(SimTime(2_000_000)).since(SimTime(2_000_000)).max(at);
    }
    zones.check_invariants();
    allocator::most() - before
}

#[test]
fn a_tebibyte_of_zones_with_pages_of_16_kib_takes_less_than_64_mib() {
    for dies in [32, 1] {
        let most = most_while_written(dies);
        println!("zones over {dies} dies: {:.1} MiB", most as f64 / f64::from(1 << 20));
        assert!(most < LIMIT, "{most} bytes with zones over {dies} dies");
    }
}

/// The other way: with the OOB of a page map for each page the same zones take more than that.
#[test]
fn the_same_zones_with_an_oob_for_each_page_take_more() {
    let before = allocator::held();
    let zones = zones::<Oob>(32);
    assert!(allocator::held() - before > LIMIT, "{} bytes", allocator::held() - before);
    drop(zones);
}
