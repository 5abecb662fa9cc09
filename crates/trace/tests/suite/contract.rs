//! The unwritten contract and the kinds of load, against loads whose figures are known by hand.

use nandscape_trace::stats::Pattern;
use nandscape_trace::{OpenOptions, StatsOptions, Target, TraceStats, Workload};
use std::fmt::Write as _;

const K: u64 = 1024;
/// Groups and ranges of four 4 KiB pages.
const OPTIONS: StatsOptions = StatsOptions { page_bytes: 4096, block_bytes: 16 * K, points: 100 };

fn of_csv(text: &str) -> TraceStats {
    let workload = Workload::from_bytes("t.csv", text.as_bytes(), &OpenOptions::default(), Target::NONE);
    TraceStats::of(workload.unwrap().open().unwrap(), OPTIONS).unwrap()
}

fn of_generator(text: &str) -> TraceStats {
    let reader = nandscape_trace::open(text, &OpenOptions::default(), Target::NONE).unwrap();
    TraceStats::of(reader, OPTIONS).unwrap()
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
}

#[test]
fn every_figure_of_four_requests() {
    // Pages 0 to 3 and 4 to 7, 0 to 3 again, and the second four discarded.
    let stats = of_csv(
        "ts_us,op,offset,len\n0,W,0,16384\n50,W,16384,16384\n200,W,0,16384\n201,F,0,0\n300,D,16384,16384\n",
    );
    let contract = &stats.contract;
    let scale = &contract.request_scale;
    assert_eq!((scale.requests, scale.large, scale.small), (3, 0, 3));
    // The second comes 50 us after the first, the third 150 us after the second.
    let together = scale.concurrency.as_ref().unwrap();
    assert_eq!((together.count, together.min, together.max), (3, 1, 2));
    assert_eq!(scale.between_flushes.as_ref().unwrap().max, 3);

    let locality = &contract.locality;
    assert_eq!((locality.uses, locality.first_uses), (12, 8));
    assert_eq!((locality.reuse_bytes.min, locality.reuse_bytes.max), (8 * 4096, 8 * 4096));
    assert_eq!(locality.coverage.len(), 1);
    close(locality.coverage[0].hits, 4.0 / 12.0);

    let runs = &contract.aligned_sequentiality;
    assert_eq!((runs.writes, runs.write_bytes, runs.starts_on_block, runs.ends_on_page), (3, 48 * K, 3, 3));
    assert_eq!((runs.run_bytes.count, runs.run_bytes.min, runs.run_bytes.max), (2, 16 * K, 32 * K));
    assert_eq!((runs.runs_on_block, runs.whole_block_bytes), (2, 48 * K));

    // The first group is written when 4 pages are, and dies from 8 pages to 11: 3 of 7. The second dies at
    // once, the third lives.
    let deaths = &contract.death_times;
    assert_eq!((deaths.groups, deaths.with_deaths, deaths.dead), (3, 2, 2));
    close(deaths.spread_mean, 3.0 / 7.0 / 2.0);
    close(deaths.spread_p50, 0.0);
    close(deaths.spread_p90, 0.429);
    close(deaths.live_mean, 1.0);

    let lives = &contract.lifetimes;
    assert_eq!((lives.died, lives.overwritten, lives.alive), (8, 4, 4));
    assert_eq!((lives.lifetime_bytes.min, lives.lifetime_bytes.max), (5 * 4096, 8 * 4096));
    assert_eq!((lives.ranges, lives.ranges_of_80_percent), (2, 1));
    close(lives.gini.unwrap(), 0.5);

    let whole = &stats.patterns.whole;
    assert_eq!((whole.requests, whole.writes, whole.sequential, whole.appends), (3, 3, 1, 2));
    assert_eq!(whole.class, "small-write");
}

#[test]
fn groups_that_die_in_part_are_measured_to_the_end() {
    // One page of the first group dies at 8 pages, the workload ends at 9 pages: (9 - 8) / (9 - 4).
    let stats = of_csv("ts_us,op,offset,len\n0,W,0,16384\n0,W,16384,16384\n0,W,4096,4096\n");
    let deaths = &stats.contract.death_times;
    assert_eq!((deaths.groups, deaths.with_deaths, deaths.dead), (2, 1, 0));
    close(deaths.spread_mean, 1.0 / 5.0);
    close(deaths.live_mean, f64::midpoint(0.75, 1.0));
    close(deaths.live_shares[0], 0.75);
    close(deaths.live_shares[10], 1.0);
}

#[test]
fn grouping_tells_a_log_from_random_overwrites() {
    // A span that is written in order again and again dies group by group; random pages die one by one.
    let log = of_generator("sequential:span=4MiB,bs=16k,size=64MiB").contract;
    let random = of_generator("uniform:span=4MiB,bs=4k,size=64MiB").contract;
    assert!(log.death_times.spread_p90 < 0.01, "{:?}", log.death_times);
    assert!(random.death_times.spread_mean > 0.8, "{:?}", random.death_times);
    // Lifetimes of the log are all the span.
    assert_eq!((log.lifetimes.lifetime_bytes.min, log.lifetimes.lifetime_bytes.max), (4096 * K, 4096 * K));
    close(log.lifetimes.gini.unwrap(), 0.0);
    assert!(random.lifetimes.gini.unwrap() < 0.1);
    let skewed = of_generator("zipf:theta=0.99,span=4MiB,bs=4k,size=64MiB").contract.lifetimes;
    assert!(skewed.gini.unwrap() > 0.5, "{skewed:?}");
    assert!(skewed.ranges_of_80_percent * 2 < skewed.ranges, "{skewed:?}");
    assert_eq!(log.aligned_sequentiality.whole_block_bytes, 64 << 20);
    assert!(random.aligned_sequentiality.whole_block_bytes < 1 << 20);
}

