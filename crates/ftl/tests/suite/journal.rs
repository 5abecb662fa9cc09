//! The journal by itself: random programs, copies, drops, flushes and erases against a plain map, with a
//! start after every few of them.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Barrier, BlockId, BlockState, Capabilities, Cause, Clocked, FlashDevice, FlashError, FlashState,
    Geometry, Issue, JournalRefusal, Lpn, MapJournal, Oob, Ppn, SimTime, Token,
};
use nandscape_ftl::journal::Sabotage;
use nandscape_ftl::{Journal, JournalError, JournalOptions};
use nandscape_media::faults::{Fault, FaultPlan, Faults, Scripted};
use nandscape_media::{BadBlocks, Fifo, Nand, NandOptions, Scheduler, Timed, Timing};

type Flash = Timed<Nand, Fifo>;

const TIMING: Timing =
    Timing { read_ns: 1, program_ns: 10, erase_ns: 50, channel_bytes_per_s: 1_000_000_000, command_ns: 0 };

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 16,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

fn flash(out_of_order_program: bool, bad: &[u32]) -> Flash {
    let capabilities = Capabilities { out_of_order_program, stores_data: true, ..Capabilities::default() };
    let bad_blocks = BadBlocks::List(bad.iter().map(|block| BlockId(*block)).collect());
    let options = NandOptions { capabilities, bad_blocks, ..NandOptions::default() };
    Timed::new(Nand::new(GEOMETRY, &options).unwrap(), Fifo::new(&GEOMETRY, &TIMING))
}

fn issue(cause: Cause) -> Issue {
    Issue::new(SimTime::ZERO, cause)
}

/// A layer without any thought: appends to blocks in order, copies what a victim holds.
struct Plain {
    device: Journal<Flash>,
    open: Option<BlockId>,
}

impl Plain {
    fn usable(&self) -> Vec<BlockId> {
        let blocks = (0..GEOMETRY.blocks()).map(BlockId);
        blocks.filter(|block| !self.device.is_bad(*block)).collect()
    }

    fn next(&mut self) -> Option<Ppn> {
        let is_open = |device: &Journal<Flash>, block: BlockId| {
            (device.write_pointer(block) < GEOMETRY.pages_per_block).then_some(block)
        };
        let block = self
            .open
            .and_then(|block| is_open(&self.device, block))
            .or_else(|| self.usable().into_iter().find(|block| self.device.write_pointer(*block) == 0))?;
        self.open = Some(block);
        Some(GEOMETRY.page(block, self.device.write_pointer(block)))
    }

    fn write(&mut self, lpn: u32, fill: u8) -> bool {
        let Some(page) = self.next() else { return false };
        let oob = Oob { lpn: Lpn(lpn), stream: 0, seq: 0 };
        self.device.program(page, oob, 512, Some(&[fill; 512]), issue(Cause::Host)).unwrap();
        true
    }

    /// Moves what a full block holds and erases it.
    fn collect(&mut self, block: BlockId) {
        let mut data = [0; 512];
        for index in 0..self.device.write_pointer(block) {
            let page = GEOMETRY.page(block, index);
            let read = self.device.read(page, 512, Some(&mut data), issue(Cause::Gc)).unwrap();
            if self.device.newest(read.oob.lpn) == Some(page) {
                let Some(target) = self.next() else { return };
                self.device.program(target, read.oob, 512, Some(&data), issue(Cause::Gc)).unwrap();
            }
        }
        self.device.erase(block, issue(Cause::Gc)).unwrap();
    }
}

fn run(out_of_order: bool, seed: u64, options: JournalOptions) -> u64 {
    let mut rng = seeded(seed);
    let device = Journal::open(flash(out_of_order, &[15, 3]), options).unwrap();
    let mut plain = Plain { device, open: None };
    let mut model = vec![0u8; 60];
    let (mut starts, mut checkpoints) = (0, 0);
    for step in 0..2000u32 {
        let lpn = below(&mut rng, 60) as u32;
        match below(&mut rng, 20) {
            0 => {
                let count = 1 + below(&mut rng, 10) as u32;
                plain.device.drop_pages(Lpn(lpn), count, SimTime::ZERO).unwrap();
                for page in lpn..(lpn + count).min(60) {
                    model[page as usize] = 0;
                }
            }
            1 => {
                plain.device.barrier(Barrier::Durable, SimTime::ZERO).unwrap();
            }
            2 => {
                let is_clean = below(&mut rng, 2) == 0;
                if is_clean {
                    plain.device.checkpoint(SimTime::ZERO).unwrap();
                } else {
                    plain.device.barrier(Barrier::Durable, SimTime::ZERO).unwrap();
                }
                let device = Journal::open(plain.device.into_inner(), options).unwrap();
                let report = device.report().clone();
                assert_eq!(report.was_clean, is_clean || report.scanned_blocks + report.drop_records == 0);
                assert!(!report.was_clean || report.scanned_pages == 0, "{report:?}");
                checkpoints = checkpoints.max(report.checkpoint);
                plain = Plain { device, open: None };
                starts += 1;
                // Go on in a block that is partly written.
                plain.open = plain.usable().into_iter().find(|block| {
                    (1..GEOMETRY.pages_per_block).contains(&plain.device.write_pointer(*block))
                });
            }
            _ => {
                let fill = (step % 250) as u8 + 1;
                while plain.usable().iter().filter(|b| plain.device.write_pointer(**b) == 0).count() < 2 {
                    let full = plain.usable().into_iter().filter(|b| plain.device.write_pointer(*b) == 8);
                    let least = full.min_by_key(|block| {
                        (0..60)
                            .filter(|lpn| {
                                plain.device.newest(Lpn(*lpn)).is_some_and(|p| GEOMETRY.block_of(p) == *block)
                            })
                            .count()
                    });
                    plain.collect(least.unwrap());
                }
                assert!(plain.write(lpn, fill));
                model[lpn as usize] = fill;
            }
        }
        for (lpn, fill) in (0..).zip(&model) {
            let place = plain.device.newest(Lpn(lpn));
            let mut data = [0; 512];
            if let Some(page) = place {
                plain.device.read(page, 512, Some(&mut data), issue(Cause::Host)).unwrap();
            }
            assert_eq!(data, [*fill; 512], "seed {seed} step {step}: page {lpn} at {place:?}");
        }
    }
    assert!(starts > 20, "{starts} starts");
    assert_eq!(plain.device.counters().total(), plain.device.tally().totals);
    checkpoints
}

