//! What a load looks like: everything that `trace stats` reports, gathered in one pass.
//!
//! The figures of the thesis that this serves: address over time (2.2, 2.5: [`TraceStats::points`]), sizes
//! (2.3a, 2.6a: [`TraceStats::sizes`]), starts and ends inside a page and a block (2.3, 2.4, 2.6, 2.7:
//! [`TraceStats::alignment`]).
//!
//! How the load follows the unwritten contract of SSDs ([`TraceStats::contract`]) and what kind of load it is
//! ([`TraceStats::patterns`]).
//!
//! Memory is bounded by the touched pages (12 bytes for each, in pieces of 512 pages) plus a constant:
//! distributions are log-linear histograms, series and points are thinned out by doubling their step.

mod contract;
mod histogram;
mod patterns;
mod pointers;
mod windows;

pub use contract::{
    AlignedSequentiality, Contract, Coverage, DeathTimes, LARGE_BYTES, Lifetimes, Locality, RequestScale,
    SMALL_BYTES,
};
pub use histogram::{Distribution, Histogram};
pub use patterns::{Pattern, Patterns, Streams};
pub use windows::Window;

use crate::error::Result;
use crate::pages::{GRANULE, PageSet};
use contract::ContractGather;
use nandscape_core::{IoRecord, TraceOp, TraceReader, WorkloadInfo};
use patterns::PatternGather;
use pointers::Pointers;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use windows::Windows;

/// What alignment is measured against, and how much detail is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsOptions {
    /// Flash page in bytes, 1 or more.
    pub page_bytes: u64,
    /// Flash block in bytes, 1 or more.
    pub block_bytes: u64,
    /// Most points of the address-over-time plot, 2 or more.
    pub points: usize,
}

impl Default for StatsOptions {
    /// The thesis device: pages of 32 KiB, blocks of 1 MiB.
    fn default() -> Self {
        Self { page_bytes: 32 << 10, block_bytes: 1 << 20, points: 4000 }
    }
}

/// Requests and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// All requests.
    pub requests: u64,
    /// Bytes of a request.
    pub bytes: u64,
}

impl Amount {
    fn is_none(&self) -> bool {
        self.requests == 0
    }
}

/// Requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Mix {
    pub reads: Amount,
    pub writes: Amount,
    pub trims: Amount,
    pub write_zeroes: Amount,
    /// Flushes (no bytes).
    pub flushes: Amount,
    /// Zone appends. Everything else that counts writes counts an append as the write that it leads to on a
    /// device that is empty when the workload begins.
    #[serde(skip_serializing_if = "Amount::is_none")]
    pub appends: Amount,
    /// Operations on the state of zones (no bytes).
    #[serde(skip_serializing_if = "Amount::is_none")]
    pub zone_ops: Amount,
    /// Creations, deletions and changes of the size of objects (no bytes).
    #[serde(skip_serializing_if = "Amount::is_none")]
    pub object_ops: Amount,
}

/// Where starts and ends of reads and writes lie inside units of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Alignment {
    /// The unit in bytes.
    pub unit_bytes: u64,
    /// Requests that start on a border.
    pub starts_aligned: u64,
    /// Requests that end on a border.
    pub ends_aligned: u64,
    /// Requests whose length is a multiple of the unit.
    pub lengths_aligned: u64,
    /// Requests longer than one unit.
    pub longer_than_unit: u64,
    /// Starts by offset inside the unit, in 64 equal bins.
    pub start_bins: Vec<u64>,
    /// Ends by offset inside the unit, in 64 equal bins; an end on the border is in bin 0.
    pub end_bins: Vec<u64>,
}

/// One request of the address-over-time plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Number of the request, from 0.
    pub request: u64,
    /// Arrival in nanoseconds.
    pub at_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Letter of the native CSV.
    pub op: char,
}

/// How far requests continue each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sequentiality {
    /// Reads and writes that start where the one before ended.
    pub continues_last: u64,
    /// Reads and writes that start where one of the 32 before ended: sequential streams that are mixed.
    pub continues_recent: u64,
    /// Runs of requests that continue each other directly.
    pub runs: u64,
    /// Bytes of the longest run.
    pub longest_run_bytes: u64,
}

/// A size and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// Bytes of a request.
    pub bytes: u64,
    /// Reads and writes of that size.
    pub requests: u64,
}

