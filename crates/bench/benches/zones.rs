//! Zone writes: sequential writes of 4 KiB and of 256 KiB to 16 GiB of zones over 32 dies, reset before they
//! are written again, as a share of a bare loop that does the same to the same arrays and the same scheduler
//! of dies and buses. Both run in turns in one process, and processor time is what counts.
#![expect(clippy::print_stdout, reason = "the result of the bench")]

use nandscape_bench::{GEOMETRY, TIMING, ZONE_DIES, Zoned, processor_time, zoned};
use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{BlockCommand, Clocked, Command, Extent, Hint, Op, Ppn, SimTime, Subsystem, Token};
use nandscape_media::scheduler::TimedOp;
use nandscape_media::{Fifo, Scheduler};
use std::collections::VecDeque;
use std::time::Instant;

/// Requests in flight.
const DEPTH: usize = 32;
const DIES: u32 = ZONE_DIES;
/// Pages of a zone: a block in each die.
const ZONE_PAGES: u32 = DIES * GEOMETRY.pages_per_block;
const PAGE: u64 = GEOMETRY.page_bytes as u64;
const ROUNDS: usize = 21;
/// The system counts processor time in steps of some milliseconds, so a round takes hundreds of them.
const PAGES_PER_ROUND: u32 = 40_000_000;

/// Resets after which zones program a page of their metadata log.
const RESETS_A_PAGE: u32 = 52;

/// What no simulator of zones on dies can do without: write pointers, the blocks of each zone, free blocks,
/// the write pointer of each block, the dies and buses, and the programs of a log that knows of resets. No
/// commands, states, limits, causes or counters.
struct Bare {
    written: Vec<u32>,
    blocks: Vec<u32>,
    free: Vec<VecDeque<u32>>,
    pointers: Vec<u32>,
    scheduler: Fifo,
    resets: u32,
}

impl Bare {
    fn new(zones: u32) -> Self {
        let per_die = GEOMETRY.blocks_per_unit();
        Self {
            written: vec![0; zones as usize],
            blocks: vec![0; (zones * DIES) as usize],
            free: (0..DIES).map(|die| (die * per_die..(die + 1) * per_die).collect()).collect(),
            pointers: vec![0; GEOMETRY.blocks() as usize],
            scheduler: Fifo::new(&GEOMETRY, &TIMING),
            resets: 0,
        }
    }

    /// Every so often the log programs a page, in a block of one die after the other.
    fn note_reset(&mut self, at: SimTime) {
        self.resets += 1;
        if !self.resets.is_multiple_of(RESETS_A_PAGE) {
            return;
        }
        let pages = self.resets / RESETS_A_PAGE;
        let die = (pages - 1) / GEOMETRY.pages_per_block % DIES;
        let block = self.free[die as usize][0];
        let page = Ppn(block * GEOMETRY.pages_per_block);
        let op = TimedOp::Program { page, transfer: GEOMETRY.page_bytes, held: 0 };
        self.scheduler.submit(op, at, Token::NONE);
    }
}

trait Device {
    fn reset(&mut self, zone: u32, at: SimTime);
    /// Writes pages at the write pointer of a zone.
    fn write(&mut self, zone: u32, first: u32, pages: u32, at: SimTime) -> SimTime;
}

impl Device for Bare {
    fn reset(&mut self, zone: u32, at: SimTime) {
        self.note_reset(at);
        for die in 0..DIES {
            let block = self.blocks[(zone * DIES + die) as usize];
            let op = TimedOp::Erase {
                page: Ppn(block * GEOMETRY.pages_per_block),
                pages: GEOMETRY.pages_per_block,
            };
            self.scheduler.submit(op, at, Token::NONE);
            self.pointers[block as usize] = 0;
            self.free[die as usize].push_back(block);
        }
        self.written[zone as usize] = 0;
    }

