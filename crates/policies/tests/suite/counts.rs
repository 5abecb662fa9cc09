//! Exact counts of hits and misses. Those of the public trace were found with two other programs
//! (libCacheSim, whose ratios agree to all four digits that it prints, and a textbook program of ours in
//! another language). The trace carries no licence for its data, so it is not in the repository:
//! `NANDSCAPE_PUBLIC_TRACES` names a directory that has it, and without it these tests say that they were
//! skipped.

use nandscape_policies::BlockKey;
use nandscape_policies::Map;
use nandscape_policies::eviction::EvictionSpec;
use nandscape_policies::simulate::{
    Accesses, Counts, NextUses, Request, Splitter, StackDistances, simulation,
};
use nandscape_trace::{OpenOptions, Target, Workload};
use std::path::Path;

const POLICIES: [&str; 6] = ["fifo", "lru", "clock", "sieve", "s3-fifo", "arc"];

/// The public trace, or `None` where it is not at hand.
#[expect(clippy::print_stderr, reason = "a skipped check has to be seen")]
fn public() -> Option<Workload> {
    let Some(directory) = std::env::var_os("NANDSCAPE_PUBLIC_TRACES") else {
        eprintln!("skipped: NANDSCAPE_PUBLIC_TRACES is not set");
        return None;
    };
    let path = Path::new(&directory).join("cloudphysics.vscsi1.zst");
    Some(Workload::new(path.to_str().unwrap(), &OpenOptions::default(), Target::NONE).unwrap())
}

fn blocks(workload: &Workload) -> Vec<Request> {
    let splitter = Splitter::new(4096).unwrap();
    let mut blocks = Vec::new();
    for record in workload.open().unwrap() {
        splitter.split(&record.unwrap(), &mut blocks).unwrap();
    }
    blocks
}

fn run(requests: &[Request], policy: &str, slots: u32, map: Map) -> Counts {
    let mut simulation = simulation(&EvictionSpec::parse(policy).unwrap(), slots, map, 1).unwrap();
    simulation.feed(requests);
    simulation.counts()
}

fn belady(requests: &[Request], slots: u32) -> Counts {
    NextUses::of(requests).belady(requests, slots)
}

/// Misses of the policies in order, and of belady unless it is 0.
fn check(requests: &[Request], table: &[(u32, [u64; 7])]) {
    for (slots, expected) in table {
        for (policy, expected) in POLICIES.iter().zip(expected) {
            let counts = run(requests, policy, *slots, Map::Full);
            assert_eq!(counts.accesses.misses(), *expected, "{policy}, {slots} blocks");
            assert_eq!(counts.accesses.requests(), requests.len() as u64);
        }
        if expected[6] > 0 {
            assert_eq!(belady(requests, *slots).accesses.misses(), expected[6], "belady, {slots} blocks");
        }
    }
}

/// A trace of this project's (`tests/oracle/cache_counts.py` made it), whose counts are those of the textbook
/// programs in that file.
#[test]
fn a_mixed_trace_misses_as_often_as_textbook_programs_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mixed.csv.gz");
    let requests = blocks(&Workload::new(path, &OpenOptions::default(), Target::NONE).unwrap());
    assert_eq!(requests.len(), 22_930);
    check(
        &requests,
        &[
            (1, [22_928, 22_928, 22_928, 22_928, 22_928, 22_928, 22_928]),
            (7, [22_885, 22_885, 22_885, 22_892, 22_888, 22_882, 21_927]),
            (50, [22_540, 22_530, 22_525, 22_576, 22_343, 22_342, 19_456]),
            (200, [21_516, 21_481, 21_447, 21_944, 20_748, 20_585, 16_026]),
            (1000, [16_565, 15_893, 16_168, 18_549, 16_079, 15_386, 9782]),
            (3000, [8902, 8552, 8694, 11_095, 9516, 8841, 6737]),
        ],
    );
}

#[test]
fn objects_of_the_public_trace_miss_as_often_as_known() {
    let Some(workload) = public() else { return };
    let starts = workload.open().unwrap().map(|record| {
        let record = record.unwrap();
        Request::new(BlockKey::new(0, record.offset / 512), record.op)
    });
    let starts: Vec<Request> = starts.collect();
    assert_eq!(starts.len(), 113_872);
    check(
        &starts,
        &[
            (100, [101_495, 100_215, 100_047, 98_130, 96_893, 97_330, 94_010]),
            (500, [96_483, 95_398, 95_293, 94_379, 94_551, 94_218, 90_175]),
            (1000, [95_520, 94_823, 94_727, 93_975, 94_017, 94_027, 87_025]),
            (5000, [91_581, 91_527, 91_458, 89_798, 85_382, 87_770, 71_311]),
            (10_000, [79_210, 79_438, 84_750, 81_059, 76_212, 79_413, 61_843]),
            (20_000, [72_229, 72_053, 72_151, 64_431, 70_417, 64_422, 51_843]),
        ],
    );
}

