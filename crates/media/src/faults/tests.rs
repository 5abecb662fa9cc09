use super::*;
use crate::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Serial, Timed, Timing};
use nandscape_core::{Cause, Clocked, FlashDevice, FlashState, Geometry, InjectedFault, Issue, Lpn, SimTime};

const BLOCKS: u32 = 8;
const PAGES: u32 = 4;

fn geometry() -> Geometry {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: BLOCKS / 2,
        pages_per_block: PAGES,
        page_bytes: 512,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    geometry.checked().unwrap()
}

fn nand(stores_data: bool) -> Nand {
    let capabilities = Capabilities { stores_data, ..Capabilities::default() };
    Nand::new(geometry(), &NandOptions { capabilities, ..NandOptions::default() }).unwrap()
}

fn faults(plan: FaultPlan) -> Faults<Nand> {
    Faults::new(nand(true), plan).unwrap()
}

fn scripted(text: &str) -> Faults<Nand> {
    let mut plan = FaultPlan::default();
    parse_script(text, &mut plan).unwrap();
    faults(plan)
}

fn oob(lpn: u32) -> Oob {
    Oob { lpn: Lpn(lpn), stream: 0, seq: 1 }
}

fn program(medium: &mut impl Medium, page: u32) -> Result<(), FlashError> {
    medium.program(Ppn(page), oob(page), Some(&[7; 512]))
}

fn read(medium: &mut impl Medium, page: u32) -> Result<Oob, FlashError> {
    let mut data = [0; 512];
    let read = medium.read(Ppn(page), Some(&mut data))?;
    assert_eq!(data, [7; 512], "wrong bytes are worse than none");
    Ok(read)
}

/// Programs and erases every block ten times; gives what each operation said.
fn churn(medium: &mut impl Medium) -> Vec<Result<(), FlashError>> {
    let mut results = Vec::new();
    for round in 0..10 * BLOCKS {
        let block = BlockId(round % BLOCKS);
        results.extend((0..PAGES).map(|page| program(medium, block.0 * PAGES + page)));
        results.push(medium.erase(block));
    }
    results
}