/// What one pass over a workload shows. Shares are not stored; each can be had from the counts beside it.
#[derive(Clone, Debug, Serialize)]
pub struct TraceStats {
    /// What the reader knows after the last request.
    pub info: WorkloadInfo,
    /// All requests.
    pub requests: u64,
    /// Requests by kind.
    pub mix: Mix,
    /// First arrival in nanoseconds.
    pub first_ns: u64,
    /// Last arrival in nanoseconds.
    pub last_ns: u64,
    /// Smallest address that is read or written.
    pub min_offset: u64,
    /// Largest end of any read or write.
    pub max_end: u64,
    /// Bytes of the 4 KiB pages that are read or written at least once.
    pub touched_bytes: u64,
    /// Bytes of the 4 KiB pages that are written at least once.
    pub written_bytes: u64,
    /// 4 KiB pages written, each as often as it is.
    pub page_writes: u64,
    /// Those of them that were written before in this workload.
    pub page_overwrites: u64,
    /// Lengths of reads and writes in bytes.
    pub sizes: Distribution,
    /// Lengths of reads in bytes.
    pub read_sizes: Distribution,
    /// Lengths of writes in bytes.
    pub write_sizes: Distribution,
    /// The most frequent lengths, most frequent first, at most 16.
    pub common_sizes: Vec<SizeCount>,
    /// Against the page and the block, in this order.
    pub alignment: Vec<Alignment>,
    /// Nanoseconds between arrivals.
    pub inter_arrival_ns: Distribution,
    /// How far requests continue each other.
    pub sequentiality: Sequentiality,
    /// The load over its requests, at most 256 windows of equally many requests (the last may be shorter).
    pub windows: Vec<Window>,
    /// Every n-th request, at most as many as asked for.
    pub points: Vec<Point>,
    /// How it follows the unwritten contract of SSDs.
    pub contract: Contract,
    /// What kind of load it is.
    pub patterns: Patterns,
}

impl TraceStats {
    /// Reads a workload to its end.
    pub fn of(mut reader: impl TraceReader, options: StatsOptions) -> Result<Self> {
        let mut gather = Gather::new(options);
        while let Some(record) = reader.next() {
            let record = record?;
            let volume = reader.origin().volume.max(record.volume);
            gather.add(&record, volume);
        }
        Ok(gather.finish(reader.info()))
    }
}

const BINS: u64 = 64;

impl Alignment {
    fn new(unit_bytes: u64) -> Self {
        let bins = vec![0; BINS as usize];
        Self { unit_bytes, start_bins: bins.clone(), end_bins: bins, ..Self::default() }
    }

    fn add(&mut self, offset: u64, len: u64) {
        let unit = self.unit_bytes;
        let (start, end) = (offset % unit, (offset + len) % unit);
        self.starts_aligned += u64::from(start == 0);
        self.ends_aligned += u64::from(end == 0);
        self.lengths_aligned += u64::from(len.is_multiple_of(unit));
        self.longer_than_unit += u64::from(len > unit);
        let bin = |at: u64| (u128::from(at) * u128::from(BINS) / u128::from(unit)) as usize;
        self.start_bins[bin(start)] += 1;
        self.end_bins[bin(end)] += 1;
    }
}

/// Distinct sizes that are counted one by one; a load with more has no common sizes worth naming.
const SIZES_COUNTED: usize = 4096;
/// Ends of requests that a sequential stream may continue.
const RECENT: usize = 32;

#[derive(Default)]
struct Gather {
    options: StatsOptions,
    requests: u64,
    mix: Mix,
    times: Option<(u64, u64)>,
    range: Option<(u64, u64)>,
    written: PageSet,
    page_writes: u64,
    page_overwrites: u64,
    read_sizes: Histogram,
    write_sizes: Histogram,
    gaps: Histogram,
    size_counts: BTreeMap<u64, u64>,
    alignment: [Alignment; 2],
    recent: VecDeque<u64>,
    run_bytes: u64,
    sequentiality: Sequentiality,
    windows: Windows,
    points: Vec<Point>,
    point_step: u64,
    pointers: Pointers,
    contract: ContractGather,
    patterns: PatternGather,
}

impl Gather {
    fn new(options: StatsOptions) -> Self {
        Self {
            options: StatsOptions { points: options.points.max(2), ..options },
            alignment: [options.page_bytes, options.block_bytes].map(|unit| Alignment::new(unit.max(1))),
            point_step: 1,
            contract: ContractGather::new(options),
            ..Self::default()
        }
    }

