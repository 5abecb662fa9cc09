//! Blocks with one bit a cell: which pages they have, and their times, worked out by hand. 1 ns a byte; an
//! array read takes 20 instead of 50 ns, a program 200 instead of 700 ns.

use nandscape_core::{
    Cause, Clocked, Completion, FlashDevice, FlashError, FlashState, Geometry, Issue, Lpn, Oob, Ppn, Sender,
    SimTime, SlcBlocks, Token,
};
use nandscape_media::{
    BlockTimes, Nand, NandOptions, Options, ReadFirst, Scheduler, SlcTiming, Timed, TimedOp, Timing,
    WriteBuffer,
};

/// A die with a plane of 4 blocks of 6 pages.
const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 4,
    pages_per_block: 6,
    page_bytes: 1000,
    sector_bytes: 1000,
    oob_bytes: 16,
};

const TIMING: Timing = Timing {
    read_ns: 50,
    program_ns: 700,
    erase_ns: 3000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};

/// Block 0 has 3 pages, where the others have 6.
fn blocks() -> SlcBlocks {
    SlcBlocks::new(&GEOMETRY, 1, 1, 2).unwrap()
}

fn scheduler(options: Options) -> ReadFirst {
    let slc = Some(SlcTiming { read_ns: 20, program_ns: 200 });
    let options = Options { blocks: BlockTimes { slc, ..BlockTimes::default() }, ..options };
    let mut scheduler = ReadFirst::with_options(&GEOMETRY, &TIMING, &options);
    scheduler.use_slc(blocks());
    scheduler
}

/// When operations of the device, submitted together, complete.
fn times(mut scheduler: ReadFirst, ops: &[TimedOp]) -> Vec<u64> {
    for (tag, op) in (0..).zip(ops) {
        let token = scheduler.submit_as(*op, Sender::Device, SimTime::ZERO, Token::NONE);
        scheduler.watch(token, tag);
    }
    let mut done: Vec<Completion> = Vec::new();
    scheduler.advance(SimTime::MAX, &mut done);
    done.sort_unstable_by_key(|done| done.tag);
    done.iter().map(|done| done.at.0).collect()
}

const fn read(page: u32) -> TimedOp {
    TimedOp::Read { page: Ppn(page), transfer: 100 }
}

const fn program(page: u32) -> TimedOp {
    TimedOp::Program { page: Ppn(page), transfer: 1000, held: 0 }
}

#[test]
fn a_block_with_one_bit_a_cell_has_times_of_its_own() {
    assert_eq!(times(scheduler(Options::default()), &[read(0)]), [20 + 100]);
    assert_eq!(times(scheduler(Options::default()), &[read(6)]), [50 + 100]);
    assert_eq!(times(scheduler(Options::default()), &[program(2)]), [1000 + 200]);
    assert_eq!(times(scheduler(Options::default()), &[program(6)]), [1000 + 700]);
    let erase = TimedOp::Erase { page: Ppn(0), pages: 3 };
    assert_eq!(times(scheduler(Options::default()), &[erase]), [3000], "an erase is an erase");
}

#[test]
fn a_program_unit_has_as_many_pages_fewer_as_its_cells_hold() {
    let buffer = WriteBuffer { bytes: 8000, ..WriteBuffer::default() };
    let options = Options { program_pages: 2, buffer, ..Options::default() };
    // Two pages of other blocks are one program: both on the bus, then the array.
    assert_eq!(times(scheduler(options.clone()), &[program(6), program(7)]), [2700, 2700]);
    // With one bit a cell each is one, and the die is free for the second at 1200.
    assert_eq!(times(scheduler(options.clone()), &[program(0), program(1)]), [1200, 2400]);
    // Without times of their own they are blocks like all others.
    let mut others = ReadFirst::with_options(&GEOMETRY, &TIMING, &options);
    others.use_slc(blocks());
    assert_eq!(times(others, &[program(0), program(1)]), [2700, 2700]);
}

#[test]
fn pages_that_the_mode_does_not_have_cannot_be_programmed() {
    let nand = Nand::new(GEOMETRY, &NandOptions::default()).unwrap();
    let mut device = Timed::new(nand, scheduler(Options::default()));
    assert!(device.use_slc(blocks()));
    let issue = Issue::new(SimTime::ZERO, Cause::Host);
    let mut program = |page| {
        let oob = Oob { lpn: Lpn(page), stream: 0, seq: 0 };
        device.program(Ppn(page), oob, 1000, None, issue).map(|_| ())
    };
    assert_eq!([0, 1, 2].map(&mut program), [Ok(()); 3]);
    assert_eq!(program(3), Err(FlashError::OutOfOrder { page: Ppn(3), expected: 3 }));
    assert_eq!([6, 7, 8, 9].map(&mut program), [Ok(()); 4]);
    assert_eq!(program(1), Err(FlashError::NotErased { page: Ppn(1) }), "the other rules hold");
}
