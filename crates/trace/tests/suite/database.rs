//! The areas of a database: what defines each load, and that its zoned form is legal.

use crate::zoned::Model;
use nandscape_core::{IoRecord, TraceOp};
use nandscape_trace::{OpenOptions, Target, open};
use std::collections::BTreeMap;

const K: u64 = 1024;
const TARGET: Target = Target { capacity_bytes: 1 << 30, ..Target::NONE };

/// Every load, with sizes for an area of 8 MiB.
const LOADS: [&str; 5] = [
    "part=log,bs=16k",
    "part=rollback,bs=16k,segments=3",
    "part=temp,operator=sort,bs=16k,memory=256k,fanin=5",
    "part=temp,operator=hash,bs=16k,partitions=3",
    "part=temp,operator=hash-append,bs=16k,partitions=9",
];

fn load(keys: &str) -> Vec<IoRecord> {
    let text = format!("database:{keys}");
    let reader =
        open(&text, &OpenOptions::default(), TARGET).unwrap_or_else(|error| panic!("{text}: {error}"));
    reader.collect::<Result<_, _>>().unwrap()
}

/// Letter and place in blocks of 4 KiB of each.
fn words(keys: &str) -> String {
    let word = |r: &IoRecord| format!("{}{}", r.op.letter(), r.offset / (4 * K));
    load(keys).iter().map(word).collect::<Vec<_>>().join(" ")
}

fn only(records: &[IoRecord], op: TraceOp) -> impl Iterator<Item = &IoRecord> {
    records.iter().filter(move |record| record.op == op)
}

/// Share of requests that begin where the one before ended.
fn in_order(records: &[&IoRecord]) -> f64 {
    let follow = records.windows(2).filter(|pair| pair[0].offset + pair[0].len == pair[1].offset).count();
    follow as f64 / (records.len() - 1) as f64
}

/// Blocks of a device on which what is freed is discarded: how often each was read since it was written.
/// Refuses writes of what is in use, and reads of what is not.
#[derive(Default)]
struct Blocks {
    reads: BTreeMap<u64, u32>,
}

impl Blocks {
    /// Reads of each block that a discard frees, in the order of their places.
    fn apply(&mut self, record: &IoRecord, bs: u64) -> Vec<u32> {
        let places = (record.offset..record.offset + record.len).step_by(bs as usize);
        match record.op {
            TraceOp::Write => {
                for place in places {
                    assert!(self.reads.insert(place, 0).is_none(), "{record:?}: {place} is in use");
                }
            }
            TraceOp::Read => {
                for place in places {
                    *self.reads.get_mut(&place).unwrap_or_else(|| panic!("{record:?}: {place} is free")) += 1;
                }
            }
            TraceOp::Trim => {
                let free = |place: u64| self.reads.remove(&place);
                return places
                    .map(free)
                    .collect::<Option<_>>()
                    .unwrap_or_else(|| panic!("{record:?}: not all of it is in use"));
            }
            TraceOp::Flush => {}
            _ => panic!("{record:?}: not for a block device"),
        }
        Vec::new()
    }
}

#[test]
fn every_load_is_the_same_each_time_and_stays_in_its_area() {
    for keys in LOADS {
        let keys = format!("{keys},span=8m,offset=1m,count=2500");
        let records = load(&keys);
        assert_eq!(records, load(&keys));
        assert_ne!(records, load(&format!("{keys},seed=7")), "{keys}");
        for record in records.iter().filter(|r| r.op != TraceOp::Flush) {
            let end = record.offset + record.len;
            assert!(record.offset >= 1024 * K && end <= 9 * 1024 * K, "{keys}: {record:?}");
        }
        let steps = if keys.contains("log") { TraceOp::Flush } else { TraceOp::Read };
        let writes = if keys.contains("log") { 0 } else { only(&records, TraceOp::Write).count() };
        assert_eq!(only(&records, steps).count() + writes, 2500, "{keys}");
    }
}

