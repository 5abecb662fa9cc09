//! What a cache counted, for the result document and for servers: a part of what a [`crate::Subsystem`]
//! reports.

use crate::command::HostCounts;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Pieces of requests that went past a cache for one reason. A piece is the part of a request that lies in
/// one cache block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BypassCount {
    /// Pieces of reads.
    pub read_pieces: u64,
    /// Pieces of writes.
    pub write_pieces: u64,
    /// Bytes of both.
    pub bytes: u64,
}

macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+; $($absent:ident,)+) => {
        /// What a cache counted of one volume or of all: numbers that only grow. Of a single volume, what
        /// concerns the cache as a whole (metadata writes, flushes of the fast store) is 0.
        ///
        /// A *request* is what the host sent, a *piece* the part of it that lies in one cache block, a
        /// *command* what went to a store.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct CacheCounts {
            $($(#[doc = $doc])+ pub $name: u64,)+
            $(#[doc = "Not modelled."] pub $absent: NotModelled,)+
        }

        impl CacheCounts {
            /// Names of what is counted, in the order of declaration.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// Counts by their names.
            pub fn named(value: impl Fn(&str) -> u64) -> Self {
                Self { $($name: value(stringify!($name)),)+ ..Self::default() }
            }

            /// Name and value of each count, in the order of declaration.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                Self::NAMES.iter().copied().zip([$(self.$name),+])
            }

            /// Changes each count by that of the same name of another's.
            pub fn each(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
                $(self.$name = change(self.$name, other.$name);)+
            }
        }
    };
}

counts! {
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

impl CacheCounts {
    /// What was counted since `before`, an earlier copy of the same counts; 0 where `before` is ahead.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut result = *self;
        result.each(before, u64::saturating_sub);
        result
    }

    /// Read requests that were answered wholly from the cache, past it or not.
    pub const fn all_read_hits(&self) -> u64 {
        self.read_hits + self.bypassed_read_hits
    }

    /// Write requests whose blocks were all cached, past it or not.
    pub const fn all_write_hits(&self) -> u64 {
        self.write_hits + self.bypassed_write_hits
    }

    /// Share of read requests that were answered wholly from the cache; `None` without reads.
    pub fn read_hit_ratio(&self) -> Option<f64> {
        share(self.all_read_hits(), self.reads)
    }

    /// Share of write requests whose blocks were all cached; `None` without writes.
    pub fn write_hit_ratio(&self) -> Option<f64> {
        share(self.all_write_hits(), self.writes)
    }

    /// The same of both.
    pub fn hit_ratio(&self) -> Option<f64> {
        share(self.all_read_hits() + self.all_write_hits(), self.reads + self.writes)
    }
}

/// A cache as it stands, and what it counted since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Mode: write-back, write-through, write-around, write-only or pass-through.
    pub mode: String,
    /// Cache block in bytes.
    pub block_bytes: u64,
    /// Slots there are; each holds a block.
    pub slots: u64,
    /// Slots in use.
    pub used: u64,
    /// Slots whose block is newer than the disk's.
    pub dirty: u64,
    /// Bytes that are newer than the disk's.
    pub dirty_bytes: u64,
    /// Memory of index, policy and slots, in bytes.
    pub memory_bytes: u64,
    /// What it counted, over all volumes.
    pub counters: CacheCounts,
    /// What went past the cache, by reason; reasons that did not occur are left out.
    pub bypass: BTreeMap<String, BypassCount>,
    /// Commands that went to the fast side, metadata included.
    pub fast: HostCounts,
    /// Commands that went to the disk of each volume.
    pub disks: Vec<HostCounts>,
}

impl CacheReport {
    /// Commands that went to all disks.
    pub fn disk(&self) -> HostCounts {
        self.disks.iter().fold(HostCounts::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }
}

/// What can be asked of a cache that is served.
pub trait CacheControl {
    /// Commands from now on follow other settings, by key: the mode, and the policies with their parameters.
    /// The error says what was expected, and then nothing has changed.
    fn set(&mut self, settings: &BTreeMap<String, String>) -> Result<(), String>;

    /// Writes dirty blocks to their disks, at most so many, and gives how many there were.
    fn clean(&mut self, blocks: u32, at: SimTime) -> Result<u32, String>;

    /// Puts the disk at a path behind the cache, under a name, and gives the number of its namespace.
    fn attach(&mut self, disk: &Path, name: &str) -> Result<u32, String>;

    /// Takes the disk of that name away, which then has everything. Its namespace has no bytes from then on.
    fn detach(&mut self, name: &str, at: SimTime) -> Result<(), String>;

    /// Goes on without a member of a cache device that is mirrored.
    fn fail(&mut self, member: &Path) -> Result<(), String>;

    /// Begins to put the file or device `new` in place of such a member; `force`: whatever it holds.
    fn replace(&mut self, member: &Path, new: &Path, force: bool) -> Result<(), String>;

    /// Copies some of what it needs, and gives the bytes that are left; with 0 it is a member.
    fn copy_more(&mut self) -> Result<u64, String>;
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_requests_and_of_none_there_is_none() {
        let counts = CacheCounts {
            reads: 8,
            read_hits: 3,
            bypassed_read_hits: 1,
            writes: 2,
            write_hits: 1,
            ..CacheCounts::default()
        };
        assert_eq!(
            (counts.read_hit_ratio(), counts.write_hit_ratio(), counts.hit_ratio()),
            (Some(0.5), Some(0.5), Some(0.5))
        );
        assert_eq!(CacheCounts::default().hit_ratio(), None);
    }
}
