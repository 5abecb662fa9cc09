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

use nandscape_core::SimTime;
use nandscape_policies::admission::Bypass;
use serde::{Deserialize, Serialize};

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

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+; $($absent:ident,)+) => {
        /// What was counted of one volume, or of the whole cache.
        ///
        /// Numbers only grow. Of a single volume, what concerns the cache as a whole (metadata writes,
        /// flushes of the fast store) is 0.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)+
            $(#[doc = "Not modelled."] pub $absent: NotModelled,)+
            /// What went past the cache, by reason.
            pub bypass: Bypassed,
            /// Sizes of requests, as the host sent them.
            pub request_sizes: SizeHistogram,
            /// Sizes of pieces.
            pub piece_sizes: SizeHistogram,
            /// Time from arrival to answer, reads and writes.
            pub latency: LatencyHistogram,
        }

        impl Counters {
            /// Names of the plain counters, in the order of declaration.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// Names of what published designs count and nothing here could.
            pub const NOT_MODELLED: &[&str] = &[$(stringify!($absent)),+];

            /// Plain counters by their names; all else is zero.
            pub fn named(value: impl Fn(&str) -> u64) -> Self {
                Self { $($name: value(stringify!($name)),)+ ..Self::default() }
            }

            /// Name and value of the plain counters, in the order of declaration.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                Self::NAMES.iter().copied().zip([$(self.$name),+])
            }

            fn each(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
                $(self.$name = change(self.$name, other.$name);)+
                self.bypass.each(&other.bypass, change);
                self.request_sizes.each(&other.request_sizes, change);
                self.piece_sizes.each(&other.piece_sizes, change);
                self.latency.each(&other.latency, change);
            }
        }
    };
}

