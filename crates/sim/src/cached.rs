//! A cache over time: the figures of its report that charts and the series show.

use nandscape_core::CacheReport;

/// A cache at one moment: how it stands, and what it counted since the beginning, or since an earlier moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePoint {
    /// Slots there are.
    pub slots: u64,
    /// Slots in use.
    pub used: u64,
    /// Slots whose block is newer than the disk's.
    pub dirty: u64,
    /// Bytes that are newer than the disk's.
    pub dirty_bytes: u64,
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
    /// Bytes that the cache read from its fast side.
    pub fast_read_bytes: u64,
    /// Bytes that it wrote there, metadata included.
    pub fast_write_bytes: u64,
    /// Bytes read from the disks.
    pub disk_read_bytes: u64,
    /// Bytes written to the disks.
    pub disk_write_bytes: u64,
}

impl CachePoint {
    /// From a report of this moment.
    pub fn of(report: &CacheReport) -> Self {
        let disk = report.disk();
        Self {
            slots: report.slots,
            used: report.used,
            dirty: report.dirty,
            dirty_bytes: report.dirty_bytes,
            cleaned: report.count("cleaned"),
            reads: report.count("reads"),
            read_hits: report.count("read_hits") + report.count("bypassed_read_hits"),
            writes: report.count("writes"),
            write_hits: report.count("write_hits") + report.count("bypassed_write_hits"),
            fast_read_bytes: report.fast.read_bytes,
            fast_write_bytes: report.fast.write_bytes,
            disk_read_bytes: disk.read_bytes,
            disk_write_bytes: disk.write_bytes,
        }
    }

    /// The same standing, with what was counted since the earlier moment `before`.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            cleaned: self.cleaned.saturating_sub(before.cleaned),
            reads: self.reads.saturating_sub(before.reads),
            read_hits: self.read_hits.saturating_sub(before.read_hits),
            writes: self.writes.saturating_sub(before.writes),
            write_hits: self.write_hits.saturating_sub(before.write_hits),
            fast_read_bytes: self.fast_read_bytes.saturating_sub(before.fast_read_bytes),
            fast_write_bytes: self.fast_write_bytes.saturating_sub(before.fast_write_bytes),
            disk_read_bytes: self.disk_read_bytes.saturating_sub(before.disk_read_bytes),
            disk_write_bytes: self.disk_write_bytes.saturating_sub(before.disk_write_bytes),
            ..*self
        }
    }

    /// Share of read requests that were answered wholly from the cache; `None` without reads.
    pub fn read_hit_ratio(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.read_hits as f64 / self.reads as f64)
    }

    /// Share of write requests whose blocks were all cached; `None` without writes.
    pub fn write_hit_ratio(&self) -> Option<f64> {
        (self.writes > 0).then(|| self.write_hits as f64 / self.writes as f64)
    }
}
