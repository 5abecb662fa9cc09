use super::*;

/// Every plain counter gets a value of its own, so that a mixed-up or forgotten field shows.
fn sample(factor: u64) -> Counters {
    let place = |name: &str| CacheCounts::NAMES.iter().position(|other| *other == name).expect("it is there");
    let mut counters = Counters::from(CacheCounts::named(|name| factor * (place(name) as u64 + 1)));
    for why in Bypass::ALL {
        for _ in 0..factor {
            counters.bypass.read(why, 512);
            counters.bypass.write(why, 1024);
        }
    }
    for _ in 0..factor {
        counters.request_sizes.record(4096);
        counters.piece_sizes.record(512);
        counters.latency.record(300_000);
    }
    counters
}

#[test]
fn a_sum_minus_one_part_is_the_other() {
    let (one, three) = (sample(1), sample(3));
    let mut sum = one.clone();
    sum.add(&three);
    assert_eq!(sum, sample(4));
    assert_eq!(sum.since(&one), three);
    assert_eq!(one.since(&sum), Counters::default());
}

#[test]
fn text_form_gives_the_same_counters_back() {
    let counters = CacheCounters { volumes: vec![sample(1), sample(2)], shared: sample(5) };
    let text = serde_json::to_string(&counters).expect("plain data");
    assert_eq!(serde_json::from_str::<CacheCounters>(&text).expect("just written"), counters);
    assert!(text.contains(r#""request_sizes":{"4096":1}"#), "{text}");
    assert!(text.contains(r#""latency":{"250000":1}"#), "{text}");
}

#[test]
fn a_histogram_step_that_does_not_exist_is_refused() {
    for bad in
        [r#"{"piece_sizes":{"513":1}}"#, r#"{"piece_sizes":{"524800":1}}"#, r#"{"latency":{"10250000":1}}"#]
    {
        let error = serde_json::from_str::<Counters>(bad).expect_err(bad).to_string();
        assert!(error.contains("histogram step") && error.contains("expected a multiple"), "{error}");
    }
}

#[test]
fn large_sizes_and_long_times_count_in_the_last_step() {
    let mut counters = Counters::default();
    for bytes in [1 << 19, 3 << 20, u64::MAX] {
        counters.request_sizes.record(bytes);
    }
    assert_eq!(counters.request_sizes.steps().collect::<Vec<_>>(), [(1 << 19, 3)]);
    counters.answered(false, SimTime(5), SimTime(5));
    counters.answered(true, SimTime(0), SimTime(u64::MAX / 2));
    assert_eq!(counters.latency.steps().collect::<Vec<_>>(), [(0, 1), (10_000_000, 1)]);
    assert_eq!((counters.read_ns, counters.write_ns), (0, u64::MAX / 2));
}

#[test]
fn total_is_all_volumes_and_what_is_shared() {
    let counters = CacheCounters { volumes: vec![sample(1), sample(2)], shared: sample(4) };
    assert_eq!(counters.total(), sample(7));
    let later = CacheCounters { volumes: vec![sample(3), sample(3), sample(9)], shared: sample(4) };
    let since = later.since(&counters);
    assert_eq!(since.volumes, vec![sample(2), sample(1), sample(9)]);
    assert_eq!(since.shared, Counters::default());
}

#[test]
fn each_reason_has_a_place_of_its_own() {
    let places: std::collections::BTreeSet<usize> = Bypass::ALL.iter().map(|why| why.index()).collect();
    assert_eq!(places, (0..Bypass::COUNT).collect());
}

#[test]
fn parts_that_do_not_add_up_are_named() {
    let mut counters = Counters::from(CacheCounts {
        reads: 3,
        read_hits: 1,
        read_misses: 1,
        bypassed_read_misses: 1,
        ..CacheCounts::default()
    });
    assert_eq!(counters.check(), Ok(()));
    counters.write_pieces = 2;
    counters.bypass.write(Bypass::Mode, 4096);
    let error = counters.check().expect_err("one piece is missing");
    assert_eq!(error, "write_pieces is 2, its parts add up to 1");
}