#[test]
fn a_start_finds_the_newest_version_of_every_page() {
    for seed in 0..6 {
        let checkpoints = run(seed % 2 == 0, seed, JournalOptions::default());
        assert!(checkpoints > 10, "{checkpoints} checkpoints");
        run(seed % 2 == 0, seed, JournalOptions { interval: Some(1_000_000), ..JournalOptions::default() });
    }
}

#[test]
fn a_block_with_the_newest_data_is_not_erased() {
    let device = Journal::open(flash(false, &[]), JournalOptions::default()).unwrap();
    let mut plain = Plain { device, open: None };
    assert!(plain.write(5, 1));
    let block = GEOMETRY.block_of(plain.device.newest(Lpn(5)).unwrap());
    let refused = plain.device.erase(block, issue(Cause::Gc));
    assert_eq!(refused, Err(JournalRefusal::HoldsData { block, pages: 1 }.into()));
    plain.device.drop_pages(Lpn(0), 10, SimTime::ZERO).unwrap();
    plain.device.erase(block, issue(Cause::Gc)).unwrap();
    let oob = Oob { lpn: Lpn(5), stream: 0, seq: 0 };
    let copy = plain.device.program(GEOMETRY.page(block, 0), oob, 512, None, issue(Cause::Gc));
    assert!(matches!(copy, Err(FlashError::Journal(JournalRefusal::NoCopy { lpn: Lpn(5), .. }))), "{copy:?}");
}

#[test]
fn an_erase_waits_for_every_program_before_it() {
    let device = Journal::open(flash(false, &[]), JournalOptions::default()).unwrap();
    let mut plain = Plain { device, open: None };
    plain.device.reset_time(SimTime::ZERO);
    let oob = Oob { lpn: Lpn(1), stream: 0, seq: 0 };
    let mut last = Token::NONE;
    for index in 0..4 {
        // All on the first die.
        let done = plain.device.program(Ppn(index), oob, 512, None, issue(Cause::Host)).unwrap();
        last = plain.device.join(last, done);
    }
    let free = GEOMETRY.block(nandscape_core::UnitId(1), 0);
    let erased = plain.device.erase(free, issue(Cause::Gc)).unwrap();
    let (last, erased) = (plain.device.completion(last).unwrap(), plain.device.completion(erased).unwrap());
    assert_eq!(erased.0, last.0 + TIMING.erase_ns, "a die with nothing to do");
}

