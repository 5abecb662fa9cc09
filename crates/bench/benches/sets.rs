//! What it costs that sets share a device: random 4 KiB overwrites and reads through a translation layer that
//! has the device for itself, and through one over a part of all its dies, behind the lock. Both run in turns
//! in one process on processor time.
#![expect(clippy::print_stdout, reason = "the result of the bench")]

use nandscape_bench::{TIMING, processor_time};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{Extent, FlashDevice, Ftl, Geometry, Hint, Params, SimTime, UnitId};
use nandscape_ftl::page_map;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::SharedDevice;
use nandscape_namespace::sets::{Part, share};
use std::time::Instant;

const GEOMETRY: Geometry = Geometry { blocks_per_plane: 64, ..nandscape_bench::GEOMETRY };
const DEPTH: usize = 32;
const ROUNDS: usize = 15;
const REQUESTS: u64 = 500_000;

struct Stack {
    ftl: Box<dyn Ftl + Send>,
    rng: Xoshiro256PlusPlus,
    in_flight: [SimTime; DEPTH],
    at: SimTime,
}

impl Stack {
    fn new(is_shared: bool) -> Self {
        let nand =
            Nand::new(GEOMETRY.checked().expect("a shape"), &NandOptions::default()).expect("no bad blocks");
        let device = Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING));
        let params = Params::defaults(&page_map::INFO);
        let ftl = if is_shared {
            let shared: SharedDevice = share(device);
            let dies: Vec<UnitId> = (0..GEOMETRY.units()).map(UnitId).collect();
            page_map::build(Part::<dyn FlashDevice + Send>::new(shared, &dies), &params)
        } else {
            page_map::build(device, &params)
        };
        let ftl = ftl.expect("the defaults fit");
        let mut stack = Self { ftl, rng: seeded(1), in_flight: [SimTime::ZERO; DEPTH], at: SimTime::ZERO };
        let pages = stack.ftl.logical_pages();
        (0..pages).for_each(|lpn| stack.request(lpn, lpn as usize % DEPTH, true));
        stack.run(3 * pages, true);
        stack
    }

    fn request(&mut self, lpn: u64, slot: usize, is_write: bool) {
        self.at = self.at.max(self.in_flight[slot]);
        let extent = Extent::new(lpn * 4096, 4096);
        let token = if is_write {
            self.ftl.write(extent, None, Hint::default(), self.at)
        } else {
            self.ftl.read(extent, None, self.at)
        };
        let token = token.expect("there is room");
        self.in_flight[slot] = self.ftl.device().completion(token).expect("fifo knows at once");
    }

    fn run(&mut self, requests: u64, is_write: bool) {
        let pages = self.ftl.logical_pages();
        for i in 0..requests {
            let lpn = below(&mut self.rng, pages);
            self.request(lpn, i as usize % DEPTH, is_write);
        }
    }
}

fn main() {
    let start = Instant::now();
    let mut stacks = [Stack::new(false), Stack::new(true)];
    for (name, is_write) in [("writes", true), ("reads", false)] {
        let mut ratios = Vec::new();
        let mut best = [f64::MAX; 2];
        for _ in 0..ROUNDS {
            let seconds: Vec<f64> = stacks
                .iter_mut()
                .map(|stack| {
                    let before = processor_time(start);
                    stack.run(REQUESTS, is_write);
                    processor_time(start).saturating_sub(before).as_secs_f64()
                })
                .collect();
            ratios.push(seconds[0] / seconds[1]);
            best = [best[0].min(seconds[0]), best[1].min(seconds[1])];
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let ns = best.map(|seconds| seconds / REQUESTS as f64 * 1e9);
        println!(
            "sets: {name}: {:.0} ns a request alone, {:.0} ns on a part behind the lock; speed ratio median {:.3} (from {:.3} to {:.3})",
            ns[0],
            ns[1],
            ratios[ROUNDS / 2],
            ratios[0],
            ratios[ROUNDS - 1]
        );
    }
}
