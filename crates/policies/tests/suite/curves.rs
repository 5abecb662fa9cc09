//! Stack distances against simulations of every size, samples against exact counts, and requests that are
//! split.

use nandscape_core::{IoRecord, SimTime, TraceOp};
use nandscape_policies::eviction::EvictionSpec;
use nandscape_policies::simulate::{
    Accesses, Counts, Request, Sampler, Splitter, StackDistances, simulation,
};
use nandscape_policies::{BlockKey, Map};
use nandscape_trace::{OpenOptions, Target, open};
use proptest::prelude::*;

fn run(requests: &[Request], policy: &str, slots: u32) -> Counts {
    let mut simulation = simulation(&EvictionSpec::parse(policy).unwrap(), slots, Map::Full, 1).unwrap();
    simulation.feed(requests);
    simulation.counts()
}

fn request() -> impl Strategy<Value = Request> {
    let op = prop_oneof![4 => Just(TraceOp::Read), 3 => Just(TraceOp::Write), 2 => Just(TraceOp::Trim)];
    (op, 0..3u16, 0..40u64).prop_map(|(op, volume, block)| Request::new(BlockKey::new(volume, block), op))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is read, written and trimmed, and however often times are given anew: every count of every
    /// size is that of a simulation.
    #[test]
    fn distances_are_lru_at_every_size(requests in prop::collection::vec(request(), 0..4000)) {
        let mut distances = StackDistances::new();
        let (first, second) = requests.split_at(requests.len() / 2);
        distances.feed(first);
        distances.feed(second);
        let sizes: Vec<u64> = (1..=130).collect();
        for (size, counts) in sizes.iter().zip(distances.at(&sizes)) {
            prop_assert_eq!(counts, run(&requests, "lru", *size as u32), "{} blocks", size);
        }
        let mut misses = u64::MAX;
        let falls = sizes.iter().zip(distances.at(&sizes)).filter(|(_, counts)| {
            let is_lower = counts.accesses.misses() < misses && counts.accesses.hits() > 0;
            misses = counts.accesses.misses();
            is_lower
        });
        prop_assert_eq!(distances.steps(), falls.map(|(size, _)| *size).collect::<Vec<_>>());
    }
}

fn generated(spec: &str) -> Vec<Request> {
    let splitter = Splitter::new(4096).unwrap();
    let mut requests = Vec::new();
    for record in open(spec, &OpenOptions::default(), Target::NONE).unwrap() {
        splitter.split(&record.unwrap(), &mut requests).unwrap();
    }
    requests
}

/// Every tenth block tells the miss ratio of all, for policies of all kinds, whichever blocks they are;
/// without the correction it is much farther off.
#[test]
fn samples_come_near_the_exact_ratios() {
    let requests = generated("zipf-cdf:ranks=50k,alpha=0.9,count=400k,read=60%");
    let writes = requests.iter().filter(|r| **r == Request::new(r.key(), TraceOp::Write)).count() as u64;
    let all =
        Accesses { read_misses: requests.len() as u64 - writes, write_misses: writes, ..Accesses::default() };
    let (mut errors, mut bare) = (Vec::new(), Vec::new());
    for policy in ["lru", "s3-fifo", "arc"] {
        for slots in [2000, 10_000] {
            let exact = run(&requests, policy, slots).accesses.miss_ratio();
            for seed in 0..8 {
                let sampler = Sampler::new(0.1, seed).unwrap();
                let sample: Vec<Request> = requests.iter().copied().filter(|r| sampler.takes(*r)).collect();
                let counts = run(&sample, policy, sampler.scaled(slots.into()).unwrap());
                let estimate = sampler.corrected(counts.accesses, all);
                assert_eq!(estimate.requests(), requests.len() as u64);
                errors.push((estimate.miss_ratio() - exact).abs());
                bare.push((counts.accesses.miss_ratio() - exact).abs());
            }
        }
    }
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().copied().fold(0.0, f64::max);
    assert!(
        mean(&errors) < 0.015 && worst < 0.05,
        "off by {} on average, by {worst} at worst",
        mean(&errors)
    );
    assert!(
        mean(&bare) > 2.0 * mean(&errors),
        "{} without the correction, {} with it",
        mean(&bare),
        mean(&errors)
    );
}

#[test]
fn a_sample_has_its_share_of_the_blocks_and_all_of_their_requests() {
    let sampler = Sampler::new(0.25, 7).unwrap();
    let taken = |block| sampler.takes(Request::new(BlockKey::new(0, block), TraceOp::Read));
    let share = (0..40_000).filter(|block| taken(*block)).count() as f64 / 40_000.0;
    assert!((share - 0.25).abs() < 0.01, "{share}");
    assert!((0..100).all(|b| taken(b) == sampler.takes(Request::new(BlockKey::new(0, b), TraceOp::Trim))));
    let other = Sampler::new(0.25, 8).unwrap();
    assert!((0..100).any(|b| taken(b) != other.takes(Request::new(BlockKey::new(0, b), TraceOp::Read))));
    let all = Sampler::new(1.0, 7).unwrap();
    assert!((0..1000).all(|b| all.takes(Request::new(BlockKey::new(0, b), TraceOp::Read))));
    for rate in [0.0, -0.1, 1.1, f64::NAN] {
        assert!(Sampler::new(rate, 1).is_err(), "{rate}");
    }
}

fn record(op: TraceOp, offset: u64, len: u64) -> IoRecord {
    IoRecord { at: SimTime::ZERO, offset, len, volume: 0, hint: 0, op }
}

#[test]
fn requests_are_split_where_they_touch_and_trims_where_they_cover() {
    let units = |splitter: Splitter, op, offset, len| -> Vec<u64> {
        splitter.units(&record(op, offset, len)).unwrap().map(|r| r.key().block()).collect()
    };
    let blocks = Splitter::new(4096).unwrap();
    assert_eq!(units(blocks, TraceOp::Read, 4095, 2), [0, 1]);
    assert_eq!(units(blocks, TraceOp::Write, 4096, 4096), [1]);
    assert_eq!(units(blocks, TraceOp::Write, 4096, 0), [0_u64; 0]);
    assert_eq!(units(blocks, TraceOp::Flush, 0, 4096), [0_u64; 0]);
    assert_eq!(units(blocks, TraceOp::Trim, 1, 12_287), [1, 2]);
    assert_eq!(units(blocks, TraceOp::Trim, 1, 4000), [0_u64; 0]);
    let objects = Splitter::objects();
    assert_eq!(units(objects, TraceOp::Read, 4095, 1 << 30), [4095]);
    let message = blocks.units(&record(TraceOp::Read, 1 << 62, 1)).unwrap_err();
    assert!(message.contains("below 2^48"), "{message}");
    assert_eq!(Splitter::new(3000), None);
}
