//! What kind of load this is: large, sequential, append-only (the terms of studies of HPC I/O), or not.

use super::contract::{LARGE_BYTES, Overwritten, SMALL_BYTES};
use nandscape_core::{IoRecord, TraceOp};
use serde::Serialize;
use std::collections::BTreeMap;

/// The share of the requests that decides a word of a class.
const MAJORITY: f64 = 0.8;
/// Streams that are told apart; the requests of further ones count in the whole alone.
const STREAMS: usize = 16_384;
/// Streams that are listed.
const LISTED: usize = 64;
/// Ends of requests that a sequential request may continue, for reads and for writes.
const RECENT: usize = 32;

/// Kinds of load: of everything, and of each stream where there are several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Patterns {
    /// All requests.
    pub whole: Pattern,
    /// By volume and hint, if there is more than one pair; the 64 with the most bytes.
    pub streams: Vec<Pattern>,
    /// Pairs that are not listed.
    pub unlisted: u64,
    /// Requests of pairs beyond the first 16,384, which count in the whole alone.
    pub further: u64,
    /// Pairs that are written.
    pub written: Streams,
    /// Of these the append-only ones: 80 % of their writes start at or behind the end of all that was written
    /// to them before.
    pub append_only: Streams,
}

/// Volumes (or files) by hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Streams {
    /// How many.
    pub count: u64,
    /// Bytes written to them.
    pub write_bytes: u64,
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
    /// Bytes of the writes.
    pub write_bytes: u64,
    /// Requests of 128 KiB or more.
    pub large: u64,
    /// Their bytes.
    pub large_bytes: u64,
    /// Requests of 16 KiB or less.
    pub small: u64,
    /// Requests that start where one of the 32 before ended, of the same direction in the same stream.
    pub sequential: u64,
    /// Their bytes.
    pub sequential_bytes: u64,
    /// Writes that overwrite no live 4 KiB page of this workload. The page that a sequential write goes on in
    /// is not overwritten.
    pub appends: u64,
    /// Writes that start at or behind the end of all that was written before to the same stream.
    pub growing: u64,
    /// Writes that are large, sequential and appends.
    pub large_sequential_appends: u64,
    /// Words joined by dashes, each if it fits 80 % of the requests: `large`, `medium` or `small`;
    /// `sequential` or, if at most 20 % are sequential, `random`; and of loads of 80 % writes `append`,
    /// `overwrite` (at most 20 % appends) or `write`, of 80 % reads `read`, else `read-write`. `mixed` if
    /// neither size nor order is decided.
    pub class: String,
}

impl Pattern {
    /// Whether it is written, and nearly only at its end.
    fn is_append_only(&self) -> bool {
        self.writes > 0 && self.growing as f64 >= MAJORITY * self.writes as f64
    }

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
    /// Largest end of a write.
    end: u64,
}

/// How a request goes on in its stream.
#[derive(Clone, Copy)]
struct Goes {
    is_sequential: bool,
    is_growing: bool,
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
    /// Counts a request; `goes` as its stream found it, where that is known.
    fn add(&mut self, record: &IoRecord, over: Overwritten, goes: Option<Goes>) -> Goes {
        let IoRecord { offset, len, op, .. } = *record;
        let is_write = op == TraceOp::Write;
        let goes = goes.unwrap_or_else(|| {
            let recent = &mut self.recent[usize::from(is_write)];
            let is_sequential = recent.contains(offset);
            recent.push(offset + len);
            let is_growing = is_write && offset >= self.end;
            if is_write {
                self.end = self.end.max(offset + len);
            }
            Goes { is_sequential, is_growing }
        });
        let Goes { is_sequential, is_growing } = goes;
        let goes_on_in_page = is_sequential && over.first && !offset.is_multiple_of(crate::pages::GRANULE);
        let is_append = is_write && over.pages == u64::from(goes_on_in_page);
        let is_large = len >= LARGE_BYTES;
        let if_so = |is: bool| if is { len } else { 0 };
        let pattern = &mut self.pattern;
        pattern.requests += 1;
        pattern.bytes += len;
        pattern.writes += u64::from(is_write);
        pattern.write_bytes += if_so(is_write);
        pattern.large += u64::from(is_large);
        pattern.large_bytes += if_so(is_large);
        pattern.small += u64::from(len <= SMALL_BYTES);
        pattern.sequential += u64::from(is_sequential);
        pattern.sequential_bytes += if_so(is_sequential);
        pattern.appends += u64::from(is_append);
        pattern.growing += u64::from(is_growing);
        pattern.large_sequential_appends += u64::from(is_large && is_sequential && is_append);
        goes
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
        let goes = if self.streams.len() < STREAMS || self.streams.contains_key(&key) {
            let counts = self.streams.entry(key).or_default();
            (counts.pattern.volume, counts.pattern.hint) = key;
            Some(counts.add(record, over, None))
        } else {
            self.further += 1;
            None
        };
        self.whole.add(record, over, goes);
    }

    pub(super) fn finish(self) -> Patterns {
        let mut patterns =
            Patterns { whole: self.whole.finish(), further: self.further, ..Patterns::default() };
        let mut streams: Vec<Pattern> = self.streams.into_values().map(Counts::finish).collect();
        for stream in streams.iter().filter(|stream| stream.writes > 0) {
            patterns.written.add(stream);
            if stream.is_append_only() {
                patterns.append_only.add(stream);
            }
        }
        if streams.len() > 1 {
            streams.sort_by_key(|stream| std::cmp::Reverse(stream.bytes));
            patterns.unlisted = streams.len().saturating_sub(LISTED) as u64;
            streams.truncate(LISTED);
            streams.sort_by_key(|stream| (stream.volume, stream.hint));
            patterns.streams = streams;
        }
        patterns
    }
}

impl Streams {
    fn add(&mut self, stream: &Pattern) {
        self.count += 1;
        self.write_bytes += stream.write_bytes;
    }
}
