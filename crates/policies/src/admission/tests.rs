//! Tables of requests with the decision each must get, and properties over all registered policies.

use super::streams::{Owner, Streams};
use super::*;
use nandscape_core::rng::{below, seeded};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const K: u64 = 1024;
const M: u64 = 1024 * K;

fn chain(names: &str, typed: &[(&str, &str)]) -> Chain {
    build(names, typed).unwrap()
}

fn build(names: &str, typed: &[(&str, &str)]) -> Result<Chain, ParamError> {
    let typed: BTreeMap<_, _> = typed.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Chain::build(names, "cache.", &typed, 1000, 7)
}

fn ask(op: Op, offset: u64, len: u64) -> Ask {
    Ask { volume: 0, op, extent: Extent::new(offset, len), hint: Hint(0), at: SimTime::ZERO }
}

/// So many of 1000 slots are in use.
fn room(used: u32) -> Room {
    Room { slots: 1000, used, dirty: 0, makes_dirty: false }
}

fn count(chain: &Chain, name: &str) -> u64 {
    let mut counts = Vec::new();
    chain.counts(&mut counts);
    counts.iter().find(|(n, _)| *n == name).unwrap().1
}

#[test]
fn parameter_names_are_unique_among_policies() {
    let names: Vec<_> = ADMISSIONS.iter().flat_map(|entry| entry.info.params).map(|p| p.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn every_policy_builds_with_its_defaults_and_lets_one_small_request_pass() {
    for entry in ADMISSIONS {
        let mut chain = chain(entry.info.name, &[]);
        assert_eq!(chain.request(&ask(Op::Read, 0, 4 * K)), Ok(()), "{}", entry.info.name);
        assert!(chain.memory_bytes() < 20_000, "{}: {} bytes", entry.info.name, chain.memory_bytes());
    }
}

#[test]
fn errors_name_the_key_the_value_and_what_was_expected() {
    let error = |names, typed: &[_]| build(names, typed).err().unwrap().to_string();
    assert!(error("seq", &[]).contains("unknown admission 'seq'; known: all, sequential"));
    assert!(error("tags,tags", &[]).contains("cache.admission = 'tags,tags': expected every name once"));
    assert!(
        error("tags", &[("hits", "3")]).contains("unknown key 'cache.hits'"),
        "a key of a policy that is not named"
    );
    assert!(
        error("n-hit", &[("hits", "16")]).contains("cache.hits = '16': expected a whole number from 1 to 15")
    );
    for bad in ["x", "3-1", "1,,2", "70000", ""] {
        let error = error("tags", &[("tags_deny", bad)]);
        assert!(error.contains(&format!("cache.tags_deny = '{bad}'")), "{error}");
    }
}

#[test]
fn the_request_that_crosses_the_threshold_bypasses_and_so_does_all_after_it() {
    let mut chain = chain("sequential", &[("sequential_read", "1MiB")]);
    let said: Vec<bool> =
        (0..12).map(|i| chain.request(&ask(Op::Read, i * 100 * K, 100 * K)).is_ok()).collect();
    // 10 requests are 1000 KiB; the eleventh would make it 1100 of 1024.
    assert_eq!(said, [[true; 10].as_slice(), &[false; 2]].concat());
    assert_eq!(count(&chain, "sequential_streams_long"), 1);
}

#[test]
fn a_stream_of_exactly_the_threshold_is_cached_whole() {
    let mut chain = chain("sequential", &[("sequential_write", "1MiB")]);
    assert!((0..16).all(|i| chain.request(&ask(Op::Write, i * 64 * K, 64 * K)).is_ok()));
    assert_eq!(chain.request(&ask(Op::Write, M, 512)), Err(Bypass::Sequential));
}

#[test]
fn reads_and_writes_have_their_own_thresholds_and_streams() {
    let mut chain = chain("sequential", &[("sequential_read", "8KiB"), ("sequential_write", "0")]);
    for i in 0..100 {
        assert_eq!(chain.request(&ask(Op::Write, i * 4 * K, 4 * K)), Ok(()), "no limit");
    }
    assert_eq!(chain.request(&ask(Op::Read, 400 * K, 4 * K)), Ok(()), "does not continue the writes");
    assert_eq!(chain.request(&ask(Op::Read, 404 * K, 4 * K)), Ok(()));
    assert_eq!(chain.request(&ask(Op::Read, 408 * K, 4 * K)), Err(Bypass::Sequential));
}

#[test]
fn interleaved_streams_up_to_the_number_followed_are_told_apart() {
    for (streams, expected) in [("3", 3), ("2", 0)] {
        let mut chain = chain("sequential", &[("sequential_read", "16k"), ("sequential_streams", streams)]);
        for i in 0..8 {
            for stream in 0..3 {
                let _ = chain.request(&ask(Op::Read, stream * M + i * 4 * K, 4 * K));
            }
        }
        assert_eq!(count(&chain, "sequential_streams_long"), expected);
    }
}

#[test]
fn a_pause_longer_than_the_expiry_ends_a_stream() {
    for (pause_s, expected) in [(4, Err(Bypass::Sequential)), (5, Ok(()))] {
        let mut chain = chain("sequential", &[("sequential_read", "8k"), ("sequential_expire", "5s")]);
        assert_eq!(chain.request(&ask(Op::Read, 0, 8 * K)), Ok(()));
        let mut later = ask(Op::Read, 8 * K, 4 * K);
        later.at = SimTime(pause_s * 1_000_000_000);
        assert_eq!(chain.request(&later), expected);
    }
}

#[test]
fn the_head_of_a_long_stream_is_not_inserted_if_that_is_seen_before_its_bytes_come() {
    for (head, expected) in
        [("keep", Ok(())), ("late", Err(Bypass::Sequential)), ("drop", Err(Bypass::Sequential))]
    {
        let mut chain = chain("sequential", &[("sequential_read", "8k"), ("sequential_head", head)]);
        let first = ask(Op::Read, 0, 4 * K);
        assert_eq!(chain.request(&first), Ok(()));
        assert_eq!(chain.confirm(&first), Ok(()), "not long yet");
        assert_eq!(chain.request(&ask(Op::Read, 4 * K, 64 * K)), Err(Bypass::Sequential));
        assert_eq!(chain.confirm(&first), expected, "{head}");
        assert_eq!(chain.confirm(&ask(Op::Read, M, 4 * K)), Ok(()), "another stream");
        let mut dropped = Vec::new();
        chain.retract(&mut dropped);
        let all = [(0, Extent::new(0, 4 * K))];
        assert_eq!(dropped, if head == "drop" { all.as_slice() } else { &[] });
        dropped.clear();
        chain.retract(&mut dropped);
        assert_eq!(dropped, [], "told once");
    }
}

#[test]
fn a_block_is_cached_at_its_third_request_once_the_cache_is_nearly_full() {
    let mut chain = chain("n-hit", &[]);
    let key = BlockKey::new(1, 42);
    assert_eq!(chain.block(key, Op::Read, room(790)), Ok(()));
    let said: Vec<bool> = (0..7).map(|_| chain.block(key, Op::Read, room(800)).is_ok()).collect();
    assert_eq!(said, [false, false, true, false, false, true, false], "counted anew after it was cached");
    assert_eq!(count(&chain, "hits_too_few"), 5);
}

#[test]
fn a_filter_of_fixed_size_forgets_the_block_not_asked_for_longest() {
    let mut chain = chain("n-hit", &[("hits", "2"), ("hits_blocks", "8")]);
    let mut see = |block| chain.block(BlockKey::new(0, block), Op::Read, room(1000)).is_ok();
    assert!((0..8).all(|block| !see(block)));
    assert!(!see(8), "pushes out block 0");
    assert!(!see(0), "pushes out block 1");
    assert!((2..8).all(&mut see));
    assert!(!see(1));
    assert_eq!(chain.memory_bytes(), 32);
}

#[test]
fn tags_are_allowed_and_denied() {
    let pass = |typed: &[(&str, &str)]| {
        let mut chain = chain("tags", typed);
        let passes = |tag: &u16| chain.request(&Ask { hint: Hint(*tag), ..ask(Op::Write, 0, 512) }).is_ok();
        (0..10).filter(passes).collect::<Vec<u16>>()
    };
    assert_eq!(pass(&[]), (0..10).collect::<Vec<_>>());
    assert_eq!(pass(&[("tags_deny", "2, 8-9")]), [0, 1, 3, 4, 5, 6, 7]);
    assert_eq!(pass(&[("tags_allow", "1,4-7")]), [1, 4, 5, 6, 7]);
    assert_eq!(pass(&[("tags_allow", "1,4-7"), ("tags_deny", "5")]), [1, 4, 6, 7]);
}

#[test]
fn bcache_counts_a_stream_in_both_directions_up_to_its_cutoff() {
    let mut chain = chain("bcache", &[("bcache_cutoff", "64k")]);
    let ops = [Op::Read, Op::Write];
    let said: Vec<bool> =
        (0..6).map(|i| chain.request(&ask(ops[i % 2], i as u64 * 16 * K, 16 * K)).is_ok()).collect();
    assert_eq!(said, [true, true, true, false, false, false], "from 64 KiB on, inclusive");
}

#[test]
fn bcache_bypasses_small_requests_of_a_client_that_usually_streams() {
    let mut chain = chain("bcache", &[("bcache_cutoff", "1MiB")]);
    let streamer = |offset, len| Ask { hint: Hint(5), ..ask(Op::Read, offset, len) };
    let mut bypassed_at = None;
    for i in 0..20 {
        let _ = chain.request(&streamer(i * 16 * M, 8 * M));
        let said = chain.request(&streamer(i * 16 * M + 12 * M, 4 * K));
        if said.is_err() {
            bypassed_at.get_or_insert(i);
        }
    }
    // The average gains an eighth of 8 MiB with the first stream, which is 1 MiB already.
    assert_eq!(bypassed_at, Some(0));
    assert_eq!(chain.request(&ask(Op::Read, 900 * M, 4 * K)), Ok(()), "another client");
}

#[test]
fn bcache_sends_long_requests_past_a_slow_ssd_until_time_has_passed() {
    let mut chain = chain("bcache", &[]);
    let at = |ms: u64, len| Ask { at: SimTime(ms * 1_000_000), ..ask(Op::Read, ms * 100 * M, len) };
    assert_eq!(chain.request(&at(0, 2 * M)), Ok(()));
    chain.served(&Served { op: Op::Read, took: SimTime(2_000_000), at: SimTime(1_000_000) });
    assert_eq!(chain.request(&at(2, 2 * M)), Ok(()), "2 ms are not too slow");
    chain.served(&Served { op: Op::Read, took: SimTime(1_000_000_000), at: SimTime(1_000_000_000) });
    assert_eq!(chain.request(&at(1000, 512)), Err(Bypass::Congested), "976 ms of debt leave a sector or so");
    assert_eq!(chain.request(&at(3000, 2 * M)), Ok(()), "forgiven");
}

#[test]
fn every_member_of_a_chain_sees_every_request() {
    let mut chain = chain("tags,sequential", &[("tags_deny", "1"), ("sequential_read", "8k")]);
    let denied = |i: u64| Ask { hint: Hint(1), ..ask(Op::Read, i * 4 * K, 4 * K) };
    assert_eq!(chain.request(&denied(0)), Err(Bypass::Tag));
    assert_eq!(chain.request(&denied(1)), Err(Bypass::Tag));
    assert_eq!(chain.request(&ask(Op::Read, 8 * K, 4 * K)), Err(Bypass::Sequential), "third of one stream");
}

proptest! {
    /// Whatever is asked: what was let in of any stream never exceeds the threshold. The model follows
    /// streams without a limit to their number.
    #[test]
    fn no_stream_gets_more_than_the_threshold(
        requests in prop::collection::vec((0..6u64, 1..5u64, any::<bool>()), 1..200), threshold in 1..12u64,
    ) {
        let text = format!("{threshold}k");
        let mut chain = chain("sequential", &[("sequential_read", &text)]);
        // By end: bytes in all, bytes let in.
        let mut model: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut ends = [0u64; 6];
        for (i, (stream, len, is_restart)) in requests.into_iter().enumerate() {
            let end = &mut ends[stream as usize];
            if is_restart && i % 3 == 0 {
                *end = (i as u64 + 1) * M;
            }
            let (offset, len) = (*end + stream * 1000 * M, len * K);
            *end += len;
            let (bytes, inside) = model.remove(&offset).unwrap_or_default();
            let is_in = chain.request(&ask(Op::Read, offset, len)).is_ok();
            prop_assert_eq!(is_in, bytes + len <= threshold * K);
            let inside = inside + if is_in { len } else { 0 };
            prop_assert!(inside <= threshold * K);
            model.insert(offset + len, (bytes + len, inside));
        }
    }
}

/// Streams of which the oldest comes first, looked through from end to end.
#[derive(Default)]
struct Listed(Vec<(Owner, u64, u64)>);

impl Listed {
    fn note(&mut self, owner: Owner, extent: Extent, limit: usize) -> (u64, bool) {
        let is_it = |stream: &(Owner, u64, u64), end| (stream.0, stream.2) == (owner, end);
        let found = self.0.iter().position(|stream| is_it(stream, extent.offset));
        let start = found.map(|place| self.0.remove(place).1);
        if start.is_none() && self.0.len() == limit {
            self.0.remove(0);
        }
        let other = self.0.iter().position(|stream| is_it(stream, extent.end()));
        let other = other.map_or(u64::MAX, |place| self.0.remove(place).1);
        let merged = start.unwrap_or(extent.offset).min(other);
        self.0.push((owner, merged, extent.end()));
        (merged, start.is_none())
    }
}

#[test]
fn streams_are_found_by_their_ends_as_in_a_plain_list() {
    for limit in [1, 2, 7, 40] {
        let (mut streams, mut listed) = (Streams::new(limit, 0), Listed::default());
        let mut rng = seeded(u64::from(limit));
        for step in 0..20_000 {
            let owner = (below(&mut rng, 2) as u16, below(&mut rng, 2) as u8);
            let extent = Extent::new(below(&mut rng, 60), 1 + below(&mut rng, 3));
            let (start, is_new) = listed.note(owner, extent, limit as usize);
            let (stream, begun) = streams.note(owner, extent, SimTime(step));
            // Of two that end at the same place the longer stands for both.
            assert_eq!((stream.start, stream.next, begun), (start, extent.end(), is_new), "step {step}");
        }
    }
}