    fn add(&mut self, record: &IoRecord, volume: u32) {
        let at = record.at.as_ns();
        if let Some((_, last)) = self.times {
            self.gaps.add(at.saturating_sub(last));
        }
        self.times = Some((self.times.map_or(at, |(first, _)| first), at));
        self.add_point(record);
        let amount = match record.op {
            TraceOp::Read | TraceOp::ObjectRead => &mut self.mix.reads,
            TraceOp::Write | TraceOp::ObjectWrite => &mut self.mix.writes,
            TraceOp::Trim | TraceOp::ObjectPunch => &mut self.mix.trims,
            TraceOp::WriteZeroes => &mut self.mix.write_zeroes,
            TraceOp::Flush | TraceOp::ObjectFlush => &mut self.mix.flushes,
            TraceOp::ObjectCreate | TraceOp::ObjectDelete | TraceOp::ObjectTruncate => {
                &mut self.mix.object_ops
            }
            TraceOp::Append => &mut self.mix.appends,
            TraceOp::Reset | TraceOp::Finish | TraceOp::Open | TraceOp::Close => &mut self.mix.zone_ops,
        };
        amount.requests += 1;
        amount.bytes += if record.op.has_no_bytes() { 0 } else { record.len };
        if record.op == TraceOp::Reset {
            for (offset, len) in self.pointers.reset(record) {
                self.contract.discard(record.volume, offset, len);
            }
        }
        let record = &self.pointers.place(record);
        self.windows.add(self.requests, record);
        self.requests += 1;
        let over = self.contract.add(record);
        if matches!(record.op, TraceOp::Read | TraceOp::Write) && record.len > 0 {
            self.add_data(record);
            self.patterns.add(record, volume, over);
        }
    }

    fn add_data(&mut self, record: &IoRecord) {
        let IoRecord { offset, len, volume, op, .. } = *record;
        let (low, high) = self.range.unwrap_or((offset, offset + len));
        self.range = Some((low.min(offset), high.max(offset + len)));
        if op == TraceOp::Write {
            let pages = (offset + len - 1) / GRANULE - offset / GRANULE + 1;
            self.page_writes += pages;
            self.page_overwrites += pages - self.written.insert(volume, offset, len);
            self.write_sizes.add(len);
        } else {
            self.read_sizes.add(len);
        }
        if self.size_counts.len() < SIZES_COUNTED || self.size_counts.contains_key(&len) {
            *self.size_counts.entry(len).or_insert(0) += 1;
        }
        for alignment in &mut self.alignment {
            alignment.add(offset, len);
        }
        self.add_run(offset, len);
    }

    fn add_run(&mut self, offset: u64, len: u64) {
        let sequence = &mut self.sequentiality;
        if self.recent.back() == Some(&offset) {
            sequence.continues_last += 1;
            self.run_bytes += len;
        } else {
            sequence.runs += 1;
            self.run_bytes = len;
        }
        sequence.continues_recent += u64::from(self.recent.contains(&offset));
        sequence.longest_run_bytes = sequence.longest_run_bytes.max(self.run_bytes);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(offset + len);
    }

    fn add_point(&mut self, record: &IoRecord) {
        if !self.requests.is_multiple_of(self.point_step) {
            return;
        }
        if self.points.len() == self.options.points {
            self.point_step *= 2;
            let step = self.point_step;
            self.points.retain(|point| point.request.is_multiple_of(step));
            if !self.requests.is_multiple_of(step) {
                return;
            }
        }
        self.points.push(Point {
            request: self.requests,
            at_ns: record.at.as_ns(),
            offset: record.offset,
            len: record.len,
            op: record.op.letter(),
        });
    }

    fn finish(self, info: WorkloadInfo) -> TraceStats {
        let mut common: Vec<_> =
            self.size_counts.iter().map(|(&bytes, &requests)| SizeCount { bytes, requests }).collect();
        common.sort_by_key(|size| (std::cmp::Reverse(size.requests), size.bytes));
        common.truncate(16);
        let mut all = self.read_sizes.clone();
        all.merge(&self.write_sizes);
        let (first_ns, last_ns) = self.times.unwrap_or_default();
        let (min_offset, max_end) = self.range.unwrap_or_default();
        TraceStats {
            contract: self.contract.finish(info.has_real_times),
            patterns: self.patterns.finish(),
            info,
            requests: self.requests,
            mix: self.mix,
            first_ns,
            last_ns,
            min_offset,
            max_end,
            touched_bytes: self.windows.touched * GRANULE,
            written_bytes: self.written.len() * GRANULE,
            page_writes: self.page_writes,
            page_overwrites: self.page_overwrites,
            sizes: all.distribution(),
            read_sizes: self.read_sizes.distribution(),
            write_sizes: self.write_sizes.distribution(),
            common_sizes: common,
            alignment: self.alignment.to_vec(),
            inter_arrival_ns: self.gaps.distribution(),
            sequentiality: self.sequentiality,
            windows: self.windows.finish(),
            points: self.points,
        }
    }
}
