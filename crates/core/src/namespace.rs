//! What replay and servers see: commands in, tokens and completions out.

use crate::addr::Extent;
use crate::cached::CacheReport;
use crate::device::{Completion, FlashDevice, Token};
use crate::ftl::{Allocation, Cost, FtlError, FtlStats, Hint, LogStatus};
use crate::placement::PlacementReport;
use crate::record::Op;
use crate::store::StoreError;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// A host command without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Where.
    pub extent: Extent,
    /// Stream, handle or lifetime class.
    pub hint: Hint,
}

/// Payload of a command.
#[derive(Debug, Default)]
pub enum Payload<'a> {
    /// None: replay, or a command that has none.
    #[default]
    None,
    /// Data to write, `extent.len` bytes.
    Write(&'a [u8]),
    /// Where to put what is read, `extent.len` bytes.
    Read(&'a mut [u8]),
}

/// Why a namespace refuses a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// From the translation layer.
    #[error(transparent)]
    Ftl(#[from] FtlError),
    /// A store below failed, or refuses what it was asked for.
    #[error("{place}, for {} bytes at offset {}: {source}", extent.len, extent.offset)]
    Store {
        /// Which store, such as the device of a cache, or the disk of a volume by its name.
        place: String,
        /// What was asked of the namespace.
        extent: Extent,
        /// What the store said; offsets are its own.
        source: StoreError,
    },
    /// Acknowledged bytes were lost with a device that failed. They can be written anew.
    #[error("request {extent}: {} bytes at offset {} were lost with the cache device", lost.len, lost.offset)]
    Lost {
        /// The request.
        extent: Extent,
        /// The first of its lost bytes that are in one piece.
        lost: Extent,
    },
    /// The command makes no sense: its extent, or the length of its payload.
    #[error("request {extent}: expected {expected}")]
    Refused {
        /// The request.
        extent: Extent,
        /// What would do.
        expected: String,
    },
    /// This namespace does not do that.
    #[error("{op:?} is not supported by this namespace")]
    NotSupported {
        /// The operation.
        op: Op,
    },
}

/// What hosts asked for, since the last reset. Counted at submission, so a request that failed is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounts {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Discard and write-zeroes requests.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes discarded or zeroed.
    pub trim_bytes: u64,
    /// Device pages touched by read requests.
    pub read_pages: u64,
    /// Device pages touched by write requests; a partly written page counts as 1.
    pub write_pages: u64,
}

impl HostCounts {
    /// Counts a command as asked for.
    pub fn count(&mut self, command: Command, page_bytes: u32) {
        let extent = command.extent;
        match command.op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += extent.len;
                self.read_pages += extent.page_count(page_bytes);
            }
            Op::Write => {
                self.writes += 1;
                self.write_bytes += extent.len;
                self.write_pages += extent.page_count(page_bytes);
            }
            Op::Trim | Op::WriteZeroes => {
                self.trims += 1;
                self.trim_bytes += extent.len;
            }
            Op::Flush => self.flushes += 1,
        }
    }

    /// Adds other counts to these.
    pub const fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.trims += other.trims;
        self.flushes += other.flushes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.trim_bytes += other.trim_bytes;
        self.read_pages += other.read_pages;
        self.write_pages += other.write_pages;
    }

    /// What these have grown by since `before`.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            trims: self.trims.saturating_sub(before.trims),
            flushes: self.flushes.saturating_sub(before.flushes),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
            trim_bytes: self.trim_bytes.saturating_sub(before.trim_bytes),
            read_pages: self.read_pages.saturating_sub(before.read_pages),
            write_pages: self.write_pages.saturating_sub(before.write_pages),
        }
    }
}

/// A namespace: a range of bytes with block commands. What a host sees.
pub trait Namespace {
    /// Capacity in bytes.
    fn capacity_bytes(&self) -> u64;

    /// Device page in bytes, in which `HostCounts` counts pages.
    fn page_bytes(&self) -> u32;

    /// See [`crate::Ftl::prepare`].
    fn prepare(&self, op: Op, extent: Extent) {
        let _ = (op, extent);
    }

    /// Executes a command issued at `at`. The token completes when the host may be answered.
    fn submit(
        &mut self,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError>;

    /// See [`FlashDevice::completion`].
    fn completion(&self, token: Token) -> Option<SimTime>;

    /// See [`FlashDevice::join`].
    fn join(&mut self, a: Token, b: Token) -> Token;

    /// See [`FlashDevice::watch`].
    fn watch(&mut self, token: Token, tag: u64);

    /// See [`FlashDevice::advance`].
    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>);

    /// See [`FlashDevice::next_event`].
    fn next_event(&self) -> Option<SimTime>;

    /// The host is idle from `at` until `until`.
    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError>;

    /// See [`crate::Ftl::shutdown`].
    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError>;

    /// See [`crate::Ftl::read_only`].
    fn read_only(&self) -> Option<&'static str>;

    /// See [`crate::Ftl::allocation`]. By default everything is mapped, which is never wrong.
    fn allocation(&self, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }

    /// What hosts asked for since the last reset.
    fn host_counts(&self) -> HostCounts;

    /// Counters of the translation layer.
    fn ftl_stats(&self) -> FtlStats;

    /// Cost of the translation layer.
    fn cost(&self) -> Cost;

    /// See [`crate::Ftl::logs`].
    fn logs(&self) -> u16 {
        1
    }

    /// See [`crate::Ftl::log_status`].
    fn log_status(&self, log: u16) -> LogStatus {
        let _ = log;
        LogStatus::default()
    }

    /// See [`crate::Ftl::renew_log`].
    fn renew_log(&mut self, log: u16, at: SimTime) -> Result<u64, NamespaceError> {
        let _ = (log, at);
        Ok(0)
    }

    /// What a directive (streams, data placement) counted since the last reset, where there is one.
    fn placement(&self) -> Option<PlacementReport> {
        None
    }

    /// What a cache counted since the last reset, where there is one.
    fn cache(&self) -> Option<CacheReport> {
        None
    }

    /// The flash device at the bottom, if there is one.
    fn device(&self) -> Option<&dyn FlashDevice>;

    /// From when on nothing submitted is still running, as far as it is known now.
    fn idle_from(&self) -> SimTime;

    /// Ends preconditioning: counters start anew and every resource is free at `at`.
    fn reset_counters(&mut self, at: SimTime);

    /// Checks the invariants of everything below; panics with the values. For tests.
    fn check_invariants(&self);
}
