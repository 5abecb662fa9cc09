//! The translation layer contract.

use crate::addr::{Extent, Lpn, PageSpan, Ppn};
use crate::clock::Token;
use crate::device::{FlashState, MapJournal};
use crate::flash_error::FlashError;
use crate::journal::checkpoint;
use crate::recovery::RecoveryReport;
use crate::state::State;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// Advice that comes with a write: at a namespace the host's stream id or placement handle, at a translation
/// layer the number of the log to append to. 0 is none, or the default log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint(pub u16);

/// What a range holds from its first byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Data is stored there. What is not mapped reads as zeroes.
    pub is_mapped: bool,
    /// For so many bytes, up to the end of the range asked about; more than 0 unless that is empty.
    pub bytes: u64,
}

impl Allocation {
    /// What an extent of an object holds from its first byte on, where the stored runs of it are `runs`
    /// (first unit, and how many), in order and from the extent's first unit on.
    pub fn of_runs(extent: Extent, size: u64, unit: u64, runs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let end = extent.end().min(size);
        if extent.offset >= end {
            return Self { is_mapped: false, bytes: 0 };
        }
        let mut next = (extent.offset / unit) as u32;
        let mut is_mapped = None;
        for (first, units) in runs {
            if *is_mapped.get_or_insert(first <= next) && first > next {
                break;
            }
            if is_mapped == Some(false) {
                next = first;
                break;
            }
            next = first + units;
        }
        let until = if is_mapped.is_some() { (u64::from(next) * unit).min(end) } else { end };
        Self { is_mapped: is_mapped == Some(true), bytes: until - extent.offset }
    }
}

/// Why a translation layer refuses a request. A refused request has changed nothing the host can see, unless
/// the variant says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FtlError {
    /// There is no room: nothing that could be collected has an invalid page. A layer that allocates page by
    /// page may have written the pages before the one that found no room; each page of the request holds
    /// its old or its new bytes.
    #[error(
        "device full: {reason}; the request needs {needed_pages} page(s), {free_pages} are free, \
         {live_pages} of {total_pages} physical pages are live"
    )]
    DeviceFull { reason: &'static str, needed_pages: u64, free_pages: u64, live_pages: u64, total_pages: u64 },
    #[error("request {extent} reaches past the logical capacity of {capacity_bytes} bytes")]
    OutOfRange { extent: Extent, capacity_bytes: u64 },
    /// Blocks have failed until too few were left to write to. What was written before can still be read.
    #[error("read-only: {reason}")]
    ReadOnly { reason: &'static str },
    #[error(transparent)]
    Flash(#[from] FlashError),
}

/// What a translation layer gives, or why it refused or failed.
pub type FtlResult<T> = Result<T, FtlError>;

/// Counters of a translation layer, since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FtlStats {
    /// Map entries changed (log-table entries apart).
    pub map_updates: u64,
    /// Bytes of map changed: 8 B a page-map or superblock-map update, 2 B a log page-map update.
    pub map_update_bytes: u64,
    /// Changes to the log-block table (hybrid maps), kept apart from `map_updates`.
    pub log_table_updates: u64,
    /// Victims collected (whole-device collections for contiguous GC).
    pub gc_runs: u64,
    /// Valid pages moved by GC.
    pub gc_moved_pages: u64,
    /// Merges in which the log block became the data block.
    pub merges_switch: u64,
    /// Merges that copied.
    pub merges_full: u64,
    /// Merges forced by a full log table.
    pub merges_evicted: u64,
    /// Superblocks rewritten in place.
    pub in_place_rewrites: u64,
    /// Logical pages that hold data now (not reset).
    pub live_pages: u64,
}

crate::state!(impl [] FtlStats {
    saved: map_updates, map_update_bytes, log_table_updates, gc_runs, gc_moved_pages, merges_switch, merges_full,
        merges_evicted, in_place_rewrites, live_pages;
});

/// Where one log of host writes stands (see [`Logs`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatus {
    /// Bytes of a piece: what the log is given at a time (the stream granularity, or a reclaim unit).
    pub piece_bytes: u64,
    /// Bytes that can still be written to the log's present piece; 0 before its first.
    pub room_bytes: u64,
    /// Pieces that hold data of the log, the present one included.
    pub pieces: u64,
    /// Bytes the host wrote to the log since the last reset.
    pub host_bytes: u64,
    /// Those of them that went to another reclaim group, since the log's own had no room.
    #[serde(default)]
    pub spilled_bytes: u64,
}