/// The misses of libCacheSim 0.3.5, by its Python package, on the same objects. 2Q is the same program; LIRS
/// parts from it by a few misses in large caches, and the sketch of W-TinyLFU, counted as it does, by its
/// hash and size. The policies that count as published are apart from it, which their sources say.
#[test]
fn other_policies_come_near_the_counts_of_another_program() {
    let Some(workload) = public() else { return };
    let starts = workload.open().unwrap().map(|record| {
        let record = record.unwrap();
        Request::new(BlockKey::new(0, record.offset / 512), record.op)
    });
    let starts: Vec<Request> = starts.collect();
    let sizes = [100, 500, 1000, 5000, 10_000, 20_000];
    for (policy, tolerance, misses) in [
        ("2q", 0.0, [97_458, 94_565, 94_117, 87_879, 78_831, 72_103]),
        ("lirs", 0.0002, [97_875, 94_631, 94_304, 85_289, 74_395, 58_681]),
        ("w-tinylfu:count=main", 0.02, [98_799, 96_247, 94_911, 88_109, 77_281, 59_599]),
    ] {
        for (slots, expected) in sizes.into_iter().zip(misses) {
            let counts = run(&starts, policy, slots, Map::Full);
            let off = counts.accesses.misses().abs_diff(expected) as f64 / starts.len() as f64;
            assert!(
                off <= tolerance,
                "{policy}, {slots} blocks: {}, expected {expected}",
                counts.accesses.misses()
            );
        }
    }
    // A textbook W-TinyLFU that counts exactly, without a sketch, misses 0.7257 and 0.5336 of them.
    for (slots, ratio) in [(10_000, 0.7257), (20_000, 0.5336)] {
        let ours = run(&starts, "w-tinylfu", slots, Map::Full).accesses.miss_ratio();
        assert!((ours - ratio).abs() < 0.002, "{slots} blocks: {ours}");
    }
}