#[test]
fn pages_that_die_and_live_are_those_of_a_plain_set() {
    let mut rng = nandscape_core::rng::seeded(5);
    let mut below = |n| nandscape_core::rng::below(&mut rng, n);
    let (mut text, mut live) = ("ts_us,op,offset,len\n".to_owned(), std::collections::BTreeSet::new());
    let mut died = 0;
    for _ in 0..3000 {
        let (offset, len) = (below(300) * 1000, 1 + below(20_000));
        if below(4) == 0 {
            writeln!(text, "0,D,{offset},{len}").unwrap();
            for page in offset.div_ceil(4096)..(offset + len) / 4096 {
                died += u64::from(live.remove(&page));
            }
        } else {
            writeln!(text, "0,W,{offset},{len}").unwrap();
            for page in offset / 4096..(offset + len).div_ceil(4096) {
                died += u64::from(!live.insert(page));
            }
        }
    }
    let contract = of_csv(&text).contract;
    assert_eq!((contract.lifetimes.died, contract.lifetimes.alive), (died, live.len() as u64));
    let deaths = contract.death_times;
    let in_full_groups = (died + live.len() as u64) / 4 * 4;
    let held = deaths.live_mean * (deaths.groups - deaths.dead) as f64 * 4.0;
    assert!(held.round() as u64 <= live.len() as u64 && deaths.groups * 4 == in_full_groups, "{deaths:?}");
}

#[test]
fn loads_have_the_class_that_their_generator_says() {
    for (load, class) in [
        ("sequential:bs=1m,span=64MiB", "large-sequential-append"),
        ("sequential:bs=1m,span=64MiB,size=1GiB", "large-sequential-overwrite"),
        ("sequential:bs=512,span=64KiB", "small-sequential-append"),
        ("sequential:bs=64k,span=64MiB,read=1", "medium-sequential-read"),
        ("uniform:bs=4k,span=16MiB,count=100k", "small-random-overwrite"),
        ("uniform:bs=4k,span=16MiB,count=10k,read=0.5", "small-random-read-write"),
        ("lammps", "large-overwrite"),
    ] {
        assert_eq!(of_generator(load).patterns.whole.class, class, "{load}");
    }
    // Half of each size and half in order.
    let mut text = "ts_us,op,offset,len\n".to_owned();
    for i in 0..100u64 {
        let (offset, len) =
            if i % 2 == 0 { (i * 2048 * K, 4096) } else { ((i - 1) * 2048 * K + 4096, 256 * K) };
        writeln!(text, "0,W,{offset},{len}").unwrap();
    }
    assert_eq!(of_csv(&text).patterns.whole.class, "mixed");
}

#[test]
fn volumes_and_hints_are_told_apart_and_sequential_each_by_itself() {
    let mut text = "ts_us,op,offset,len,volume,hint\n".to_owned();
    for i in 0..50 {
        writeln!(text, "0,W,{},262144,3,1", i * 256 * K).unwrap();
        writeln!(text, "0,R,{},4096,8,0", (i * 7919 % 50) * 64 * K).unwrap();
        writeln!(text, "0,W,{},4096,8,2", (100 + i % 3) * 64 * K).unwrap();
    }
    let patterns = of_csv(&text).patterns;
    let found: Vec<_> =
        patterns.streams.iter().map(|p| (p.volume, p.hint, p.requests, p.class.as_str())).collect();
    assert_eq!(
        found,
        [
            (3, 1, 50, "large-sequential-append"),
            (8, 0, 50, "small-random-read"),
            (8, 2, 50, "small-random-overwrite")
        ]
    );
    let Pattern { volume, requests, large_sequential_appends, .. } = patterns.whole;
    assert_eq!((volume, requests, large_sequential_appends), (0, 150, 49));
}

#[test]
fn appends_are_writes_at_the_pointer_and_resets_are_deaths() {
    let stats = of_csv(
        "ts_us,op,offset,len\n0,A,0,8192\n1,A,0,8192\n2,A,65536,4096\n3,X,0,0\n4,A,0,16384\n5,N,65536,0\n6,X,0,1\n",
    );
    assert_eq!((stats.mix.appends.requests, stats.mix.appends.bytes), (4, 36_864));
    assert_eq!((stats.mix.zone_ops.requests, stats.mix.zone_ops.bytes), (3, 0));
    assert_eq!((stats.mix.writes.requests, stats.sizes.count), (0, 4));
    assert_eq!((stats.max_end, stats.written_bytes), (65_536 + 4096, 20_480));
    let contract = &stats.contract;
    assert_eq!((contract.lifetimes.died, contract.lifetimes.alive), (9, 0));
    // Resets, not overwrites: no write finds live data.
    assert_eq!((contract.lifetimes.gini, stats.patterns.whole.appends), (None, 4));
    let document = serde_json::to_value(of_csv("ts_us,op,offset,len\n0,W,0,8192\n")).unwrap();
    assert!(document["mix"].get("appends").is_none() && document["mix"].get("zone_ops").is_none());
    assert!(document["contract"]["death_times"].is_object() && document["patterns"]["whole"].is_object());
}
