//! A cache over time: the part of its report that charts and the series show.

use nandscape_core::command::HostCounts;
use nandscape_core::{CacheCounts, CacheReport};

/// A cache at one moment: how it stands, and what it counted since the beginning, or since an earlier moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct CachePoint {
    pub slots: u64,
    pub used: u64,
    /// Slots whose block is newer than the disk's.
    pub dirty: u64,
    /// Bytes that are newer than the disk's.
    pub dirty_bytes: u64,
    pub counts: CacheCounts,
    /// Commands that went to the fast side, metadata included.
    pub fast: HostCounts,
    /// Commands that went to the disks.
    pub disk: HostCounts,
}

impl CachePoint {
    /// From a report of this moment.
    pub fn of(report: &CacheReport) -> Self {
        Self {
            slots: report.slots,
            used: report.used,
            dirty: report.dirty,
            dirty_bytes: report.dirty_bytes,
            counts: report.counters,
            fast: report.fast,
            disk: report.disk(),
        }
    }

    /// The same standing, with what was counted since the earlier moment `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            counts: self.counts.since(&before.counts),
            fast: self.fast.since(&before.fast),
            disk: self.disk.since(&before.disk),
            ..*self
        }
    }
}
