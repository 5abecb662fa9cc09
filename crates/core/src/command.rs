//! What hosts ask of a namespace, and how it is counted.

use crate::addr::Extent;
use crate::ftl::Hint;
use crate::record::Op;
use serde::{Deserialize, Serialize};

/// A host command without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCommand {
    /// What to do.
    pub op: Op,
    /// Where.
    pub extent: Extent,
    /// Stream, handle or lifetime class.
    pub hint: Hint,
    /// It is answered only when what it wrote survives a loss of power (forced unit access). Of meaning at a
    /// [`crate::Subsystem`]; what lies below makes things durable by flushes.
    pub is_durable: bool,
}

impl BlockCommand {
    /// A command that need not be durable.
    pub const fn new(op: Op, extent: Extent, hint: Hint) -> Self {
        Self { op, extent, hint, is_durable: false }
    }

    /// A flush.
    pub const FLUSH: Self = Self::new(Op::Flush, Extent::new(0, 0), Hint(0));
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
    pub fn count(&mut self, command: BlockCommand, page_bytes: u32) {
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
