//! What kind of load this is: large, sequential, append-only (the terms of studies of HPC I/O), or not.

use super::contract::{LARGE_BYTES, Overwritten, SMALL_BYTES};
use nandscape_core::{IoRecord, TraceOp};
use serde::Serialize;
use std::collections::BTreeMap;

/// The share of the requests that decides a word of a class.
const MAJORITY: f64 = 0.8;
/// Streams that are told apart; the requests of further ones count in the whole alone.
const STREAMS: usize = 64;
/// Ends of requests that a sequential request may continue, for reads and for writes.
const RECENT: usize = 32;

/// Kinds of load: of everything, and of each stream where there are several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Patterns {
    /// All requests.
    pub whole: Pattern,
    /// By volume and hint, if there is more than one pair; the first 64 that appear.
    pub streams: Vec<Pattern>,
    /// Requests of further pairs.
    pub further: u64,
}

/// The kind of load of some reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pattern {
    /// Volume of the workload; 0 for the whole.
    pub volume: u32,
    /// Stream or lifetime hint; 0 for the whole.
    pub hint: u16,
    /// Reads and writes.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Writes among them.
    pub writes: u64,
    /// Requests of 128 KiB or more.
    pub large: u64,
    /// Requests of 16 KiB or less.
    pub small: u64,
    /// Requests that start where one of the 32 before ended, of the same direction in the same stream.
    pub sequential: u64,
    /// Writes that overwrite no live 4 KiB page of this workload. The page that a sequential write goes on in
    /// is not overwritten.
    pub appends: u64,
    /// Writes that are large, sequential and appends.
    pub large_sequential_appends: u64,
    /// Words joined by dashes, each if it fits 80 % of the requests: `large`, `medium` or `small`;
    /// `sequential` or, if at most 20 % are sequential, `random`; and of loads of 80 % writes `append`,
    /// `overwrite` (at most 20 % appends) or `write`, of 80 % reads `read`, else `read-write`. `mixed` if
    /// neither size nor order is decided.
    pub class: String,
}

impl Pattern {
    fn class(&self) -> String {
        let of = |count: u64, all: u64| count as f64 / all as f64;
        let requests = self.requests;
        let medium = requests - self.large - self.small;
        let sizes = [(self.large, "large"), (medium, "medium"), (self.small, "small")];
        let size =
            sizes.into_iter().find(|(count, _)| of(*count, requests) >= MAJORITY).map(|(_, word)| word);
        let order = match of(self.sequential, requests) {
            share if share >= MAJORITY => Some("sequential"),
            share if share <= 1.0 - MAJORITY => Some("random"),
            _ => None,
        };
        if size.is_none() && order.is_none() {
            return "mixed".to_owned();
        }
        let what = match (of(self.writes, requests), of(self.appends, self.writes)) {
            (writes, appends) if writes >= MAJORITY && appends >= MAJORITY => "append",
            (writes, appends) if writes >= MAJORITY && appends <= 1.0 - MAJORITY => "overwrite",
            (writes, _) if writes >= MAJORITY => "write",
            (writes, _) if writes <= 1.0 - MAJORITY => "read",
            _ => "read-write",
        };
        let words: Vec<&str> = size.into_iter().chain(order).chain([what]).collect();
        words.join("-")
    }
}

#[derive(Default)]
pub(super) struct PatternGather {
    whole: Counts,
    streams: BTreeMap<(u32, u16), Counts>,
    further: u64,
}

#[derive(Default)]
struct Counts {
    pattern: Pattern,
    /// Ends of reads and of writes.
    recent: [Recent; 2],
}

/// Ends of the last requests, in an array so that a look through all of them is quick.
struct Recent {
    ends: [u64; RECENT],
    next: usize,
}

impl Default for Recent {
    fn default() -> Self {
        // No request starts there.
        Self { ends: [u64::MAX; RECENT], next: 0 }
    }
}

impl Recent {
    fn contains(&self, offset: u64) -> bool {
        // Without an early exit, which would cost more than it saves.
        self.ends.iter().filter(|end| **end == offset).count() > 0
    }

    fn push(&mut self, end: u64) {
        self.ends[self.next] = end;
        self.next = (self.next + 1) % RECENT;
    }
}

impl Counts {
    fn add(&mut self, record: &IoRecord, over: Overwritten, is_sequential: Option<bool>) -> bool {
        let IoRecord { offset, len, op, .. } = *record;
        let is_write = op == TraceOp::Write;
        let is_sequential = is_sequential.unwrap_or_else(|| {
            let recent = &mut self.recent[usize::from(is_write)];
            let is_sequential = recent.contains(offset);
            recent.push(offset + len);
            is_sequential
        });
        let goes_on_in_page = is_sequential && over.first && !offset.is_multiple_of(crate::pages::GRANULE);
        let is_append = is_write && over.pages == u64::from(goes_on_in_page);
        let is_large = len >= LARGE_BYTES;
        let pattern = &mut self.pattern;
        pattern.requests += 1;
        pattern.bytes += len;
        pattern.writes += u64::from(is_write);
        pattern.large += u64::from(is_large);
        pattern.small += u64::from(len <= SMALL_BYTES);
        pattern.sequential += u64::from(is_sequential);
        pattern.appends += u64::from(is_append);
        pattern.large_sequential_appends += u64::from(is_large && is_sequential && is_append);
        is_sequential
    }

    fn finish(self) -> Pattern {
        if self.pattern.requests == 0 {
            return self.pattern;
        }
        Pattern { class: self.pattern.class(), ..self.pattern }
    }
}

impl PatternGather {
    /// A read or write with bytes, and the volume that it came from.
    pub(super) fn add(&mut self, record: &IoRecord, volume: u32, over: Overwritten) {
        let key = (volume, record.hint);
        // Streams that are mixed are sequential each by itself, and so is the whole.
        let is_sequential = if self.streams.len() < STREAMS || self.streams.contains_key(&key) {
            let counts = self.streams.entry(key).or_default();
            (counts.pattern.volume, counts.pattern.hint) = key;
            Some(counts.add(record, over, None))
        } else {
            self.further += 1;
            None
        };
        self.whole.add(record, over, is_sequential);
    }

    pub(super) fn finish(self) -> Patterns {
        let streams = if self.streams.len() > 1 {
            self.streams.into_values().map(Counts::finish).collect()
        } else {
            Vec::new()
        };
        Patterns { whole: self.whole.finish(), streams, further: self.further }
    }
}