#[test]
fn a_log_is_appended_to_in_a_ring_of_files_and_flushed_after_each_commit() {
    // 256 blocks: three files of 85.
    let (file, mut next, mut commit) = (85 * 4 * K, 0, 0);
    let mut commits = BTreeMap::new();
    for record in load("part=log,span=1m,files=3,members=4,count=3000") {
        match record.op {
            TraceOp::Write => {
                assert_eq!(record.offset, next);
                assert!(record.offset % file + record.len <= file, "{record:?} is in two files");
                next = (record.offset + record.len) % (3 * file);
                commit += record.len;
            }
            TraceOp::Flush => *commits.entry(std::mem::take(&mut commit)).or_insert(0u32) += 1,
            _ => panic!("{record:?}"),
        }
    }
    assert_eq!(commit, 0, "the last commit is not flushed");
    // 6, 12, 18 and 24 KiB in blocks of 4 KiB.
    assert_eq!(commits.keys().copied().collect::<Vec<_>>(), [8 * K, 12 * K, 20 * K, 24 * K]);
    assert!((2300..2500).contains(&commits[&(8 * K)]), "{commits:?}");
    assert!(commits.values().all(|count| *count > 150), "{commits:?}");
}

#[test]
fn a_log_frees_a_file_when_it_writes_it_again() {
    let keys = "commit=4k,group=0,files=2,span=32k,count=10";
    assert_eq!(words(keys), "W0 F0 W1 F0 W2 F0 W3 F0 W4 F0 W5 F0 W6 F0 W7 F0 W0 F0 W1 F0");
    let freed = "W0 F0 W1 F0 W2 F0 W3 F0 W4 F0 W5 F0 W6 F0 W7 F0 D0 W0 F0 W1 F0";
    assert_eq!(words(&format!("{keys},discard=true")), freed);
    // Files of two zones of two blocks.
    let zones = "W0 F0 W1 F0 W4 F0 W5 F0 W8 F0 W9 F0 W12 F0 W13 F0 X0 X4 W0 F0 W1 F0";
    assert_eq!(words(&keys.replace("32k", "64k,zones=16k,capacity=8k")), zones);
    // A commit of three blocks, cut at the ends of files.
    let cut = "W0 F0 W3 F0 W6 W8 F0 W9 F0 W12 F0 W15 D0 W0 F0";
    assert_eq!(words("commit=12k,group=0,files=2,span=64k,discard=true,count=6"), cut);
    let records = load("commit=12k,group=0,files=2,span=64k,discard=true");
    assert_eq!(records.iter().filter(|r| r.op == TraceOp::Trim).map(|r| r.len).sum::<u64>(), 32 * K);
}

#[test]
fn rollback_segments_are_appended_to_in_turn_and_read_only_where_they_are_kept() {
    const SEGMENT: u64 = 1024 * K;
    let keys = "part=rollback,segments=4,span=4m,extent=64k,retain=50%,undo=3,discard=true,count=20k";
    let records = load(keys);
    let mut blocks = Blocks::default();
    let mut next = [0; 4];
    let mut freed = [0; 4];
    let (mut turn, mut run, mut old) = (3, 5, 0);
    for record in &records {
        let (segment, place) = ((record.offset / SEGMENT) as usize, record.offset % SEGMENT);
        match record.op {
            TraceOp::Write => {
                assert_eq!(place, next[segment], "{record:?} is not behind the last write");
                next[segment] = (place + record.len) % SEGMENT;
                if segment == turn {
                    run += 1;
                    assert!(run <= 5, "a transaction has 1 to 5 blocks");
                } else {
                    assert_eq!(segment, (turn + 1) % 4);
                    (turn, run) = (segment, 1);
                }
            }
            TraceOp::Trim => {
                assert_eq!((place, record.len), (freed[segment], 64 * K), "not the oldest extent");
                freed[segment] = (place + record.len) % SEGMENT;
            }
            TraceOp::Read => {
                let age = (next[segment] + SEGMENT - place) % SEGMENT;
                assert!(age <= SEGMENT / 2, "{record:?} was freed");
                old += u32::from(age > SEGMENT / 4);
            }
            _ => panic!("{record:?}"),
        }
        blocks.apply(record, 8 * K);
        assert!(blocks.reads.len() as u64 * 8 * K <= 4 * SEGMENT / 2, "more is kept than half");
    }
    let reads: Vec<&IoRecord> = only(&records, TraceOp::Read).collect();
    assert!((5800..6200).contains(&reads.len()), "{}", reads.len());
    assert!((0.4..0.55).contains(&(f64::from(old) / reads.len() as f64)), "{old} reads of the older half");
    assert!(in_order(&reads) < 0.02);
    assert!(only(&records, TraceOp::Trim).count() > 100);
    assert!(only(&load("part=rollback,span=16m,count=20k"), TraceOp::Trim).next().is_none());
}

