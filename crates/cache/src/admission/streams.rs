//! Sequential streams: which request goes on where another ended.

use nandscape_core::{Extent, SimTime};
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// Who a stream belongs to: a volume, and reads or writes where these are told apart.
pub type Owner = (u16, u8);

/// A run of requests, each beginning where the one before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Whose it is.
    pub owner: Owner,
    /// First byte of its first request.
    pub start: u64,
    /// Where the next request of it would begin.
    pub next: u64,
    /// When its last request came.
    pub at: SimTime,
    /// Whether it has been ruled too long: for whoever uses the table to set.
    pub is_long: bool,
    older: u32,
    newer: u32,
}

impl Stream {
    /// Bytes of all its requests.
    pub const fn bytes(&self) -> u64 {
        self.next - self.start
    }
}

/// The streams seen last, of all owners; the one unused longest makes room for a new one.
#[derive(Debug)]
pub struct Streams {
    entries: Vec<Stream>,
    by_next: BTreeMap<(Owner, u64), u32>,
    limit: u32,
    expire: Option<u64>,
    oldest: u32,
    newest: u32,
    /// Streams begun.
    pub begun: u64,
    /// Streams forgotten in order to make room.
    pub forgotten: u64,
}

impl Streams {
    /// A table of at most `limit` streams, each over once nothing came for `expire_ns`; 0 means that time alone ends none.
    pub fn new(limit: u32, expire_ns: u64) -> Self {
        Self {
            entries: Vec::new(),
            by_next: BTreeMap::new(),
            limit: limit.max(1),
            expire: (expire_ns > 0).then_some(expire_ns),
            oldest: NONE,
            newest: NONE,
            begun: 0,
            forgotten: 0,
        }
    }

    /// Puts a request that is not empty where it belongs: at the end of a stream, or at the beginning of a new one (`true`). Gives the stream with the request in it.
    pub fn note(&mut self, owner: Owner, extent: Extent, at: SimTime) -> (&mut Stream, bool) {
        let found = self.by_next.remove(&(owner, extent.offset));
        let is_alive = |stream: &Stream| self.expire.is_none_or(|ns| at.since(stream.at).0 < ns);
        let (index, is_new) = match found {
            Some(index) if is_alive(&self.entries[index as usize]) => (index, false),
            Some(index) => (index, true),
            None => (self.take_entry(), true),
        };
        if is_new {
            self.begun += 1;
            let stream = &mut self.entries[index as usize];
            (stream.owner, stream.start, stream.is_long) = (owner, extent.offset, false);
        }
        self.entries[index as usize].next = extent.end();
        self.entries[index as usize].at = at;
        self.unlink(index);
        self.link_newest(index);
        if let Some(other) = self.by_next.insert((owner, extent.end()), index) {
            self.merge(index, other);
        }
        (&mut self.entries[index as usize], is_new)
    }

    /// The stream that goes over all of `extent`, if one is known that was ruled long.
    pub fn long_over(&self, owner: Owner, extent: Extent) -> Option<&Stream> {
        self.by_next
            .range((owner, extent.end())..=(owner, u64::MAX))
            .map(|(_, index)| &self.entries[*index as usize])
            .find(|stream| stream.is_long && stream.start <= extent.offset)
    }

    /// Memory held, in bytes; for the tree an estimate from above.
    pub fn memory_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Stream>() + self.by_next.len() * 48) as u64
    }

    /// Two streams that end at the same place are one from here on: the longer stands for both, and the other's entry is the next to be used anew.
    fn merge(&mut self, kept: u32, other: u32) {
        let gone = self.entries[other as usize];
        let stream = &mut self.entries[kept as usize];
        if gone.start < stream.start {
            stream.start = gone.start;
            stream.is_long |= gone.is_long;
        }
        self.unlink(other);
        self.link_oldest(other);
    }

    /// An entry that no stream is found by.
    fn take_entry(&mut self) -> u32 {
        if self.entries.len() < self.limit as usize {
            let index = self.entries.len() as u32;
            self.entries.push(Stream {
                owner: (0, 0),
                start: 0,
                next: 0,
                at: SimTime::ZERO,
                is_long: false,
                older: NONE,
                newer: NONE,
            });
            self.link_newest(index);
            return index;
        }
        let index = self.oldest;
        let stream = self.entries[index as usize];
        // A merged entry is no longer found by its end.
        if self.by_next.get(&(stream.owner, stream.next)) == Some(&index) {
            self.by_next.remove(&(stream.owner, stream.next));
            self.forgotten += 1;
        }
        index
    }

    fn unlink(&mut self, index: u32) {
        let Stream { older, newer, .. } = self.entries[index as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, index: u32) {
        let last = std::mem::replace(&mut self.newest, index);
        (self.entries[index as usize].older, self.entries[index as usize].newer) = (last, NONE);
        match last {
            NONE => self.oldest = index,
            _ => self.entries[last as usize].newer = index,
        }
    }

    fn link_oldest(&mut self, index: u32) {
        let first = std::mem::replace(&mut self.oldest, index);
        (self.entries[index as usize].older, self.entries[index as usize].newer) = (NONE, first);
        match first {
            NONE => self.newest = index,
            _ => self.entries[first as usize].older = index,
        }
    }
}
