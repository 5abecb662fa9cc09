//! A cache over time: the few figures of its report that charts show.

use nandscape_core::CacheReport;

/// A cache at one moment: what it holds, and what it counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePoint {
    /// Slots there are.
    pub slots: u64,
    /// Slots in use.
    pub used: u64,
    /// Slots whose block is newer than the disk's.
    pub dirty: u64,
    /// Dirty blocks that became clean.
    pub cleaned: u64,
    /// Read requests.
    pub reads: u64,
    /// Of these, the ones answered wholly from the cache.
    pub read_hits: u64,
    /// Write requests.
    pub writes: u64,
    /// Of these, the ones all of whose blocks were cached.
    pub write_hits: u64,
}

impl CachePoint {
    /// From a report of this moment.
    pub fn of(report: &CacheReport) -> Self {
        Self {
            slots: report.slots,
            used: report.used,
            dirty: report.dirty,
            cleaned: report.count("cleaned"),
            reads: report.count("reads"),
            read_hits: report.count("read_hits") + report.count("bypassed_read_hits"),
            writes: report.count("writes"),
            write_hits: report.count("write_hits") + report.count("bypassed_write_hits"),
        }
    }
}