#[test]
fn a_sort_reads_every_block_of_a_run_once_in_the_order_of_the_run() {
    // 16 runs of 16 blocks, of which five are merged at a time: 16, 4, 1.
    const BS: u64 = 16 * K;
    const TABLE: u64 = 4096 * K;
    let records = load("part=temp,bs=16k,memory=256k,fanin=5,span=8m");
    let mut blocks = Blocks::default();
    let mut freed = Vec::new();
    let mut cursors = BTreeMap::new();
    let (mut held, mut last_write) = (0, None);
    for (number, record) in records.iter().enumerate() {
        let reads = blocks.apply(record, BS);
        match record.op {
            TraceOp::Write => {
                // Sequential over each level.
                let expected = last_write.filter(|end| end % TABLE > 0);
                assert!(expected.is_none_or(|end| end == record.offset), "{number}: {record:?}");
                last_write = Some(record.offset + record.len);
                held -= i32::from(number >= 256);
            }
            TraceOp::Read => {
                held += 1;
                assert!(held <= 5, "{held} blocks are held");
                // The first level begins every 16 blocks with a run.
                if record.offset < TABLE && freed.len() < 4 {
                    let next = cursors
                        .entry(record.offset / (16 * BS))
                        .or_insert(record.offset / (16 * BS) * 16 * BS);
                    assert_eq!(*next, record.offset, "{number}: a run is not read in its order");
                    *next += BS;
                }
            }
            TraceOp::Trim => freed.push(reads),
            _ => panic!("{record:?}"),
        }
    }
    assert_eq!(cursors.len(), 16);
    assert!(blocks.reads.is_empty(), "the area is not free at the end");
    // Four merges of runs, one of their results; then the result, which the consumer has taken.
    assert_eq!(freed.iter().map(Vec::len).collect::<Vec<_>>(), [80, 80, 80, 16, 256, 256]);
    let (result, merged) = freed.split_last().unwrap();
    assert!(merged.iter().flatten().all(|reads| *reads == 1));
    assert!(result.iter().all(|reads| *reads == 0));
    assert_eq!(only(&records, TraceOp::Write).count(), 3 * 256);
    let reads: Vec<&IoRecord> = only(&records, TraceOp::Read).collect();
    assert!(reads.len() == 2 * 256 && in_order(&reads) < 0.5, "{}", in_order(&reads));
    // One of many runs at a time is hardly ever the same.
    let records = load("part=temp,bs=16k,memory=1m,span=64m");
    let reads: Vec<&IoRecord> = only(&records, TraceOp::Read).collect();
    assert!(in_order(&reads) < 0.1, "{}", in_order(&reads));
}