#[test]
fn a_plan_of_nothing_changes_nothing() {
    assert!(FaultPlan::default().is_empty());
    let (mut plain, mut wrapped) = (nand(true), faults(FaultPlan::default()));
    assert_eq!(churn(&mut plain), churn(&mut wrapped));
    assert_eq!(plain.tally().totals, wrapped.tally().totals);
    assert_eq!(wrapped.counts(), FaultCounts::default());
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let plan = |seed| FaultPlan { seed, program: 0.02, erase: 0.05, rot: 0.5, ..FaultPlan::default() };
    let run = |seed| {
        let mut medium = faults(plan(seed));
        (churn(&mut medium), medium.counts())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
    let counts = run(1).1;
    assert!(counts.programs > 0 && counts.erases > 0 && counts.rotten > 0, "{counts:?}");
}

#[test]
fn a_failed_program_leaves_an_unreadable_page_in_a_block_that_takes_no_more() {
    let mut medium = scripted("1 program-fail");
    program(&mut medium, 0).unwrap();
    assert_eq!(program(&mut medium, 1), Err(FlashError::ProgramFailed { page: Ppn(1) }));
    assert!(medium.is_programmed(Ppn(1)));
    assert_eq!(read(&mut medium, 1), Err(FlashError::Uncorrectable { page: Ppn(1) }));
    assert_eq!(program(&mut medium, 2), Err(FlashError::ProgramFailed { page: Ppn(2) }));
    read(&mut medium, 0).unwrap();
    program(&mut medium, 4).unwrap();
    assert_eq!(medium.erase(BlockId(0)), Err(FlashError::EraseFailed { block: BlockId(0) }));
}

#[test]
fn a_failed_erase_leaves_nothing_to_read() {
    let mut medium = scripted("0 erase-fail");
    program(&mut medium, 0).unwrap();
    assert_eq!(medium.erase(BlockId(0)), Err(FlashError::EraseFailed { block: BlockId(0) }));
    assert_eq!(read(&mut medium, 0), Err(FlashError::Uncorrectable { page: Ppn(0) }));
    assert_eq!(medium.erase(BlockId(0)), Err(FlashError::EraseFailed { block: BlockId(0) }));
    assert_eq!(medium.tally().totals.erases, 2, "what failed was done all the same");
}

#[test]
fn an_unreadable_page_keeps_its_oob_and_is_forgiven_by_the_erase() {
    let mut medium = scripted("1 unreadable page=0");
    program(&mut medium, 0).unwrap();
    program(&mut medium, 1).unwrap();
    assert_eq!(read(&mut medium, 0), Err(FlashError::Uncorrectable { page: Ppn(0) }));
    assert_eq!(medium.read_part(Ppn(0), 8, &mut [0; 8]), Err(FlashError::Uncorrectable { page: Ppn(0) }));
    assert_eq!(medium.read(Ppn(0), None), Ok(oob(0)));
    medium.erase(BlockId(0)).unwrap();
    program(&mut medium, 0).unwrap();
    read(&mut medium, 0).unwrap();
}

#[test]
fn a_medium_without_bytes_has_unreadable_pages_too() {
    let plan = FaultPlan { unreadable: 1.0, ..FaultPlan::default() };
    let mut medium = Faults::new(nand(false), plan).unwrap();
    medium.program(Ppn(0), oob(0), None).unwrap();
    assert_eq!(medium.read(Ppn(0), None), Err(FlashError::Uncorrectable { page: Ppn(0) }));
}

#[test]
fn rot_is_found_by_the_checksum() {
    let mut medium = scripted("1 rot page=0 bit=77");
    program(&mut medium, 0).unwrap();
    read(&mut medium, 0).unwrap_err();
    assert_eq!((medium.tally().health.checksum_errors, medium.counts().rotten), (1, 1));
}

#[test]
fn a_stuck_die_does_nothing_and_the_other_goes_on() {
    let mut medium = scripted("1 stuck die=0");
    program(&mut medium, 0).unwrap();
    let other = BLOCKS / 2 * PAGES;
    program(&mut medium, other).unwrap();
    assert_eq!(program(&mut medium, 1), Err(FlashError::ProgramFailed { page: Ppn(1) }));
    assert!(!medium.is_programmed(Ppn(1)));
    assert_eq!(medium.erase(BlockId(0)), Err(FlashError::EraseFailed { block: BlockId(0) }));
    assert_eq!(medium.read(Ppn(0), None), Err(FlashError::Uncorrectable { page: Ppn(0) }));
    read(&mut medium, other).unwrap();
}

#[test]
fn nothing_is_done_after_a_power_cut() {
    for (kind, is_programmed) in [("lost", false), ("torn", true)] {
        let mut medium = scripted(&format!("2 power-cut {kind}"));
        program(&mut medium, 0).unwrap();
        program(&mut medium, 1).unwrap();
        let lost = FlashError::from(InjectedFault::PowerLost { operation: 2 });
        assert_eq!(program(&mut medium, 2), Err(lost));
        assert_eq!(medium.is_programmed(Ppn(2)), is_programmed);
        assert_eq!(read(&mut medium, 0), Err(lost));
        assert_eq!(medium.erase(BlockId(0)), Err(lost));
        assert_eq!(medium.sync(), Err(lost));
        let mut left = medium.medium().clone();
        read(&mut left, 0).unwrap();
        assert!(read(&mut left, 2).is_err(), "neither kind leaves the page");
    }
}

#[test]
fn rules_of_the_medium_come_before_faults() {
    let mut medium = scripted("0 stuck die=0");
    medium.mark_bad(BlockId(1));
    assert_eq!(program(&mut medium, PAGES), Err(FlashError::BadBlock { block: BlockId(1) }));
    assert_eq!(medium.read(Ppn(0), None), Err(FlashError::Erased { page: Ppn(0) }));
    assert!(matches!(program(&mut medium, BLOCKS * PAGES), Err(FlashError::OutOfRange { .. })));
    assert!(matches!(medium.erase(BlockId(BLOCKS)), Err(FlashError::OutOfRange { .. })));
    assert!(matches!(medium.read(Ppn(u32::MAX), None), Err(FlashError::OutOfRange { .. })));
}

#[test]
fn a_plan_that_the_device_cannot_follow_is_refused() {
    for (line, what) in [
        ("5 stuck die=2", "die 2 at operation 5: expected less than 2"),
        ("5 rot page=1 bit=4208", "bit 4208 at operation 5: expected less than 4208"),
        ("7 unreadable page=32", "page 32 at operation 7: expected less than 32"),
    ] {
        let mut plan = FaultPlan::default();
        parse_script(line, &mut plan).unwrap();
        assert_eq!(Faults::new(nand(true), plan).unwrap_err().to_string(), what);
    }
}

/// When a read, a program and an erase of die 0, issued one after the other, complete.
fn times<S: Scheduler>(script: &str) -> [u64; 3] {
    let timing = Timing {
        read_ns: 1_000,
        program_ns: 10_000,
        erase_ns: 100_000,
        channel_bytes_per_s: 512_000_000,
        command_ns: 0,
    };
    let mut plan = FaultPlan::default();
    parse_script(script, &mut plan).unwrap();
    let mut medium = Faults::new(nand(false), plan).unwrap();
    medium.program(Ppn(0), oob(0), None).unwrap();
    let mut device = Timed::new(medium, S::new(&geometry(), &timing));
    let mut now = 0;
    let mut wait = |device: &mut Timed<Faults<Nand>, S>, token| {
        let begin = now;
        now = device.completion(token).map_or_else(
            || {
                device.watch(token, 1);
                let mut done = Vec::new();
                while done.is_empty() {
                    let next = device.next_event().expect("the token completes");
                    device.advance(next, &mut done);
                }
                done[0].at.0
            },
            |at| at.0,
        );
        (now - begin, SimTime(now))
    };
    let read = device.read(Ppn(0), 512, None, Issue::new(SimTime(0), Cause::Host)).unwrap().done;
    let (read, at) = wait(&mut device, read);
    let program = device.program(Ppn(1), oob(1), 512, None, Issue::new(at, Cause::Host)).unwrap();
    let (program, at) = wait(&mut device, program);
    let erase = device.erase(BlockId(0), Issue::new(at, Cause::Host)).unwrap();
    let (erase, _) = wait(&mut device, erase);
    [read, program, erase]
}

#[test]
fn a_slow_die_takes_so_many_times_as_long() {
    // 1000 ns of transfer are the bus's and take no longer, but in serial timing, where they are part of the
    // latency.
    assert_eq!(times::<Fifo>(""), [2_000, 11_000, 100_000]);
    assert_eq!(times::<Fifo>("0 slow die=0 factor=3"), [4_000, 31_000, 300_000]);
    assert_eq!(times::<ReadFirst>("0 slow die=0 factor=3"), [4_000, 31_000, 300_000]);
    assert_eq!(times::<Serial>("0 slow die=0 factor=3"), [3_000, 30_000, 300_000]);
    assert_eq!(times::<Fifo>("0 slow die=1 factor=3"), times::<Fifo>(""));
}

#[test]
fn operations_that_fail_take_time_and_are_counted_on_both_sides() {
    let timing =
        Timing { read_ns: 1, program_ns: 10, erase_ns: 100, channel_bytes_per_s: 1 << 30, command_ns: 0 };
    let mut plan = FaultPlan::default();
    parse_script("0 program-fail\n1 erase-fail", &mut plan).unwrap();
    let medium = Faults::new(nand(true), plan).unwrap();
    let mut device = Timed::new(medium, Serial::new(&geometry(), &timing));
    let issue = Issue::new(SimTime(0), Cause::Host);
    assert!(device.program(Ppn(0), oob(0), 512, Some(&[1; 512]), issue).is_err());
    assert!(device.read(Ppn(0), 512, Some(&mut [0; 512]), issue).is_err());
    assert!(device.erase(BlockId(0), issue).is_err());
    assert_eq!(device.counters().total(), device.tally().totals);
    assert_eq!(device.tally().totals, OpCounts { programs: 1, reads: 1, erases: 1 });
    assert_eq!(device.idle_from(), SimTime(111));
}
