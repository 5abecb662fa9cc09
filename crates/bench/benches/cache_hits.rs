//! The whole cache engine on hits: journalled metadata, the default design with its cleaning, over memory,
//! one thread.
//!
//! Driven as a replay drives it, in a closed loop of 32 requests of 4 KiB, each prepared eight requests
//! ahead; time goes on as the stores say, and commits, cleaning and moves of blocks to other slots are all in
//! it. Requests are uniform over a working set of nine tenths of the slots, which is the worst that hits can
//! be for the processor's caches: 64 Ki slots (256 MiB) and 1 Mi slots (4 GiB). Processor time is what
//! counts. Stores keep no bytes, as in a replay, but for the last group, where 4 KiB are copied for each
//! request.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nandscape_bench::processor_time;
use nandscape_cache::counters::Counters;
use nandscape_cache::engine::Disk;
use nandscape_cache::{Cache, Design};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, Subsystem};
use nandscape_disk::{Keep, registry};
use nandscape_memory::Batch;
use nandscape_policies::eviction::AnyEviction;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

const BLOCK: u64 = 4096;
const DEPTH: usize = 32;
const AHEAD: usize = 8;
/// Requests between two looks at the clock.
const BATCH: u64 = 20_000;

struct Load {
    cache: Cache<AnyEviction>,
    blocks: u64,
    rng: Xoshiro256PlusPlus,
    known: VecDeque<BlockCommand>,
    in_flight: [SimTime; DEPTH],
    next: usize,
    at: SimTime,
    /// Where bytes come from and go to, if they are kept.
    bytes: Vec<u8>,
}

fn store(bytes: u64, keep: Keep) -> Box<dyn Store + Send> {
    registry::build("ram", "disk.", &BTreeMap::new(), bytes, keep).expect("a RAM disk")
}

impl Load {
    /// A cache of the default design that has read its working set once.
    fn new(slots: u64, keep: Keep) -> Self {
        let typed = [("size".to_owned(), format!("{slots}b"))].into();
        let design = Design::parse("cache.", &typed).expect("a size alone will do");
        let mut disk = store(slots * BLOCK, keep);
        if keep == Keep::Bytes {
            // What was never written to is not there, and would be read without being copied.
            let bytes = vec![3; BLOCK as usize];
            for block in 0..slots {
                disk.apply(request(Op::Write, block), Payload::Write(&bytes)).expect("it is in memory");
            }
        }
        let disks = vec![Disk { store: disk, uuid: [1; 16] }];
        let fast = store((slots + slots / 16 + 1024) * BLOCK, keep);
        let started = design.create(fast, disks, [2; 16], SimTime::ZERO).expect("there is room");
        let mut load = Self {
            cache: started.cache,
            blocks: slots * 9 / 10,
            rng: seeded(1),
            known: VecDeque::new(),
            in_flight: [SimTime::ZERO; DEPTH],
            next: 0,
            at: started.at,
            bytes: if keep == Keep::Bytes { vec![7; BLOCK as usize] } else { Vec::new() },
        };
        // Not in the order of the disk, which admission would take for a stream.
        (0..load.blocks).for_each(|n| load.submit(request(Op::Read, n * 48_271 % load.blocks)));
        load.run(2 * load.blocks, Op::Read);
        load
    }

    fn submit(&mut self, command: BlockCommand) {
        self.at = self.at.max(self.in_flight[self.next]);
        let payload = match (command.op, self.bytes.as_mut_slice()) {
            (_, []) => Payload::None,
            (Op::Read, bytes) => Payload::Read(bytes),
            (_, bytes) => Payload::Write(bytes),
        };
        let token =
            Subsystem::submit(&mut self.cache, 0, command.into(), payload, self.at).expect("no error");
        while self.cache.completion(token.done).is_none() {
            let next = self.cache.next_event().expect("something is under way");
            self.cache.advance(next, &mut Vec::new());
        }
        self.in_flight[self.next] = self.cache.completion(token.done).expect("it is known");
        self.next = (self.next + 1) % DEPTH;
    }

    /// As a server runs a batch.
    #[expect(unsafe_code, reason = "what a server does")]
    fn run(&mut self, count: u64, op: Op) {
        // SAFETY: the load stays on this thread.
        let _pages = unsafe { Batch::begin() };
        for _ in 0..count {
            let command = request(op, below(&mut self.rng, self.blocks));
            self.cache.prepare(0, op, command.extent);
            self.known.push_back(command);
            if self.known.len() > AHEAD {
                let command = self.known.pop_front().expect("it is there");
                self.submit(command);
            }
        }
    }
}

fn request(op: Op, block: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(block * BLOCK, BLOCK), Hint::default())
}

fn benches(criterion: &mut Criterion) {
    let start = Instant::now();
    let cases = [
        ("64Ki", 1 << 16, Keep::Nothing),
        ("1Mi", 1 << 20, Keep::Nothing),
        ("64Ki+bytes", 1 << 16, Keep::Bytes),
    ];
    for (name, slots, keep) in cases {
        let mut group = criterion.benchmark_group(format!("cache_hits/{name}"));
        group.sample_size(20).throughput(Throughput::Elements(BATCH));
        for (kind, op) in [("read", Op::Read), ("write", Op::Write)] {
            // Made only where it is asked for.
            let mut made: Option<(Load, Counters)> = None;
            group.bench_function(kind, |b| {
                let (load, _) = made.get_or_insert_with(|| {
                    let mut load = Load::new(slots, keep);
                    load.run(2 * load.blocks, op);
                    let before = load.cache.counters().total();
                    (load, before)
                });
                b.iter_custom(|rounds| {
                    let before = processor_time(start);
                    load.run(rounds * BATCH, op);
                    processor_time(start).saturating_sub(before)
                });
            });
            let Some((load, before)) = made else { continue };
            let done = load.cache.counters().total();
            let (hits, all) = (done.read_hits + done.write_hits, done.reads + done.writes);
            let (hits, all) =
                (hits - before.read_hits - before.write_hits, all - before.reads - before.writes);
            assert!(hits * 1000 >= all * 999, "{hits} hits of {all} requests");
            assert!(
                all == 0 || op == Op::Read || done.metadata_commits > before.metadata_commits,
                "writes are committed"
            );
            load.cache.check_invariants();
        }
        group.finish();
    }
}

criterion_group!(cache_hits, benches);
criterion_main!(cache_hits);