#[test]
fn a_hash_join_writes_from_partition_to_partition_and_reads_them_one_by_one() {
    const BS: u64 = 16 * K;
    let records = load("part=temp,operator=hash,bs=16k,partitions=16,span=8m");
    let mut blocks = Blocks::default();
    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
    for record in &records {
        let freed = blocks.apply(record, BS);
        assert!(freed.iter().all(|reads| *reads == 1), "{record:?}");
        if record.op == TraceOp::Write {
            let written = next.entry(record.offset / (32 * BS)).or_insert(0);
            assert_eq!(record.offset % (32 * BS), *written, "{record:?}");
            *written += BS;
        } else {
            assert!(next.len() == 16 && next.values().all(|written| *written == 32 * BS));
        }
    }
    assert!(blocks.reads.is_empty());
    let writes: Vec<&IoRecord> = only(&records, TraceOp::Write).collect();
    let reads: Vec<&IoRecord> = only(&records, TraceOp::Read).collect();
    assert!((writes.len(), reads.len()) == (512, 512) && in_order(&writes) < 0.15);
    assert!((in_order(&reads) - 1.0).abs() < 1e-9);
    assert_eq!(only(&records, TraceOp::Trim).map(|r| r.len).collect::<Vec<_>>(), [32 * BS; 16]);
}

#[test]
fn partitions_that_are_appended_as_one_are_the_reverse() {
    const BS: u64 = 16 * K;
    let records = load("part=temp,operator=hash-append,bs=16k,partitions=16,span=8m");
    let mut blocks = Blocks::default();
    let freed: Vec<u32> = records.iter().flat_map(|record| blocks.apply(record, BS)).collect();
    assert_eq!(freed, [1; 512]);
    let writes: Vec<&IoRecord> = only(&records, TraceOp::Write).collect();
    let reads: Vec<&IoRecord> = only(&records, TraceOp::Read).collect();
    assert!((in_order(&writes) - 1.0).abs() < 1e-9);
    assert!(in_order(&reads) < 0.15, "{}", in_order(&reads));
    // Within a partition in the order of writing, so back to the beginning 15 times.
    assert_eq!(reads.windows(2).filter(|pair| pair[1].offset < pair[0].offset).count(), 15);
}

#[test]
fn the_zoned_form_of_every_load_is_legal() {
    // 32 zones of 256 KiB, of which 192 KiB can be written.
    for keys in LOADS {
        for (active, append) in [(3, false), (3, true), (14, false)] {
            let text = format!(
                "{keys},span=8m,offset=1m,zones=256k,capacity=192k,active={active},append={append},count=4000"
            );
            let records = load(&text);
            let mut model = Model::new(256 * K, 192 * K, active);
            for (number, record) in records.iter().enumerate() {
                if record.op == TraceOp::Read {
                    assert!(model.is_written(record), "{text}: {number} {record:?} is not written");
                }
                model.apply(record).unwrap_or_else(|error| panic!("{text}: {number} {record:?}: {error}"));
            }
            assert!(model.resets > 40, "{text}: {} resets", model.resets);
            assert!(only(&records, TraceOp::Finish).next().is_none(), "{text}");
            let write = if append { TraceOp::Append } else { TraceOp::Write };
            assert!(records.iter().all(|r| !r.op.is_write() || r.op == write), "{text}");
        }
    }
}

#[test]
fn one_active_zone_is_enough_for_every_load() {
    for keys in LOADS {
        let keys = keys.replace("segments=3", "segments=1").replace("partitions=3", "partitions=1");
        let text = format!("{keys},span=8m,zones=256k,active=1,count=2000");
        let mut model = Model::new(256 * K, 256 * K, 1);
        for record in load(&text) {
            model.apply(&record).unwrap_or_else(|error| panic!("{text}: {record:?}: {error}"));
        }
    }
    // By default they have as many streams as may be active.
    for keys in ["part=rollback,bs=16k", "part=temp,operator=hash,bs=16k"] {
        let mut model = Model::new(256 * K, 256 * K, 2);
        for record in load(&format!("{keys},span=8m,zones=256k,active=2,count=1000")) {
            model.apply(&record).unwrap();
        }
    }
}

