//! Simulated caches on the sequence that caches are compared on (`zipf-cdf`, a million ranks, alpha 1, seed
//! 42), its first two million requests: six policies at three sizes, and LRU at every size in one pass. An
//! element is one request; reading and splitting are not in it.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nandscape_policies::Map;
use nandscape_policies::eviction::EvictionSpec;
use nandscape_policies::simulate::{Request, Splitter, StackDistances, simulation};
use nandscape_trace::{OpenOptions, Target, open};
use std::hint::black_box;

const REQUESTS: u64 = 2_000_000;
const POLICIES: [&str; 6] = ["fifo", "lru", "clock", "sieve", "s3-fifo", "arc"];

fn requests() -> Vec<Request> {
    let spec = format!("zipf-cdf:ranks=1000000,alpha=1,seed=42,count={REQUESTS}");
    let splitter = Splitter::new(4096).expect("a power of two");
    let mut requests = Vec::with_capacity(REQUESTS as usize);
    for record in open(&spec, &OpenOptions::default(), Target::NONE).expect("the generator is there") {
        splitter.split(&record.expect("it does not fail"), &mut requests).expect("small numbers");
    }
    requests
}

fn benches(criterion: &mut Criterion) {
    let requests = requests();
    for slots in [1000, 10_000, 100_000] {
        let mut group = criterion.benchmark_group(format!("cache_simulation/{slots}"));
        group.sample_size(10).throughput(Throughput::Elements(REQUESTS));
        for policy in POLICIES {
            let spec = EvictionSpec::parse(policy).expect("it is there");
            group.bench_function(policy, |b| {
                b.iter_batched_ref(
                    || simulation(&spec, slots, Map::Full, 1).expect("the size is fine"),
                    |cache| {
                        cache.feed(&requests);
                        black_box(cache.counts().accesses.misses())
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    let mut group = criterion.benchmark_group("cache_simulation/every size");
    group.sample_size(10).throughput(Throughput::Elements(REQUESTS));
    group.bench_function("lru", |b| {
        b.iter_batched_ref(
            StackDistances::new,
            |distances| {
                distances.feed(&requests);
                black_box(distances.size_max())
            },
            BatchSize::PerIteration,
        );
    });
}

criterion_group!(cache_simulation, benches);
criterion_main!(cache_simulation);