/// Space that a layer which puts collection off has for host writes (see [`Deferral::quiet_room`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuietRoom {
    /// Pages that can be written from now on before it must collect.
    pub now_pages: u64,
    /// Pages that can be written at least, once nothing is left to make up for.
    pub least_pages: u64,
}

/// The SLC cache of a translation layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlcStatus {
    /// Bytes that its good blocks hold.
    pub capacity_bytes: u64,
    /// Pages that the host wrote to it since the last reset.
    pub host_pages: u64,
}

/// What a layer that keeps only a part of its map in memory did, since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapCacheStats {
    /// Lookups of reads whose entries were in memory. A lookup is for up to 64 pages in a row.
    pub hits: u64,
    /// Lookups that read a translation page.
    pub misses: u64,
    /// Memory that held parts of the map, at its highest.
    pub most_bytes: u64,
}

crate::state!(impl [] MapCacheStats { saved: hits, misses, most_bytes; });

/// What a translation layer costs, and how its space is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Cost {
    /// Bytes of mapping table in the layer's own model (8 B an entry for the thesis strategies).
    pub map_table_bytes: u64,
    /// DRAM that the device needs: maps, inverse maps, valid counts, tables of zones.
    pub dram_bytes: u64,
    /// The same in the memory of the host, where a translation layer of the host keeps it.
    pub host_dram_bytes: u64,
    /// Logical capacity in bytes.
    pub usable_bytes: u64,
    pub total_blocks: u64,
    /// Blocks kept free or open, so never a victim.
    pub reserve_blocks: u64,
    pub pages_per_block: u64,
    pub logical_pages: u64,
}

/// What a translation layer maps, and what that costs.
pub trait Mapping {
    /// Logical capacity in pages.
    fn logical_pages(&self) -> u64;

    /// Bytes of a page.
    fn page_bytes(&self) -> u32;

    /// Where a logical page is, if it is mapped. For tests and analysis.
    fn lookup(&self, lpn: Lpn) -> Option<Ppn>;

    /// Whether the first byte of `extent` is mapped, and how far this goes on in it. Extents past the
    /// capacity are unmapped there.
    fn allocation(&self, extent: Extent) -> Allocation {
        let mut spans = extent.pages(self.page_bytes());
        let is_mapped = |span: &PageSpan| self.lookup(span.lpn).is_some();
        let Some(first) = spans.next() else { return Allocation { is_mapped: false, bytes: 0 } };
        let state = is_mapped(&first);
        let end = spans.find(|span| is_mapped(span) != state);
        Allocation { is_mapped: state, bytes: end.map_or(extent.len, |span| span.at) }
    }

    /// Counters since the last reset.
    fn stats(&self) -> FtlStats;

    /// Starts counting anew, as time does: nothing waits any more for what was submitted so far. The map and
    /// the wear stay.
    fn reset_stats(&mut self);

    /// Its SLC cache; `None` without one.
    fn slc(&self) -> Option<SlcStatus> {
        None
    }

    /// The part of its map that is in memory; `None` if that is all of it.
    fn map_cache(&self) -> Option<MapCacheStats> {
        None
    }

    /// Cost and space.
    fn cost(&self) -> Cost;

    /// Checks the layer's own invariants (maps, counts, queues agree with the device). For tests: slow,
    /// panics with the values.
    fn check_invariants(&self);
}