counters! {
    // Requests.
    /// Read requests.
    reads,
    /// Write requests.
    writes,
    /// Discard and write-zeroes requests.
    trims,
    /// Flushes.
    flushes,
    /// Write requests that had to be durable before their answer; they are in `writes` too.
    forced_writes,
    /// Bytes that hosts read.
    read_bytes,
    /// Bytes that hosts wrote.
    write_bytes,
    /// Bytes that hosts discarded or zeroed.
    trim_bytes,
    /// Reads answered wholly from the cache.
    read_hits,
    /// Reads of which a part, but not all, came from the cache.
    read_partial_hits,
    /// Reads of which nothing was cached.
    read_misses,
    /// Writes all of whose blocks were cached.
    write_hits,
    /// Writes of which some blocks were cached.
    write_partial_hits,
    /// Writes of which no block was cached.
    write_misses,
    /// Reads that were to go past the cache and yet were answered wholly from it.
    bypassed_read_hits,
    /// Reads that went past the cache, wholly or in part.
    bypassed_read_misses,
    /// Writes that were to go past the cache and found all their blocks cached.
    bypassed_write_hits,
    /// Writes that went past the cache, wholly or in part.
    bypassed_write_misses,
    /// Bytes of reads that came from the cache.
    read_hit_bytes,
    /// Bytes of writes that fell on cached blocks.
    write_hit_bytes,
    /// Of these, the bytes that fell on blocks that were dirty already.
    dirty_write_hit_bytes,
    /// Sum of the times from arrival to answer of reads, in nanoseconds.
    read_ns,
    /// The same of writes.
    write_ns,

    // Pieces.
    /// Pieces of reads.
    read_pieces,
    /// Pieces of writes.
    write_pieces,
    /// Pieces of reads all of whose bytes were cached.
    read_piece_hits,
    /// Pieces of reads whose block was cached, but not all of the bytes.
    read_piece_partial_hits,
    /// Pieces of reads whose block was not cached.
    read_piece_misses,
    /// Pieces of writes whose block was cached.
    write_piece_hits,
    /// Pieces of writes whose block was not cached and was taken in.
    write_piece_misses,
    /// Of `write_piece_hits`, those whose block was dirty already.
    dirty_write_piece_hits,
    /// Pieces that waited, since their block was being filled, cleaned or replaced.
    waits,
    /// Pieces that waited and then went past the cache, since their block had been thrown out meanwhile.
    requeued_past_cache,

    // Slots.
    /// Blocks taken in for reads.
    read_insertions,
    /// Blocks taken in for writes.
    write_insertions,
    /// Blocks that left to make room for a read.
    read_replacements,
    /// Blocks that left to make room for a write.
    write_replacements,
    /// Of both, those that were dirty when they were chosen.
    dirty_replacements,
    /// Blocks thrown out by a read that went past the cache.
    read_invalidates,
    /// Blocks thrown out by a write that went past the cache or superseded them.
    write_invalidates,
    /// Blocks thrown out, wholly or in part, by discards.
    trim_invalidates,
    /// Blocks given up because of an error of the fast store or a wrong checksum.
    error_invalidates,
    /// Times a set had no slot that could be taken.
    no_room,
    /// Slots given to a block so that its committed copy was not overwritten.
    relabels,
    /// Blocks that the policy moved to its favoured part.
    promotions,
    /// Blocks that the policy moved back to its ordinary part.
    demotions,

    // Cleaning.
    /// Clean blocks that became dirty.
    dirtied,
    /// Dirty blocks that became clean.
    cleaned,
    /// Blocks written to the disk by cleaning of any kind.
    cleanings,
    /// Of these, the ones that were dirty and idle for too long.
    idle_cleanings,
    /// Of these, the ones cleaned since a request or a replacement could not go on without.
    forced_cleanings,
    /// Write commands that cleaning sent to the disk.
    cleaning_writes,
    /// Bytes that cleaning wrote to the disk.
    cleaning_bytes,
    /// Blocks that joined a cleaning write at its front.
    front_merges,
    /// Blocks that joined a cleaning write at its end.
    back_merges,

    // Metadata.
    /// Commits of metadata.
    metadata_commits,
    /// Changes that needed no write of their own, since another change was in the same write.
    metadata_batched,
    /// Write commands with metadata to the fast store.
    metadata_writes,
    /// Bytes of metadata written to the fast store.
    metadata_bytes,

    // Stores.
    /// Read commands to the disk.
    disk_reads,
    /// Write commands to the disk.
    disk_writes,
    /// Flushes of the disk.
    disk_flushes,
    /// Bytes read from the disk.
    disk_read_bytes,
    /// Bytes written to the disk.
    disk_write_bytes,
    /// Read commands to the fast store, metadata excluded.
    fast_reads,
    /// Write commands to the fast store, metadata excluded.
    fast_writes,
    /// Flushes of the fast store.
    fast_flushes,
    /// Bytes read from the fast store, metadata excluded.
    fast_read_bytes,
    /// Bytes written to the fast store, metadata excluded.
    fast_write_bytes,
    /// Of `fast_writes`, those that brought in what a read had missed.
    fill_writes,
    /// Bytes of these.
    fill_bytes,
    /// Read errors of the disk.
    disk_read_errors,
    /// Write errors of the disk.
    disk_write_errors,
    /// Read errors of the fast store.
    fast_read_errors,
    /// Write errors of the fast store.
    fast_write_errors,
    /// Dirty bytes that were lost.
    lost_bytes,

;
    pending_invalidates, fill_collisions, read_ahead, checksums_stored, checksums_right, checksums_wrong, tag_adds,
    tag_removals, tag_drops, tag_expiries,
}

/// In the place of a counter that published designs have and nothing here could count: `null` in documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotModelled;

impl Counters {
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
    pub const fn answered(&mut self, is_write: bool, arrival: SimTime, answer: SimTime) {
        let ns = answer.0.saturating_sub(arrival.0);
        if is_write {
            self.write_ns += ns;
        } else {
            self.read_ns += ns;
        }
        self.latency.record(ns);
    }

    /// Blocks that left to make room.
    pub const fn replacements(&self) -> u64 {
        self.read_replacements + self.write_replacements
    }

    /// Pieces that were hits: reads and writes.
    pub const fn piece_hits(&self) -> u64 {
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
