//! What every registered policy must keep to, whatever it does.

use super::*;
use crate::assign::Assigned;
use crate::assign::testing::{List, io};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockKind, TraceError, TraceOp, TraceReader, WorkloadInfo};
use std::collections::{BTreeMap, BTreeSet};

const CAPACITY: u64 = 1 << 30;

/// A write of one page at 0 of a file that nothing is known about.
pub(super) fn facts(offset: u64) -> WriteFacts<'static> {
    WriteFacts { at: SimTime(0), offset, len: 4096, hint: 0, origin: Origin::default() }
}

const fn setup(streams: u16) -> PolicySetup {
    PolicySetup { streams, id_offset: 0, capacity_bytes: CAPACITY, page_bytes: 4096 }
}

pub(super) fn try_build(
    name: &str,
    typed: &[(&str, &str)],
    streams: u16,
) -> Result<Box<dyn StreamPolicy>, ParamError> {
    let entry = find(name)?;
    let typed: BTreeMap<String, String> =
        typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let params = Params::check(&entry.info, "host.", &typed)?;
    (entry.build)(&params, &setup(streams))
}

pub(super) fn build(name: &str, typed: &[(&str, &str)], streams: u16) -> Box<dyn StreamPolicy> {
    try_build(name, typed, streams).unwrap()
}

/// A reader whose records come from files, writers and the file system.
struct Varied {
    inner: List,
    number: usize,
    paths: Vec<String>,
}

impl Iterator for Varied {
    type Item = Result<IoRecord, TraceError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        self.inner.next()
    }
}

impl TraceReader for Varied {
    fn info(&self) -> WorkloadInfo {
        self.inner.info()
    }
    fn origin(&self) -> Origin<'_> {
        let kind = BlockKind::ALL[if self.number.is_multiple_of(3) { self.number % 8 } else { 0 }];
        let file = if self.number.is_multiple_of(5) { 0 } else { (self.number % 17) as u32 };
        let path = (file > 3).then(|| self.paths[file as usize].as_str());
        Origin { kind, file, path, writer: (self.number % 11) as u32, volume: 0 }
    }
}

fn records(seed: u64, count: u64) -> Vec<IoRecord> {
    let mut rng = seeded(seed);
    let mut at = 0;
    (0..count)
        .map(|_| {
            at += below(&mut rng, 100_000_000);
            let op = [
                TraceOp::Write,
                TraceOp::Write,
                TraceOp::Write,
                TraceOp::Read,
                TraceOp::Trim,
                TraceOp::WriteZeroes,
                TraceOp::Flush,
            ][below(&mut rng, 7) as usize];
            // Unaligned, overlapping, far out and empty ones among them.
            let offset = match below(&mut rng, 20) {
                0 => (1 << 49) - below(&mut rng, 1 << 20),
                1 => below(&mut rng, 1 << 40),
                _ => below(&mut rng, CAPACITY),
            };
            let len = below(&mut rng, 5) * below(&mut rng, 50_000);
            let hint = below(&mut rng, 12) as u16;
            IoRecord { hint, ..io(at, op, offset, len) }
        })
        .collect()
}

fn varied(records: &[IoRecord]) -> Varied {
    let paths = (0..17)
        .map(|i| {
            ["a/x.sst", "b/00012", "c.log", "pg/pg_wal/00000A", "MANIFEST-01"][i % 5].to_owned()
                + &"x".repeat(i / 5)
        })
        .collect();
    Varied { inner: List::new(records.to_vec()), number: 0, paths }
}

fn assigned(
    entry: &PolicyEntry,
    streams: u16,
    records: &[IoRecord],
) -> (Vec<IoRecord>, Vec<crate::assign::StreamCounts>, u64) {
    let mut policy = build(entry.info.name, &[], streams);
    if entry.needs_future {
        for record in records {
            policy.foresee(record);
        }
        policy.foreseen();
    }
    let memory = policy.memory_bytes();
    let mut reader = Assigned::new(varied(records), policy, &setup(streams));
    let out = reader.by_ref().map(Result::unwrap).collect();
    assert!(reader.warnings().iter().all(|warning| !warning.is_empty()));
    (out, reader.counts().to_vec(), memory)
}

