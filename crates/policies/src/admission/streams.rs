//! Sequential streams: which request goes on where another ended.

use crate::hash::mix;
use hashbrown::hash_table::{Entry, HashTable};
use nandscape_core::{Extent, SimTime};

const NONE: u32 = u32::MAX;

/// Who a stream belongs to: a volume, and reads or writes where these are told apart.
pub type Owner = (u16, u8);

/// A run of requests, each beginning where the one before ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    by_next: Ends,
    limit: u32,
    expire: Option<u64>,
    oldest: u32,
    newest: u32,
    /// Streams begun.
    pub begun: u64,
    /// Streams forgotten in order to make room.
    pub forgotten: u64,
}

/// Streams by owner and end.
#[derive(Debug, Default)]
struct Ends(HashTable<u32>);

impl Stream {
    #[inline]
    const fn hash(owner: Owner, next: u64) -> u64 {
        mix(next ^ (owner.0 as u64) << 48 ^ (owner.1 as u64) << 40)
    }

    #[inline]
    fn is_at(&self, owner: Owner, next: u64) -> bool {
        self.next == next && self.owner == owner
    }
}

impl Ends {
    /// Puts in a stream, and gives the one that was found there before and is no longer.
    fn insert(&mut self, index: u32, entries: &[Stream]) -> Option<u32> {
        let stream = |index: u32| &entries[index as usize];
        let hash = |index: &u32| Stream::hash(stream(*index).owner, stream(*index).next);
        let Stream { owner, next, .. } = *stream(index);
        match self.0.entry(hash(&index), |other| stream(*other).is_at(owner, next), hash) {
            Entry::Occupied(mut there) => Some(std::mem::replace(there.get_mut(), index)),
            Entry::Vacant(place) => {
                place.insert(index);
                None
            }
        }
    }

    /// Takes out the stream with this end, if it is the `wanted` one or any is.
    #[inline]
    fn remove(&mut self, owner: Owner, next: u64, wanted: Option<u32>, entries: &[Stream]) -> Option<u32> {
        let is_it = |index: &u32| entries[*index as usize].is_at(owner, next);
        let found = self.0.find_entry(Stream::hash(owner, next), is_it).ok()?;
        wanted.is_none_or(|wanted| wanted == *found.get()).then(|| found.remove().0)
    }
}

impl Streams {
    /// A table of at most `limit` streams, each over once nothing came for `expire_ns`; 0 means that time
    /// alone ends none.
    pub fn new(limit: u32, expire_ns: u64) -> Self {
        Self {
            entries: Vec::new(),
            by_next: Ends::default(),
            limit: limit.max(1),
            expire: (expire_ns > 0).then_some(expire_ns),
            oldest: NONE,
            newest: NONE,
            begun: 0,
            forgotten: 0,
        }
    }

    /// Puts a request that is not empty where it belongs: at the end of a stream, or at the beginning of a
    /// new one (`true`). Gives the stream with the request in it.
    pub fn note(&mut self, owner: Owner, extent: Extent, at: SimTime) -> (&mut Stream, bool) {
        let found = self.by_next.remove(owner, extent.offset, None, &self.entries);
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
        if let Some(other) = self.by_next.insert(index, &self.entries) {
            self.merge(index, other);
        }
        (&mut self.entries[index as usize], is_new)
    }

    /// The stream that goes over all of `extent`, if one is known that was ruled long.
    pub fn long_over(&self, owner: Owner, extent: Extent) -> Option<&Stream> {
        let is_over = |stream: &&Stream| {
            stream.is_long
                && stream.owner == owner
                && stream.start <= extent.offset
                && stream.next >= extent.end()
        };
        self.entries.iter().find(is_over)
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Stream>() + self.by_next.0.allocation_size()) as u64
    }

    /// Two streams that end at the same place are one from here on: the longer stands for both, and the
    /// other's entry is the next to be used anew.
    fn merge(&mut self, kept: u32, other: u32) {
        let gone = self.entries[other as usize];
        self.entries[other as usize].is_long = false;
        let stream = &mut self.entries[kept as usize];
        if gone.start < stream.start {
            stream.start = gone.start;
            stream.is_long |= gone.is_long;
        }
        self.unlink(other);
        self.link_oldest(other);
    }

    fn take_entry(&mut self) -> u32 {
        if self.entries.len() < self.limit as usize {
            let index = self.entries.len() as u32;
            self.entries.push(Stream { older: NONE, newer: NONE, ..Stream::default() });
            self.link_newest(index);
            return index;
        }
        let index = self.oldest;
        let stream = self.entries[index as usize];
        // A merged entry is no longer found by its end.
        if self.by_next.remove(stream.owner, stream.next, Some(index), &self.entries).is_some() {
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
