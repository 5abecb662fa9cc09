//! What happened to each page, and what that comes to.

use nandscape_core::vector::SectorAddress;
use nandscape_core::{SimTime, words};
use std::io::{self, Write};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// A page was read.
    Read,
    /// A page was written.
    Write,
    /// A chunk was erased.
    Erase,
}

words!(pub IoKind: Read = "r", Write = "w", Erase = "e");

/// A page that was read or written, or a chunk that was erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageIo {
    /// Its job.
    pub job: u32,
    /// Its number in the job, from 0.
    pub number: u64,
    /// What was done.
    pub kind: IoKind,
    /// Its chunk.
    pub chunk: SectorAddress,
    /// Page of the chunk; 0 for an erase.
    pub page: u32,
    /// When it was submitted.
    pub start: SimTime,
    /// When it completed.
    pub end: SimTime,
    /// Data bytes; 0 for an erase.
    pub bytes: u32,
    /// The device reported a failure.
    pub is_failed: bool,
    /// What was read is not what was written.
    pub differs: bool,
}

impl PageIo {
    /// From its submission to its completion, in nanoseconds.
    pub const fn latency_ns(&self) -> u64 {
        self.end.0 - self.start.0
    }
}

/// Every operation of a run, in the order of submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The operations.
    pub ios: Vec<PageIo>,
}

/// What a run comes to. Means are 0 where there was no such operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// From the first submission of a read or write to the last completion of one, in nanoseconds.
    pub elapsed_ns: u64,
    /// Sum of the latencies of reads and writes, in nanoseconds.
    pub io_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes read and written in a second.
    pub throughput: f64,
    /// Reads and writes in a second.
    pub iops: f64,
    /// Mean latency of a read, in nanoseconds.
    pub read_ns_mean: f64,
    /// Mean latency of a write, in nanoseconds.
    pub write_ns_mean: f64,
    /// Mean latency of an erase, in nanoseconds.
    pub erase_ns_mean: f64,
    /// Reads, writes and erases, in this order.
    pub counts: [u64; 3],
    /// Operations that failed.
    pub failed: u64,
    /// Reads with other data than was written.
    pub differing: u64,
}

impl Log {
    /// The columns of [`Log::write_csv`], those of FOX's log of operations; times are in nanoseconds.
    pub const HEADER: &'static str = "sequence;node_sequence;node_id;channel;lun;block;page;start_ns;end_ns;\
                                      latency_ns;type;is_failed;read_memcmp;bytes";

    /// Writes a line for each operation, behind a header. `read_memcmp` is 1 for a read of other data than
    /// was written.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", Self::HEADER)?;
        for (sequence, io) in self.ios.iter().enumerate() {
            let SectorAddress { group, unit, chunk, .. } = io.chunk;
            writeln!(
                out,
                "{sequence};{};{};{group};{unit};{chunk};{};{};{};{};{};{};{};{}",
                io.number,
                io.job,
                io.page,
                io.start.0,
                io.end.0,
                io.latency_ns(),
                io.kind.name(),
                u8::from(io.is_failed),
                u8::from(io.differs),
                io.bytes,
            )?;
        }
        Ok(())
    }

    /// What the operations come to.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        let mut sums = [0u64; 3];
        let (mut first, mut last) = (u64::MAX, 0);
        for io in &self.ios {
            summary.counts[io.kind as usize] += 1;
            sums[io.kind as usize] += io.latency_ns();
            summary.failed += u64::from(io.is_failed);
            summary.differing += u64::from(io.differs);
            match io.kind {
                IoKind::Read => summary.read_bytes += u64::from(io.bytes),
                IoKind::Write => summary.write_bytes += u64::from(io.bytes),
                IoKind::Erase => continue,
            }
            (first, last) = (first.min(io.start.0), last.max(io.end.0));
        }
        let mean = |kind: IoKind| {
            let count = summary.counts[kind as usize];
            if count == 0 { 0.0 } else { sums[kind as usize] as f64 / count as f64 }
        };
        summary.read_ns_mean = mean(IoKind::Read);
        summary.write_ns_mean = mean(IoKind::Write);
        summary.erase_ns_mean = mean(IoKind::Erase);
        summary.elapsed_ns = last.saturating_sub(first);
        summary.io_ns = sums[0] + sums[1];
        if summary.elapsed_ns > 0 {
            let seconds = summary.elapsed_ns as f64 / 1e9;
            summary.throughput = (summary.read_bytes + summary.write_bytes) as f64 / seconds;
            summary.iops = (summary.counts[0] + summary.counts[1]) as f64 / seconds;
        }
        summary
    }
}