#[test]
fn every_policy_keeps_all_requests_in_order_and_its_ids_in_range() {
    let records = records(7, 4000);
    for entry in POLICIES {
        for streams in [0, 1, 2, 3, 4, 5, 8, 15, 64, 65535] {
            let (out, counts, _) = assigned(entry, streams, &records);
            assert_eq!(out.len(), records.len(), "{}", entry.info.name);
            let mut by_id = BTreeMap::<u16, (u64, u64)>::new();
            for (got, was) in out.iter().zip(&records) {
                assert_eq!(IoRecord { hint: was.hint, ..*got }, *was, "{}", entry.info.name);
                assert!(got.hint <= streams, "{}: {}", entry.info.name, got.hint);
                if got.op == TraceOp::Write {
                    let sum = by_id.entry(got.hint).or_default();
                    *sum = (sum.0 + 1, sum.1 + got.len);
                } else {
                    assert_eq!(got.hint, 0);
                }
            }
            for (id, counts) in counts.iter().enumerate() {
                let want = by_id.get(&(id as u16)).copied().unwrap_or_default();
                assert_eq!((counts.writes, counts.bytes), want, "{} stream {id}", entry.info.name);
            }
        }
    }
}

#[test]
fn every_policy_repeats_itself() {
    let records = records(8, 3000);
    for entry in POLICIES {
        assert_eq!(assigned(entry, 8, &records).0, assigned(entry, 8, &records).0, "{}", entry.info.name);
    }
}

#[test]
fn every_policy_but_none_uses_streams_where_the_workload_gives_cause() {
    let records = records(9, 3000);
    for entry in POLICIES {
        let (out, _, _) = assigned(entry, 8, &records);
        let used: BTreeSet<u16> = out.iter().map(|record| record.hint).filter(|hint| *hint > 0).collect();
        // Uniform writes give `death-time` none.
        let is_apart = !["none", "death-time"].contains(&entry.info.name);
        assert_eq!(used.len() > 1, is_apart, "{}: {used:?}", entry.info.name);
    }
}

#[test]
fn memory_is_bounded_by_what_is_touched() {
    // Three thousand requests all over 2^49 bytes: pointers to leaves and one leaf for each place at most.
    let records = records(10, 3000);
    for entry in POLICIES {
        let mut policy = build(entry.info.name, &[], 8);
        let mut most = 0;
        for record in &records {
            if entry.needs_future {
                policy.foresee(record);
            }
            if record.op == TraceOp::Write {
                policy.assign(&WriteFacts { offset: record.offset, len: record.len, ..facts(0) });
            }
            most = most.max(policy.memory_bytes());
        }
        assert!(most < 400 << 20, "{}: {most}", entry.info.name);
    }
}

#[test]
fn names_differ_defaults_are_valid_and_every_entry_says_what_it_is() {
    let names: BTreeSet<_> = POLICIES.iter().map(|entry| entry.info.name).collect();
    assert_eq!(names.len(), POLICIES.len());
    for entry in POLICIES {
        let _ = build(entry.info.name, &[], 8);
        assert!(!entry.info.summary.is_empty() && !entry.info.source.is_empty(), "{}", entry.info.name);
    }
    let error = find("autostream").err().unwrap().to_string();
    assert!(error.contains("autostream-mq") && error.contains("oracle"), "{error}");
}

#[test]
fn logarithms_are_exact_at_powers() {
    for (count, base, log) in [
        (0, 2, 0),
        (1, 2, 0),
        (2, 2, 1),
        (3, 2, 1),
        (4, 2, 2),
        (9, 10, 0),
        (10, 10, 1),
        (1000, 10, 3),
        (u64::MAX, 2, 63),
    ] {
        assert_eq!(log_floor(count, base), log, "log_{base}({count})");
    }
}
