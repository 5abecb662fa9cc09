//! What a cache counts: enough to derive every field that the published designs report.
//!
//! Three levels of counting must not be mixed up:
//! * a *request* is what the host sent;
//! * a *piece* is the part of a request that lies in one cache block. The device-mapper designs (dm-cache,
//!   `FlashCache`, `RapidCache`) have requests split so before they see them, so what they call reads and
//!   writes are pieces;
//! * a *command* is what went to a store.
//!
//! Identities that hold at any time, and that [`Counters::check`] tests:
//! * `reads = read_hits + read_partial_hits + read_misses + bypassed_read_hits + bypassed_read_misses`, and
//!   the same of writes;
//! * `read_pieces = read_piece_hits + read_piece_partial_hits + read_piece_misses + bypass.read_pieces` over
//!   all reasons, and the same of writes without partial hits: a write to a cached block is a hit whatever
//!   part of it was valid.

mod histogram;

pub use histogram::{LatencyHistogram, SizeHistogram};

use nandscape_core::{CacheCounts, SimTime};
use nandscape_policies::admission::Bypass;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// Pieces and bytes that went past the cache, by reason. Indexed by [`Bypass::index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bypassed {
    /// Pieces of reads.
    pub read_pieces: [u64; Bypass::COUNT],
    /// Pieces of writes.
    pub write_pieces: [u64; Bypass::COUNT],
    /// Bytes of both.
    pub bytes: [u64; Bypass::COUNT],
}

impl Bypassed {
    /// Counts a piece of `bytes` bytes of a read.
    #[inline]
    pub const fn read(&mut self, why: Bypass, bytes: u64) {
        self.read_pieces[why.index()] += 1;
        self.bytes[why.index()] += bytes;
    }

    /// Counts a piece of `bytes` bytes of a write.
    #[inline]
    pub const fn write(&mut self, why: Bypass, bytes: u64) {
        self.write_pieces[why.index()] += 1;
        self.bytes[why.index()] += bytes;
    }

    /// Pieces of reads, for whatever reason.
    pub fn total_reads(&self) -> u64 {
        self.read_pieces.iter().sum()
    }

    /// Pieces of writes, for whatever reason.
    pub fn total_writes(&self) -> u64 {
        self.write_pieces.iter().sum()
    }

    /// Bytes, for whatever reason.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    fn each(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        let mine = [&mut self.read_pieces, &mut self.write_pieces, &mut self.bytes];
        let theirs = [&other.read_pieces, &other.write_pieces, &other.bytes];
        for (mine, theirs) in mine.into_iter().flatten().zip(theirs.into_iter().flatten()) {
            *mine = change(*mine, *theirs);
        }
    }
}

/// What was counted of one volume, or of the whole cache: the plain counts, which are its own fields as it
/// were, and what is finer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// The plain counts.
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// What went past the cache, by reason.
    pub bypass: Bypassed,
    /// Sizes of requests, as the host sent them.
    pub request_sizes: SizeHistogram,
    /// Sizes of pieces.
    pub piece_sizes: SizeHistogram,
    /// Time from arrival to answer, reads and writes.
    pub latency: LatencyHistogram,
}

impl From<CacheCounts> for Counters {
    fn from(counts: CacheCounts) -> Self {
        Self { counts, ..Self::default() }
    }
}

impl Deref for Counters {
    type Target = CacheCounts;

    #[inline]
    fn deref(&self) -> &CacheCounts {
        &self.counts
    }
}

impl DerefMut for Counters {
    #[inline]
    fn deref_mut(&mut self) -> &mut CacheCounts {
        &mut self.counts
    }
}

impl Counters {
    fn each(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        self.counts.each(&other.counts, change);
        self.bypass.each(&other.bypass, change);
        self.request_sizes.each(&other.request_sizes, change);
        self.piece_sizes.each(&other.piece_sizes, change);
        self.latency.each(&other.latency, change);
    }