    #[inline]
    fn write(&mut self, zone: u32, first: u32, pages: u32, at: SimTime) -> SimTime {
        assert_eq!(self.written[zone as usize], first, "write pointer of zone {zone}");
        let mut done = Token::NONE;
        for index in first..first + pages {
            let die = index % DIES;
            let place = (zone * DIES + die) as usize;
            let page = index / DIES;
            if page == 0 {
                self.blocks[place] = self.free[die as usize].pop_front().expect("a block is free");
            }
            let block = self.blocks[place];
            assert_eq!(self.pointers[block as usize], page, "order in block {block}");
            self.pointers[block as usize] = page + 1;
            let page = Ppn(block * GEOMETRY.pages_per_block + page);
            let op = TimedOp::Program { page, transfer: GEOMETRY.page_bytes, held: 0 };
            let programmed = self.scheduler.submit(op, at, Token::NONE);
            done = self.scheduler.join(done, programmed);
        }
        self.written[zone as usize] = first + pages;
        self.scheduler.completion(done).expect("fifo knows at once")
    }
}

impl Device for Zoned {
    fn reset(&mut self, zone: u32, at: SimTime) {
        let start = u64::from(zone) * u64::from(ZONE_PAGES) * PAGE;
        let reset = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(start) };
        self.submit(0, Command::Zone(reset), Payload::None, at).expect("a zone can be reset");
    }

    #[inline]
    fn write(&mut self, zone: u32, first: u32, pages: u32, at: SimTime) -> SimTime {
        let offset = (u64::from(zone) * u64::from(ZONE_PAGES) + u64::from(first)) * PAGE;
        let extent = Extent::new(offset, u64::from(pages) * PAGE);
        let command = Command::Block(BlockCommand::new(Op::Write, extent, Hint(0)));
        let answer = self.submit(0, command, Payload::None, at).expect("the write pointer is there");
        self.completion(answer.into_done()).expect("fifo knows at once")
    }
}

/// Zones that are written one after the other, as a replay in closed loop does.
struct Stack<D> {
    device: D,
    zones: u32,
    pages: u32,
    zone: u32,
    next: u32,
    is_reset: bool,
    in_flight: [SimTime; DEPTH],
    at: SimTime,
}

impl<D: Device> Stack<D> {
    fn new(device: D, zones: u32, pages: u32) -> Self {
        let in_flight = [SimTime::ZERO; DEPTH];
        let mut stack =
            Self { device, zones, pages, zone: 0, next: 0, is_reset: true, in_flight, at: SimTime::ZERO };
        stack.write(zones * ZONE_PAGES);
        stack.is_reset = false;
        stack
    }

    #[inline(never)]
    fn write(&mut self, pages: u32) {
        for write in 0..pages / self.pages {
            let slot = write as usize % DEPTH;
            self.at = self.at.max(self.in_flight[slot]);
            if self.next == 0 && !self.is_reset {
                self.device.reset(self.zone, self.at);
            }
            self.in_flight[slot] = self.device.write(self.zone, self.next, self.pages, self.at);
            self.next += self.pages;
            if self.next == ZONE_PAGES {
                (self.next, self.zone) = (0, (self.zone + 1) % self.zones);
            }
        }
    }

    /// Nanoseconds of processor time for each page.
    fn round(&mut self, start: Instant) -> f64 {
        let before = processor_time(start);
        self.write(PAGES_PER_ROUND);
        processor_time(start).saturating_sub(before).as_nanos() as f64 / f64::from(PAGES_PER_ROUND)
    }
}

fn main() {
    // `cargo test --benches` runs nothing.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let start = Instant::now();
    for pages in [1, 64] {
        let device = zoned();
        let zones = device.table().layout().zones;
        let (mut bare, mut full) =
            (Stack::new(Bare::new(zones), zones, pages), Stack::new(device, zones, pages));
        let mut rounds: Vec<(f64, f64)> =
            (0..ROUNDS).map(|_| (bare.round(start), full.round(start))).collect();
        // The bare loop takes other blocks for its log, and makes no snapshots of it.
        let times = full.at.as_secs_f64() / bare.at.as_secs_f64();
        assert!((1.0..1.001).contains(&times), "zones take {times} times the virtual time");
        rounds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let ratio = |index: usize| rounds[index].0 / rounds[index].1;
        println!(
            "zone writes of {} KiB: bare loop {:.1} ns a page, zones {:.1} ns, ratio median {:.3} \
             ({:.3} to {:.3} in {ROUNDS} rounds)",
            u64::from(pages) * PAGE / 1024,
            rounds[ROUNDS / 2].0,
            rounds[ROUNDS / 2].1,
            ratio(ROUNDS / 2),
            ratio(0),
            ratio(ROUNDS - 1)
        );
    }
}
