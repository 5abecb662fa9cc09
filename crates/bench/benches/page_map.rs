//! The page map's budget: random 4 KiB overwrites of a 16 GiB device at 28 % over-provisioning, greedy,
//! parallel timing, in steady state, as a share of a bare loop over the same arrays. Both run in turns in one
//! process, and processor time is what counts, so that other work on the machine moves both alike.
#![expect(clippy::print_stdout, reason = "the result of the bench")]

mod bare;

use bare::Bare;
use criterion::{Criterion, Throughput, criterion_group};
use nandscape_bench::{GEOMETRY, TIMING, processor_time};
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{Extent, Ftl, Hint, Params, SimTime};
use nandscape_ftl::page_map;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// Requests in flight.
const DEPTH: usize = 32;
/// Requests known before they are issued, as in a replay.
const AHEAD: usize = 8;
/// Host writes before anything is measured, in logical capacities.
const WARM_UP: u64 = 3;
const ROUNDS: usize = 21;
const WRITES_PER_ROUND: u64 = 1_000_000;

/// The layer over a timed device, driven as a replay in closed loop would.
struct Stack {
    ftl: Box<dyn Ftl + Send>,
    rng: Xoshiro256PlusPlus,
    in_flight: [SimTime; DEPTH],
    at: SimTime,
    streams: u16,
}

impl Stack {
    /// Without streams, or with so many that are written alike.
    fn new(streams: u16) -> Self {
        let nand =
            Nand::new(GEOMETRY.checked().expect("a shape"), &NandOptions::default()).expect("no bad blocks");
        let device = Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING));
        let typed = BTreeMap::from([("streams".to_owned(), streams.to_string())]);
        let params = Params::check(&page_map::INFO, "ftl.", &typed).expect("a number of streams");
        let ftl = page_map::build(device, &params).expect("the defaults fit");
        let in_flight = [SimTime::ZERO; DEPTH];
        let mut stack = Self { ftl, rng: seeded(1), in_flight, at: SimTime::ZERO, streams };
        let pages = stack.ftl.logical_pages();
        (0..pages).for_each(|lpn| stack.write(lpn, lpn as usize % DEPTH));
        stack.overwrite(WARM_UP * pages);
        stack
    }

    fn write(&mut self, lpn: u64, slot: usize) {
        self.at = self.at.max(self.in_flight[slot]);
        let extent = Extent::new(lpn * 4096, 4096);
        let hint = Hint(if self.streams == 0 { 0 } else { 1 + lpn as u16 % self.streams });
        let token = self.ftl.write(extent, None, hint, self.at).expect("there is room");
        self.in_flight[slot] = self.ftl.device().completion(token).expect("fifo knows at once");
    }

    fn overwrite(&mut self, writes: u64) {
        let pages = self.ftl.logical_pages();
        let mut known = [0; AHEAD];
        for lpn in &mut known {
            *lpn = self.draw(pages);
        }
        for i in 0..writes {
            let place = i as usize % AHEAD;
            let next = self.draw(pages);
            let lpn = std::mem::replace(&mut known[place], next);
            self.write(lpn, i as usize % DEPTH);
        }
    }

    /// The next page, prepared as a replay does when it reads a request.
    fn draw(&mut self, pages: u64) -> u64 {
        let lpn = below(&mut self.rng, pages);
        self.ftl.prepare(Extent::new(lpn * 4096, 4096));
        lpn
    }
}

fn timed(start: Instant, work: impl FnOnce()) -> f64 {
    let before = processor_time(start);
    work();
    processor_time(start).saturating_sub(before).as_secs_f64()
}

/// The share of the bare loop's speed, as the median of the ratios of neighbouring rounds.
fn compare(stack: &mut Stack, bare: &mut Bare) {
    let start = Instant::now();
    let mut ratios = Vec::new();
    let mut best = [f64::MAX; 2];
    stack.ftl.device_mut().reset_counters();
    bare.reset_waf();
    for _ in 0..ROUNDS {
        let bare_s = timed(start, || bare.overwrite(black_box(WRITES_PER_ROUND)));
        let stack_s = timed(start, || stack.overwrite(black_box(WRITES_PER_ROUND)));
        ratios.push(bare_s / stack_s);
        best = [best[0].min(bare_s), best[1].min(stack_s)];
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let millions = best.map(|seconds| WRITES_PER_ROUND as f64 / seconds / 1e6);
    let programs = stack.ftl.device().tally().totals.programs;
    let waf = programs as f64 / (ROUNDS as u64 * WRITES_PER_ROUND) as f64;
    println!("page_map: 16 GiB, 4 KiB pages, 28 % over-provisioning, greedy, fifo timing, WAF {waf:.3}");
    println!(
        "  bare loop   best {:.2} M host pages per processor second, WAF {:.3}",
        millions[0],
        bare.waf()
    );
    println!("  full stack  best {:.2} M host pages per processor second", millions[1]);
    println!(
        "  ratio       median {:.3} (from {:.3} to {:.3} in {ROUNDS} rounds); budget: at least 0.55",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1]
    );
}

/// What streams cost: the speed with eight of them over that with one log, budget at least 0.85 a programmed
/// page.
fn compare_streams(one: &mut Stack) {
    let mut eight = Stack::new(8);
    let start = Instant::now();
    let mut ratios = Vec::new();
    let mut best = f64::MAX;
    let programs = |stack: &Stack| stack.ftl.device().tally().totals.programs as f64;
    for _ in 0..ROUNDS {
        let before = [programs(one), programs(&eight)];
        let one_s = timed(start, || one.overwrite(black_box(WRITES_PER_ROUND)));
        let eight_s = timed(start, || eight.overwrite(black_box(WRITES_PER_ROUND)));
        // Eight streams keep more blocks open, so each host write costs a few more programs.
        let [one_programs, eight_programs] = [programs(one) - before[0], programs(&eight) - before[1]];
        ratios.push((one_s / one_programs) / (eight_s / eight_programs));
        best = best.min(eight_s);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let waf = eight.ftl.stats().gc_moved_pages as f64 / eight.ftl.stats().map_updates as f64;
    println!(
        "  8 streams   best {:.2} M host pages per processor second, {:.0} % of the programs are copies",
        WRITES_PER_ROUND as f64 / best / 1e6,
        waf * 100.0
    );
    println!(
        "  ratio       median {:.3} a programmed page (from {:.3} to {:.3}); budget: at least 0.85 of one log",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1]
    );
}

fn page_map(criterion: &mut Criterion) {
    let mut stack = Stack::new(0);
    let mut bare = Bare::new(GEOMETRY.blocks(), GEOMETRY.pages_per_block, stack.ftl.logical_pages() as u32);
    bare.overwrite(WARM_UP * stack.ftl.logical_pages());
    compare(&mut stack, &mut bare);
    compare_streams(&mut stack);
    let mut group = criterion.benchmark_group("page_map");
    group.throughput(Throughput::Elements(100_000)).sample_size(20);
    group.bench_function("bare loop, 100k overwrites", |b| b.iter(|| bare.overwrite(100_000)));
    group.bench_function("full stack, 100k overwrites", |b| b.iter(|| stack.overwrite(100_000)));
    group.finish();
}

criterion_group!(benches, page_map);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
