//! A workload as streams of cache units, chunk by chunk: memory is bounded, however long the workload and its
//! requests are.

use super::Options;
use crate::Result;
use nandscape_core::{IoRecord, TraceError, TraceReader};
use nandscape_policies::simulate::{Request, Splitter, StackDistances};
use nandscape_sim::Progress;
use nandscape_stack::RunError;
use nandscape_trace::BoxReader;

/// Units of a chunk, of the smallest size of unit. A chunk with its tables still fits into a cache of the
/// second level.
const CHUNK: usize = 1 << 15;

/// Reads a workload once and splits it in several ways at once.
pub(super) struct Feed {
    reader: BoxReader,
    name: String,
    splitters: Vec<Splitter>,
    /// Longer requests come in pieces that end at multiples of it: a multiple of every block. 0 where
    /// requests are objects.
    piece_bytes: u64,
    /// What is left of a request that was too long for one chunk.
    rest: Option<IoRecord>,
    records: u64,
    /// Arrivals of the first and the last request, in nanoseconds.
    span_ns: Option<(u64, u64)>,
}

/// Different blocks of so many bytes that a workload reads and writes; requests where there is no block.
pub fn footprint(
    workload: &str,
    reader: BoxReader,
    block_bytes: Option<u64>,
    options: &Options<'_>,
) -> Result<u64> {
    let mut feed = Feed::new(reader, workload, &[block_bytes]);
    let mut distances = StackDistances::new();
    let mut chunk = vec![Vec::new()];
    loop {
        feed.fill(&mut chunk).map_err(RunError::Trace)?;
        if chunk[0].is_empty() {
            return Ok(distances.blocks());
        }
        distances.feed(&chunk[0]);
        (options.progress)(feed.progress());
        if options.is_stopped() {
            return Err(RunError::Interrupted);
        }
    }
}

/// Blocks of a [`Feed`], in bytes; `None` for requests as objects.
pub(super) type Unit = Option<u64>;

impl Feed {
    /// `units` are powers of two.
    pub(super) fn new(reader: BoxReader, name: &str, units: &[Unit]) -> Self {
        let splitter = |unit: &Unit| match unit {
            Some(bytes) => Splitter::new(*bytes).expect("checked: a power of two"),
            None => Splitter::objects(),
        };
        let blocks = units.iter().flatten();
        let smallest = blocks.clone().min().map_or(0, |bytes| bytes * CHUNK as u64 / 4);
        Self {
            reader,
            name: name.to_owned(),
            splitters: units.iter().map(splitter).collect(),
            piece_bytes: smallest.max(blocks.max().copied().unwrap_or(0)),
            rest: None,
            records: 0,
            span_ns: None,
        }
    }

    /// How much of the workload has been read.
    pub(super) fn progress(&self) -> Progress {
        let expected = self.reader.info().expected_records;
        Progress { preconditioning: false, requests: self.records, expected }
    }

    /// Seconds from the first request read to the last, where time stamps are real and differ.
    pub(super) fn duration_s(&self) -> Option<f64> {
        let (first, last) = self.span_ns.filter(|_| self.reader.info().has_real_times)?;
        (last > first).then(|| (last - first) as f64 / 1e9)
    }

    /// Fills a chunk for each unit, in their order. They are all empty at the end.
    pub(super) fn fill(&mut self, chunks: &mut [Vec<Request>]) -> Result<(), TraceError> {
        chunks.iter_mut().for_each(Vec::clear);
        let (is_objects, cut) = (self.piece_bytes == 0, self.piece_bytes);
        while chunks.iter().all(|chunk| chunk.len() < CHUNK) {
            let mut record = match self.rest.take() {
                Some(rest) => rest,
                None => match self.reader.next() {
                    Some(record) => {
                        self.records += 1;
                        let record = record?;
                        let (first, last) = self.span_ns.unwrap_or((record.at.0, record.at.0));
                        self.span_ns = Some((first, last.max(record.at.0)));
                        record
                    }
                    None => break,
                },
            };
            let end = record.offset.saturating_add(record.len);
            if !is_objects && end / cut != record.offset / cut && record.len > cut {
                let middle = (record.offset / cut + 1) * cut;
                self.rest = Some(IoRecord { offset: middle, len: end - middle, ..record });
                record.len = middle - record.offset;
            }
            for (splitter, chunk) in self.splitters.iter().zip(chunks.iter_mut()) {
                splitter.split(&record, chunk).map_err(|message| TraceError::Record {
                    source_name: self.name.clone(),
                    place: format!("request {}", self.records),
                    message,
                })?;
            }
        }
        Ok(())
    }
}