#[test]
fn a_load_ends_after_its_count_its_size_or_one_pass() {
    let bytes = |keys: &str| load(keys).iter().map(|record| record.len).sum::<u64>();
    // The last commit of a pass may go on in the first file.
    assert!((4096 * K..4096 * K + 48 * K).contains(&bytes("part=log,span=4m")));
    assert!((1024 * K..1024 * K + 48 * K).contains(&bytes("part=log,span=4m,size=1m")));
    assert_eq!(bytes("part=rollback,span=16m,reads=0"), 16 << 20);
    assert_eq!(bytes("part=rollback,span=16m,size=1m"), 1 << 20);
    let records = load("part=temp,operator=hash,span=16m,discard=false");
    assert_eq!(records.len(), 512);
    let twice = load("part=temp,operator=hash,span=16m,discard=false,count=1024");
    assert_eq!(twice.len(), 1024);
    let times: Vec<u64> =
        load("gap=5us,span=4m,count=3").iter().map(|record| record.at.as_ns() / 1000).collect();
    assert_eq!(times, [0, 0, 5, 5, 10, 10]);
    for (keys, real) in [("span=4m", false), ("span=4m,gap=1us", true)] {
        let reader = open(&format!("database:{keys}"), &OpenOptions::default(), TARGET).unwrap();
        assert_eq!(reader.info().has_real_times, real);
    }
}

#[test]
fn keys_that_would_do_nothing_or_do_not_fit_are_refused_by_name() {
    for (keys, expected) in [
        ("part=data", "log, rollback, temp"),
        ("undo=3", "undo = '3': expected this key only with part=rollback"),
        ("part=temp,commit=4k", "commit = '4k': expected this key only with part=log"),
        ("part=rollback,operator=hash", "this key only with part=temp"),
        ("part=rollback,partitions=3", "this key only with part=temp,operator=hash or hash-append"),
        ("part=temp,operator=hash,memory=1m", "this key only with part=temp,operator=sort"),
        ("active=3", "this key only with zones"),
        ("zones=1m,discard=true", "this key only without zones"),
        ("part=rollback,zones=1m,extent=1m", "this key only without zones"),
        ("count=5,size=1m", "either count or size"),
        ("count=0", "1 request or more"),
        ("span=1m,zones=2m", "at least one zone, 2097152 B"),
        ("span=8m,offset=4k,zones=1m", "the start of a zone"),
        ("span=8m,files=9,zones=1m", "files = '9': expected room for 1048576 B in each of 9 files"),
        ("span=1m,commit=64k", "room in a file, 262144 B, for the longest commit, 524288 B"),
        (
            "part=rollback,span=4m",
            "span = '4m': expected room for an extent of 1048576 B in each of 8 segments",
        ),
        ("part=rollback,extent=20k", "a multiple of bs, 8192 B"),
        ("part=rollback,reads=1", "less than 100%"),
        ("part=rollback,zones=1m,active=4,segments=5", "at most active, 4"),
        ("part=temp,operator=hash,zones=1m,active=4,partitions=5", "at most active, 4"),
        ("part=temp,operator=hash,span=1m,partitions=17", "room for 65536 B in each of 17 partitions"),
        ("part=temp,operator=hash,span=1m,table=2m", "at most the area, 1048576 B"),
        ("part=temp,operator=hash-append,bs=16,span=1g", "a table of 1 to 16777216 blocks"),
        ("part=temp,memory=128k", "at least 3 blocks, 65536 B each"),
        ("part=temp,memory=1m,fanin=16", "at most 15"),
        ("part=temp,table=600m", "at most half of the area, 536870912 B"),
        ("part=temp,span=16m", "more than one run of 16777216 B"),
        ("part=temp,memory=48,bs=16", "a memory of at least 512 B, for 1048576 runs"),
        ("gap=10000000s,span=1g", "count x gap below 100 years"),
    ] {
        let text = format!("database:{keys}");
        let error = open(&text, &OpenOptions::default(), TARGET).err();
        let message = error.unwrap_or_else(|| panic!("{text} is accepted")).to_string();
        assert!(message.contains(expected), "{keys}: {message}");
    }
}