/// Logs of a translation layer that the host's writes can be told apart into. The defaults are those of a
/// layer without streams.
pub trait Logs {
    /// Logs that host writes can be told apart into by their [`Hint`], log 0 included. A layer without
    /// streams has 1, and puts every write there; a hint of `logs()` or above means log 0.
    fn logs(&self) -> u16 {
        1
    }

    /// Where a log stands.
    fn log_status(&self, log: u16) -> LogStatus {
        let _ = log;
        LogStatus::default()
    }

    /// The next write of the log begins a new piece (a released stream id, a reclaim unit handle that the
    /// host updates). Gives the bytes that were left unwritten in the piece it leaves.
    fn renew_log(&mut self, log: u16, at: SimTime) -> FtlResult<u64> {
        let _ = (log, at);
        Ok(0)
    }
}

/// Collection that can be put off. The defaults are those of a layer that cannot.
pub trait Deferral {
    /// Room for host writes before the layer collects, where it can put collection off; `None` where it
    /// cannot.
    fn quiet_room(&self) -> Option<QuietRoom> {
        None
    }

    /// From now on no collection, levelling or other work that no request asked for, as long as
    /// [`Deferral::quiet_room`] lasts (`true`), or as usual again, after what was put off is made up for
    /// (`false`). For deterministic windows of NVM sets.
    fn defer_collection(&mut self, deferred: bool, at: SimTime) -> FtlResult<()> {
        let _ = (deferred, at);
        Ok(())
    }
}

/// A layer over a flash device as reports see it, whatever commands it takes.
pub trait FlashLayer: Mapping + Logs {
    /// The device below.
    fn device(&self) -> &dyn FlashState;

    /// Why the layer takes no more writes, once it does not: every later write, trim and write-zeroes is
    /// refused with [`FtlError::ReadOnly`], reads go on.
    fn read_only(&self) -> Option<&'static str> {
        None
    }

    /// What the start from flash found: by the journal of the device, or by the layer itself.
    fn recovery(&self) -> Option<&RecoveryReport> {
        self.device().journal().map(MapJournal::recovery)
    }
}

/// A flash translation layer. Holds its device; one thread owns both.
///
/// Requests are in bytes and may be unaligned. Payload is optional: `data` of a write is `extent.len` bytes,
/// and a read fills `data` where the device stores payload (zeroes where nothing is mapped). The returned
/// token completes when the host may be answered.
pub trait Ftl: FlashLayer + Deferral + State {
    /// Reads. Pages that are not mapped cost no flash operation unless the layer has an option that says
    /// otherwise.
    fn read(&mut self, extent: Extent, data: Option<&mut [u8]>, at: SimTime) -> FtlResult<Token>;

    /// A request for this extent is about to come. Lets the layer ask the processor for what it will need;
    /// changes nothing, and may be ignored. A replay calls it as soon as it knows a request, and then
    /// does what else it has to do.
    fn prepare(&self, extent: Extent) {
        let _ = extent;
    }

    /// Writes.
    fn write(&mut self, extent: Extent, data: Option<&[u8]>, hint: Hint, at: SimTime) -> FtlResult<Token>;

    /// Drops the pages that `extent` wholly covers; a partly covered page is left alone.
    fn trim(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token>;

    /// Like [`Ftl::trim`], and the whole extent reads as zeroes afterwards. Timing-only devices drop whole
    /// pages and are done.
    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token>;

    /// Makes what was acknowledged durable.
    fn flush(&mut self, at: SimTime) -> FtlResult<Token>;

    /// Leaves the device in a state that opens at once: everything durable and a checkpoint written.
    fn shutdown(&mut self, at: SimTime) -> FtlResult<Token> {
        Ok(checkpoint(self.device_mut(), at)?)
    }

    /// The host has nothing to do from `at` until `until`: background work that may start in that span.
    fn idle(&mut self, at: SimTime, until: SimTime) -> FtlResult<()>;

    /// The device below.
    fn device_mut(&mut self) -> &mut dyn FlashState;
}
