//! Both parallel schedulers on 200,000 operations: `t1` (programs of whole pages), `t2` (7 small reads in 10,
//! the rest small programs), both open loop on 8 channels x 4 dies, and `collect` (copies as read, then
//! program on another die, and an erase after the last copy of each block). An element is one operation.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Completion, Geometry, Ppn, SimTime, Token};
use nandscape_media::{Fifo, ReadFirst, Scheduler, TimedOp, Timing};
use std::hint::black_box;

const GEOMETRY: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 4,
    planes_per_die: 2,
    blocks_per_plane: 512,
    pages_per_block: 256,
    page_bytes: 16384,
    sector_bytes: 4096,
    oob_bytes: 128,
};

const TIMING: Timing = Timing {
    read_ns: 75_000,
    program_ns: 750_000,
    erase_ns: 3_800_000,
    channel_bytes_per_s: 333_000_000,
    command_ns: 0,
};

const OPS: u64 = 200_000;

/// Operations with their times, programs appended die by die.
fn open_loop(reads_in_ten: u64, transfer: u32, gap_ns: u64) -> Vec<(TimedOp, SimTime)> {
    let mut rng = seeded(1);
    let pages_per_unit = GEOMETRY.blocks_per_unit() * GEOMETRY.pages_per_block;
    let mut next = vec![0; GEOMETRY.units() as usize];
    (0..OPS)
        .map(|index| {
            let unit = below(&mut rng, u64::from(GEOMETRY.units())) as u32;
            let base = unit * pages_per_unit;
            let op = if below(&mut rng, 10) < reads_in_ten {
                let page = Ppn(base + below(&mut rng, u64::from(pages_per_unit)) as u32);
                TimedOp::Read { page, transfer }
            } else {
                let page = Ppn(base + next[unit as usize]);
                next[unit as usize] += 1;
                TimedOp::Program { page, transfer, held: 0 }
            };
            (op, SimTime(index * gap_ns))
        })
        .collect()
}

fn replay<S: Scheduler>(ops: &[(TimedOp, SimTime)], scheduler: &mut S, out: &mut Vec<Completion>) -> u64 {
    let mut sum = 0;
    for (index, &(op, at)) in ops.iter().enumerate() {
        scheduler.advance(at, out);
        sum += out.drain(..).map(|completion| completion.at.0).sum::<u64>();
        let token = scheduler.submit(op, at, Token::NONE);
        match scheduler.completion(token) {
            Some(at) => sum += at.0,
            None => scheduler.watch(token, index as u64),
        }
    }
    scheduler.advance(SimTime::MAX, out);
    sum + out.drain(..).map(|completion| completion.at.0).sum::<u64>()
}

/// 128 copies of each of a run of blocks to the die next to it, then the erase. One block in 20 ms.
fn collect<S: Scheduler>(scheduler: &mut S, out: &mut Vec<Completion>) -> u64 {
    let pages_per_unit = GEOMETRY.blocks_per_unit() * GEOMETRY.pages_per_block;
    let blocks = OPS / 257;
    for index in 0..blocks {
        let at = SimTime(index * 20_000_000);
        scheduler.advance(at, out);
        out.clear();
        let unit = (index % u64::from(GEOMETRY.units())) as u32;
        let round = (index / u64::from(GEOMETRY.units())) as u32;
        let victim = unit * pages_per_unit + round * GEOMETRY.pages_per_block;
        let target =
            (unit + 1) % GEOMETRY.units() * pages_per_unit + (512 + round) * GEOMETRY.pages_per_block;
        let transfer = GEOMETRY.page_bytes;
        let mut copied = Token::NONE;
        for page in 0..128 {
            let read =
                scheduler.submit(TimedOp::Read { page: Ppn(victim + page), transfer }, at, Token::NONE);
            let program =
                scheduler.submit(TimedOp::Program { page: Ppn(target + page), transfer, held: 0 }, at, read);
            copied = scheduler.join(copied, program);
        }
        scheduler.submit(TimedOp::Erase { page: Ppn(victim), pages: 0 }, at, copied);
    }
    scheduler.advance(SimTime::MAX, out);
    out.clear();
    scheduler.idle_from().0
}

fn benches(criterion: &mut Criterion) {
    let loads = [("t1", open_loop(0, 16384, 50_000)), ("t2", open_loop(7, 4096, 25_000))];
    for (name, ops) in &loads {
        let mut group = criterion.benchmark_group(format!("scheduler/{name}"));
        group.sample_size(20).throughput(Throughput::Elements(OPS));
        group.bench_function("fifo", |b| {
            b.iter_batched_ref(
                || (Fifo::new(&GEOMETRY, &TIMING), Vec::new()),
                |(scheduler, out)| black_box(replay(ops, scheduler, out)),
                BatchSize::LargeInput,
            );
        });
        group.bench_function("read-first", |b| {
            b.iter_batched_ref(
                || (ReadFirst::new(&GEOMETRY, &TIMING), Vec::new()),
                |(scheduler, out)| black_box(replay(ops, scheduler, out)),
                BatchSize::LargeInput,
            );
        });
    }
    let mut group = criterion.benchmark_group("scheduler/collect");
    group.sample_size(20).throughput(Throughput::Elements(OPS / 257 * 257));
    group.bench_function("fifo", |b| {
        b.iter_batched_ref(
            || (Fifo::new(&GEOMETRY, &TIMING), Vec::new()),
            |(scheduler, out)| black_box(collect(scheduler, out)),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("read-first", |b| {
        b.iter_batched_ref(
            || (ReadFirst::new(&GEOMETRY, &TIMING), Vec::new()),
            |(scheduler, out)| black_box(collect(scheduler, out)),
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(scheduler, benches);
criterion_main!(scheduler);
