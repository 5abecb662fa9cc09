//! The host's map over zones against the page map of a device: random 4 KiB overwrites of 16 GiB of flash at
//! 28 % over-provisioning, greedy, parallel timing, in steady state. Both take the commands that a replay
//! gives them, in turns in one process, and processor time for each flash operation is what counts.
#![expect(clippy::print_stdout, reason = "the result of the bench")]

use nandscape_bench::{GEOMETRY, TIMING, processor_time, zoned};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{BlockCommand, Extent, Hint, Op, Params, SimTime, Subsystem};
use nandscape_ftl::{PageMap, page_map};
use nandscape_hostftl::{ZoneMap, zone_map};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::NvmSubsystem;
use std::time::Instant;

/// Requests in flight, and known before they are issued.
const DEPTH: usize = 32;
const AHEAD: usize = 8;
const ROUNDS: usize = 15;
/// The system counts processor time in steps of some milliseconds, so a round takes hundreds of them.
const WRITES_PER_ROUND: u64 = 3_000_000;

/// A device that is driven as a replay in closed loop would, by commands.
struct Stack {
    device: Box<dyn Subsystem>,
    pages: u64,
    rng: Xoshiro256PlusPlus,
    in_flight: [SimTime; DEPTH],
    at: SimTime,
}

impl Stack {
    fn new(device: Box<dyn Subsystem>) -> Self {
        let pages = device.namespaces()[0].capacity_bytes / u64::from(GEOMETRY.page_bytes);
        let in_flight = [SimTime::ZERO; DEPTH];
        let mut stack = Self { device, pages, rng: seeded(1), in_flight, at: SimTime::ZERO };
        (0..pages).for_each(|lpn| stack.write(lpn, lpn as usize % DEPTH));
        stack.overwrite(3 * pages);
        stack
    }

    #[inline]
    fn write(&mut self, lpn: u64, slot: usize) {
        self.at = self.at.max(self.in_flight[slot]);
        let write = BlockCommand::new(Op::Write, Extent::new(lpn * 4096, 4096), Hint(0));
        let answer = self.device.submit(0, write.into(), Payload::None, self.at).expect("there is room");
        let done = self.device.completion(answer.into_done());
        self.in_flight[slot] = done.expect("fifo knows at once");
    }

    /// Flash operations so far.
    fn operations(&self) -> u64 {
        let totals = self.device.inspect().layers.get(0).device().counters().total();
        totals.programs + totals.reads + totals.erases
    }

    fn overwrite(&mut self, writes: u64) {
        let mut known = [0; AHEAD];
        for i in 0..writes {
            let next = below(&mut self.rng, self.pages);
            self.device.prepare(0, Op::Write, Extent::new(next * 4096, 4096));
            let lpn = std::mem::replace(&mut known[i as usize % AHEAD], next);
            self.write(lpn, i as usize % DEPTH);
        }
    }

    /// Nanoseconds of processor time for each flash operation.
    #[inline(never)]
    fn round(&mut self, start: Instant) -> f64 {
        let (before, operations) = (processor_time(start), self.operations());
        self.overwrite(WRITES_PER_ROUND);
        let time = processor_time(start).saturating_sub(before);
        time.as_nanos() as f64 / (self.operations() - operations) as f64
    }
}

/// One round, for a profiler.
fn one_round(stack: &mut Stack, start: Instant) -> String {
    let before = stack.operations();
    let time = stack.round(start);
    format!("{time:.1} ns for each of {} flash operations", stack.operations() - before)
}

fn main() {
    // `cargo test --benches` and callgrind run a part of it: `map` or `zones` alone, once.
    let only = std::env::args().skip(1).find(|word| matches!(&**word, "map" | "zones"));
    if only.is_none() && !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let start = Instant::now();
    let nand =
        Nand::new(GEOMETRY.checked().expect("a shape"), &NandOptions::default()).expect("no bad blocks");
    let make_map = || {
        let device = Timed::new(nand.clone(), Fifo::new(&GEOMETRY, &TIMING));
        let map = PageMap::new(device, &Params::defaults(&page_map::INFO)).expect("the defaults fit");
        Stack::new(Box::new(NvmSubsystem::plain(Box::new(map))))
    };
    let make_zones = || {
        let zones = ZoneMap::new(zoned(), &Params::defaults(&zone_map::INFO)).expect("the defaults fit");
        Stack::new(Box::new(zones))
    };
    match only.as_deref() {
        Some("map") => println!("page-map: {}", one_round(&mut make_map(), start)),
        Some(_) => println!("zone-map: {}", one_round(&mut make_zones(), start)),
        None => {
            let (mut map, mut zones) = (make_map(), make_zones());
            let mut rounds: Vec<(f64, f64)> =
                (0..ROUNDS).map(|_| (map.round(start), zones.round(start))).collect();
            let best = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).fold(f64::MAX, f64::min);
            let best = [best(|round| round.0), best(|round| round.1)];
            rounds.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
            let ratio = |index: usize| rounds[index].1 / rounds[index].0;
            let (map, zones) = rounds[ROUNDS / 2];
            println!(
                "page-map {map:.1} ns (best {:.1}), zone-map {zones:.1} ns (best {:.1}) for each flash operation; \
                 zone-map takes {:.3} times as long, {:.3} to {:.3} in {ROUNDS} rounds",
                best[0],
                best[1],
                ratio(ROUNDS / 2),
                ratio(1),
                ratio(ROUNDS - 2)
            );
        }
    }
}
