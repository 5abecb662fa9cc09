//! One pass over a workload for what a replay must know before it starts.

use crate::pages::PageSet;
use nandscape_core::{IoRecord, Op, SimTime, TraceError, TraceReader, WorkloadInfo};
use serde::Serialize;

/// What one pass over a workload shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scan {
    /// Bytes from address 0 to the largest end of any request, discards included: what a device must offer.
    pub span_bytes: u64,
    /// All requests.
    pub records: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Discards and write-zeroes.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Distinct 4 KiB pages read or written.
    pub touched_pages: u64,
    /// Distinct 4 KiB pages written.
    pub written_pages: u64,
    /// Arrival of the first request, in nanoseconds.
    pub first_ns: u64,
    /// Arrival of the last request, in nanoseconds.
    pub last_ns: u64,
    /// What the reader knows after the last request.
    pub info: WorkloadInfo,
}

impl Scan {
    /// Reads a workload to its end.
    pub fn of(mut reader: impl TraceReader) -> Result<Self, TraceError> {
        let mut scan = Self::default();
        let (mut touched, mut written) = (PageSet::new(), PageSet::new());
        for record in reader.by_ref() {
            scan.add(&record?, &mut touched, &mut written);
        }
        scan.touched_pages = touched.len();
        scan.written_pages = written.len();
        scan.info = reader.info();
        Ok(scan)
    }

    fn add(&mut self, record: &IoRecord, touched: &mut PageSet, written: &mut PageSet) {
        let IoRecord { at: SimTime(at), offset, len, volume, op, .. } = *record;
        if self.records == 0 {
            self.first_ns = at;
        }
        self.last_ns = at;
        self.records += 1;
        self.span_bytes = self.span_bytes.max(offset + len);
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += len;
                touched.insert(volume, offset, len);
            }
            Op::Write => {
                self.writes += 1;
                self.write_bytes += len;
                touched.insert(volume, offset, len);
                written.insert(volume, offset, len);
            }
            Op::Trim | Op::WriteZeroes => self.trims += 1,
            Op::Flush => self.flushes += 1,
        }
    }
}