#[test]
fn blocks_of_the_public_trace_are_those_known() {
    let Some(workload) = public() else { return };
    let blocks = blocks(&workload);
    let counts = run(&blocks, "fifo", 1 << 20, Map::Full);
    assert_eq!(counts.accesses.read_hits + counts.accesses.read_misses, 485_700);
    assert_eq!(counts.accesses.write_hits + counts.accesses.write_misses, 656_169);
    assert_eq!(counts.used, 269_210);
    let check = blocks.iter().fold(0xcbf2_9ce4_8422_2325u64, |check, request| {
        (check ^ request.key().block()).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(check, 0x8eec_5622_2b31_6500);
}

#[test]
fn blocks_of_the_public_trace_miss_as_often_as_known() {
    let Some(workload) = public() else { return };
    check(
        &blocks(&workload),
        &[
            (256, [1_042_623, 1_040_289, 1_040_323, 1_057_353, 1_043_954, 1_036_733, 1_019_785]),
            (1024, [1_030_563, 1_028_965, 1_028_863, 1_040_034, 1_028_357, 1_029_175, 1_006_033]),
            (4096, [1_023_311, 1_022_509, 1_022_449, 1_026_265, 1_013_740, 1_018_760, 973_237]),
            (16_384, [1_009_616, 1_009_752, 1_011_027, 978_964, 975_578, 964_573, 850_357]),
            (65_536, [819_697, 857_352, 883_946, 817_365, 786_907, 888_400, 567_314]),
            (131_072, [523_697, 607_167, 580_077, 518_334, 494_631, 624_937, 389_823]),
            (262_144, [269_594, 269_239, 269_243, 269_243, 269_291, 269_243, 0]),
        ],
    );
}

#[test]
fn one_pass_gives_the_lru_counts_of_every_size() {
    let Some(workload) = public() else { return };
    let requests = blocks(&workload);
    let mut distances = StackDistances::new();
    distances.feed(&requests);
    let table = [
        (256, 1_040_289),
        (1024, 1_028_965),
        (4096, 1_022_509),
        (16_384, 1_009_752),
        (65_536, 857_352),
        (131_072, 607_167),
        (262_144, 269_239),
    ];
    let counts = distances.at(&table.map(|(size, _)| size));
    for ((size, misses), counts) in table.into_iter().zip(counts) {
        assert_eq!(counts.accesses.misses(), misses, "{size} blocks");
        assert_eq!(counts, run(&requests, "lru", size as u32, Map::Full), "{size} blocks");
    }
    assert_eq!((distances.blocks(), distances.first_uses()), (269_210, 269_210));
}

#[test]
fn sets_of_the_public_trace_cost_what_is_known() {
    let Some(workload) = public() else { return };
    let blocks = blocks(&workload);
    // Ratios of four digits, and shares of the slots in use.
    for (slots, ratio, used) in [(65_536, 0.7477, 1.0), (131_072, 0.6746, 0.89), (262_144, 0.5755, 0.63)] {
        let counts = run(&blocks, "lru", slots, Map::Linear { ways: 512 });
        assert!(
            (counts.accesses.miss_ratio() - ratio).abs() <= 0.000_05,
            "{slots}: {}",
            counts.accesses.miss_ratio()
        );
        let share = counts.used as f64 / f64::from(slots);
        assert!((share - used).abs() < 0.005, "{slots}: {share} in use");
    }
    // The hash is not the same, so neither are the counts; but they are near each other.
    for (slots, ratio) in [(65_536, 0.7488), (131_072, 0.5464), (262_144, 0.3519)] {
        let counts = run(&blocks, "lru", slots, Map::ClusterHashed { ways: 512, cluster: 64 });
        assert!(
            (counts.accesses.miss_ratio() - ratio).abs() < 0.03,
            "{slots}: {}",
            counts.accesses.miss_ratio()
        );
    }
}

fn generated(spec: &str) -> Vec<Request> {
    blocks(&Workload::new(spec, &OpenOptions::default(), Target::NONE).unwrap())
}

#[test]
fn no_policy_misses_less_often_than_belady() {
    let requests = generated("zipf-cdf:ranks=20k,alpha=0.9,count=200k,read=70%");
    for slots in [10, 300, 4000] {
        let best = belady(&requests, slots).accesses.misses();
        for info in nandscape_policies::eviction::EVICTIONS {
            let misses = run(&requests, info.name, slots, Map::Full).accesses.misses();
            assert!(misses >= best, "{}, {slots} blocks: {misses} < {best}", info.name);
        }
    }
}

#[test]
fn trims_make_room_and_are_not_requests() {
    let key = |block| BlockKey::new(0, block);
    let mut requests: Vec<Request> =
        (0..4).map(|block| Request::new(key(block), nandscape_core::TraceOp::Write)).collect();
    requests.push(Request::new(key(1), nandscape_core::TraceOp::Trim));
    requests.push(Request::new(key(9), nandscape_core::TraceOp::Trim));
    requests.push(Request::new(key(7), nandscape_core::TraceOp::Read));
    requests.push(Request::new(key(0), nandscape_core::TraceOp::Read));
    let expected = Counts {
        accesses: Accesses { read_hits: 1, read_misses: 1, write_hits: 0, write_misses: 4 },
        evictions: 0,
        trimmed: 1,
        used: 4,
    };
    assert_eq!(belady(&requests, 4), expected);
    for info in nandscape_policies::eviction::EVICTIONS {
        assert_eq!(run(&requests, info.name, 4, Map::Full), expected, "{}", info.name);
    }
}

/// No other program has this policy, so these are its own counts, beside those of the policy that it stands
/// for.
#[test]
fn compact_s3_fifo_misses_on_the_mixed_trace_what_it_did_and_about_as_often_as_s3_fifo() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mixed.csv.gz");
    let requests = blocks(&Workload::new(path, &OpenOptions::default(), Target::NONE).unwrap());
    for (slots, expected) in [(50, 22_367), (200, 20_774), (1000, 16_401), (3000, 10_059)] {
        let misses = run(&requests, "s3-fifo-compact", slots, Map::Full).accesses.misses();
        let exact = run(&requests, "s3-fifo", slots, Map::Full).accesses.misses();
        assert!((misses as f64 / exact as f64 - 1.0).abs() < 0.06, "{misses} and {exact}, {slots} blocks");
        assert_eq!(misses, expected, "{slots} blocks");
    }
}

/// No other program has this policy, so these are its own counts.
#[test]
fn mq_misses_on_the_mixed_trace_what_it_did() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mixed.csv.gz");
    let requests = blocks(&Workload::new(path, &OpenOptions::default(), Target::NONE).unwrap());
    for (slots, expected) in [(50, 22_518), (200, 21_117), (1000, 16_447), (3000, 10_462)] {
        let misses = run(&requests, "mq", slots, Map::Full).accesses.misses();
        assert_eq!(misses, expected, "{slots} blocks");
    }
}