#[test]
fn a_drop_before_a_checkpoint_holds_in_a_block_whose_program_failed() {
    for has_free_order in [false, true] {
        let nand = flash(has_free_order, &[]).medium().clone();
        // Seven programs make the first checkpoint; the fifth of the host fails.
        let plan =
            FaultPlan { script: vec![Scripted { at: 11, fault: Fault::Program }], ..FaultPlan::default() };
        let device = Timed::new(Faults::new(nand, plan).unwrap(), Fifo::new(&GEOMETRY, &TIMING));
        let options = JournalOptions { interval: Some(6), ..JournalOptions::default() };
        let mut device = Journal::open(device, options).unwrap();
        let oob = |lpn| Oob { lpn: Lpn(lpn), stream: 0, seq: 0 };
        let first = device.geometry().page(BlockId(0), 0).0;
        let mut failures = 0;
        for index in 0..5 {
            let page = Ppn(first + index);
            match device.program(page, oob(index), 512, Some(&[1; 512]), issue(Cause::Host)) {
                Ok(_) => {}
                Err(FlashError::ProgramFailed { .. }) => {
                    failures += 1;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(failures, 1);
        device.drop_pages(Lpn(1), 1, SimTime::ZERO).unwrap();
        device.barrier(Barrier::Durable, SimTime::ZERO).unwrap();
        for index in 0..16 {
            let page = GEOMETRY.page(BlockId(1 + index / 8), index % 8);
            device.program(page, oob(20 + index), 512, Some(&[2; 512]), issue(Cause::Host)).unwrap();
        }
        let device = Journal::open(device.into_inner(), options).unwrap();
        assert!(device.report().checkpoint > 1, "{:?}", device.report());
        assert_eq!(device.newest(Lpn(1)), None, "free order: {has_free_order}");
        assert!(device.newest(Lpn(0)).is_some() && device.newest(Lpn(2)).is_some());
    }
}

/// A journal over flash whose programs of these numbers fail.
fn failing_at(
    numbers: std::ops::Range<u64>,
    sabotage: Sabotage,
) -> (Journal<Timed<Faults<Nand>, Fifo>>, JournalOptions) {
    let nand = flash(false, &[]).medium().clone();
    let script = numbers.map(|at| Scripted { at, fault: Fault::Program }).collect();
    let plan = FaultPlan { script, ..FaultPlan::default() };
    let device = Timed::new(Faults::new(nand, plan).unwrap(), Fifo::new(&GEOMETRY, &TIMING));
    let options = JournalOptions { interval: Some(6), sabotage, ..JournalOptions::default() };
    (Journal::open(device, options).unwrap(), options)
}

/// Whether the journal programs a block that failed once more, after starts that come by every one of its
/// blocks; in which of them.
fn tries_a_failed_block_again(sabotage: Sabotage) -> Option<u32> {
    // The second page of the first checkpoint.
    let (mut device, options) = failing_at(1..2, sabotage);
    for start in 0..4 {
        // As many checkpoints as it takes to come by every block of the journal.
        for _ in 0..40 {
            let block = BlockId(start);
            for index in 0..8 {
                let oob = Oob { lpn: Lpn(index), stream: 0, seq: 0 };
                let page = GEOMETRY.page(block, index);
                device.program(page, oob, 512, Some(&[1; 512]), issue(Cause::Host)).unwrap();
            }
            device.drop_pages(Lpn(0), 8, SimTime::ZERO).unwrap();
            device.erase(block, issue(Cause::Gc)).unwrap();
        }
        device.checkpoint(SimTime::ZERO).unwrap();
        assert!(device.report().checkpoint > 0 || start == 0);
        let counts = device.inner().medium().counts();
        if (counts.programs, counts.erases) != (1, 0) {
            return Some(start);
        }
        device = Journal::open(device.into_inner(), options).unwrap();
    }
    None
}

#[test]
fn a_block_of_the_journal_that_failed_is_left_alone_after_a_start() {
    assert_eq!(tries_a_failed_block_again(Sabotage::None), None);
}

#[test]
fn a_journal_that_forgets_its_failed_blocks_is_found() {
    let found = tries_a_failed_block_again(Sabotage::ForgetFailed);
    assert!(found.is_some_and(|start| start > 0), "{found:?}");
}

/// From some operation on no program succeeds, so that no checkpoint takes the place of the records of drops.
#[test]
fn a_flush_does_not_pass_over_drops_that_only_a_failed_checkpoint_held() {
    let mut outcomes = [0; 2];
    for first in 7..60 {
        let (mut device, options) = failing_at(first..first + 1000, Sabotage::None);
        let mut is_written = true;
        for index in 0..8 {
            let oob = Oob { lpn: Lpn(index), stream: 0, seq: 0 };
            let page = GEOMETRY.page(BlockId(0), index);
            is_written &= device.program(page, oob, 512, Some(&[1; 512]), issue(Cause::Host)).is_ok();
        }
        let flushed = device.barrier(Barrier::Durable, SimTime::ZERO);
        let dropped = device.drop_pages(Lpn(1), 1, SimTime::ZERO);
        if !is_written || flushed.is_err() || dropped.is_err() {
            continue;
        }
        let _ = device.checkpoint(SimTime::ZERO);
        let flushed = device.barrier(Barrier::Durable, SimTime::ZERO).is_ok();
        outcomes[usize::from(flushed)] += 1;
        let nand = device.into_inner().medium().medium().clone();
        let device = Journal::open(Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING)), options).unwrap();
        assert!(!flushed || device.newest(Lpn(1)).is_none(), "programs fail from operation {first} on");
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let mut plain = flash(false, &[]);
    plain.program(Ppn(0), Oob { lpn: Lpn(1), stream: 0, seq: 1 }, 512, None, issue(Cause::Host)).unwrap();
    let error = Journal::open(plain, JournalOptions::default()).unwrap_err();
    assert_eq!(error, JournalError::NoCheckpoint { block: 0 });
    let few: Vec<u32> = (0..29).collect();
    let error = Journal::open(flash(false, &few), JournalOptions::default()).unwrap_err();
    assert!(matches!(error, JournalError::TooSmall { good: 3, .. }), "{error}");
}