    /// Adds another's counts: volumes to a total.
    pub fn add(&mut self, other: &Self) {
        self.each(other, |mine, theirs| mine + theirs);
    }

    /// What was counted since `before`, an earlier copy of the same counters; 0 where `before` is ahead.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut result = self.clone();
        result.each(before, u64::saturating_sub);
        result
    }

    /// Counts an answer: the time of a read or write that arrived at `arrival` and was answered at `answer`.
    #[inline]
    pub fn answered(&mut self, is_write: bool, arrival: SimTime, answer: SimTime) {
        let ns = answer.0.saturating_sub(arrival.0);
        if is_write {
            self.write_ns += ns;
        } else {
            self.read_ns += ns;
        }
        self.latency.record(ns);
    }

    /// Blocks that left to make room.
    pub fn replacements(&self) -> u64 {
        self.read_replacements + self.write_replacements
    }

    /// Pieces that were hits: reads and writes.
    pub fn piece_hits(&self) -> u64 {
        self.read_piece_hits + self.write_piece_hits
    }

    /// The identities of the module's header; the error names the one that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let sums = [
            (
                "reads",
                self.reads,
                self.read_hits
                    + self.read_partial_hits
                    + self.read_misses
                    + self.bypassed_read_hits
                    + self.bypassed_read_misses,
            ),
            (
                "writes",
                self.writes,
                self.write_hits
                    + self.write_partial_hits
                    + self.write_misses
                    + self.bypassed_write_hits
                    + self.bypassed_write_misses,
            ),
            (
                "read_pieces",
                self.read_pieces,
                self.read_piece_hits
                    + self.read_piece_partial_hits
                    + self.read_piece_misses
                    + self.bypass.total_reads(),
            ),
            (
                "write_pieces",
                self.write_pieces,
                self.write_piece_hits + self.write_piece_misses + self.bypass.total_writes(),
            ),
        ];
        match sums.iter().find(|(_, whole, parts)| whole != parts) {
            Some((name, whole, parts)) => Err(format!("{name} is {whole}, its parts add up to {parts}")),
            None => Ok(()),
        }
    }
}

/// The counters of a cache: one for each volume, and one for what belongs to none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheCounters {
    /// By volume.
    pub volumes: Vec<Counters>,
    /// What belongs to no single volume: metadata, flushes of the fast store.
    pub shared: Counters,
}

impl CacheCounters {
    /// All zero, for `volumes` volumes.
    pub fn new(volumes: usize) -> Self {
        Self { volumes: vec![Counters::default(); volumes], shared: Counters::default() }
    }

    /// The whole cache.
    pub fn total(&self) -> Counters {
        let mut total = self.shared.clone();
        for volume in &self.volumes {
            total.add(volume);
        }
        total
    }

    /// What was counted since `before`, an earlier copy. A volume attached since then counts from its start.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let none = Counters::default();
        let volumes = self.volumes.iter().enumerate();
        let volumes = volumes.map(|(i, now)| now.since(before.volumes.get(i).unwrap_or(&none))).collect();
        Self { volumes, shared: self.shared.since(&before.shared) }
    }
}

/// How a cache stands now: what is not counted but is so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gauges {
    /// Slots there are.
    pub slots: u64,
    /// Slots in use.
    pub used: u64,
    /// Dirty slots.
    pub dirty: u64,
    /// Bytes that are newer than the disk's, in sub-blocks.
    pub dirty_bytes: u64,
    /// Requests and jobs under way.
    pub queued: u64,
    /// Slots in the policy's favoured part (`FlashCache`: hot; 2Q, S3-FIFO: main).
    pub favoured: u64,
    /// Memory that the cache holds, in bytes: index, slots, policy, what admission and cleaning remember.
    pub memory_bytes: u64,
    /// Bytes of metadata on the fast store that are in use.
    pub metadata_used_bytes: u64,
    /// Bytes of the fast store that are set aside for metadata.
    pub metadata_total_bytes: u64,
}

#[cfg(test)]
mod tests;
