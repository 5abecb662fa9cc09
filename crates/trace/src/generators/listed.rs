//! A reader over requests that were laid out beforehand, for the small synthetic application loads.

use super::common::info_of;
use crate::error::Result;
use nandscape_core::{IoRecord, SimTime, TraceOp, TraceReader, WorkloadInfo};

/// (offset, length) of write requests in order, `gap_ns` apart.
pub(crate) struct Listed {
    requests: Vec<(u64, u64)>,
    next: usize,
    gap_ns: u64,
    info: WorkloadInfo,
}

impl Listed {
    /// `gap_ns` is absent where the load has no times of its own.
    pub(crate) fn new(name: &str, requests: Vec<(u64, u64)>, gap_ns: Option<u64>) -> Self {
        let info = info_of(name, requests.len() as u64, gap_ns.is_some());
        Self { requests, next: 0, gap_ns: gap_ns.unwrap_or(0), info }
    }
}

impl Iterator for Listed {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let &(offset, len) = self.requests.get(self.next)?;
        let at = SimTime(self.gap_ns * self.next as u64);
        self.next += 1;
        Some(Ok(IoRecord { at, offset, len, volume: 0, hint: 0, op: TraceOp::Write }))
    }
}

impl TraceReader for Listed {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo { records: self.next as u64, ..self.info.clone() }
    }
}
