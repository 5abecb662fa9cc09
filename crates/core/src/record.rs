//! One request of a workload, and the contract of those that read them.

use crate::addr::Extent;
use crate::command::{BlockCommand, Op};
use crate::ftl::Hint;
use crate::origin::Origin;
use crate::time::SimTime;
use serde::Serialize;

/// What a request of a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TraceOp {
    /// `R`
    Read,
    /// `W`
    Write,
    /// `D`: discard (trim).
    Trim,
    /// `Z`: discard that reads as zeroes.
    WriteZeroes,
    /// `F`: flush barrier; offset and length are 0.
    Flush,
}

impl TraceOp {
    /// The letter of the native CSV.
    pub const fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Trim => 'D',
            Self::WriteZeroes => 'Z',
            Self::Flush => 'F',
        }
    }
}

impl From<TraceOp> for Op {
    #[inline]
    fn from(op: TraceOp) -> Self {
        match op {
            TraceOp::Read => Self::Read,
            TraceOp::Write => Self::Write,
            TraceOp::Trim => Self::Trim,
            TraceOp::WriteZeroes => Self::WriteZeroes,
            TraceOp::Flush => Self::Flush,
        }
    }
}

impl From<Op> for TraceOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Trim => Self::Trim,
            Op::WriteZeroes => Self::WriteZeroes,
            Op::Flush => Self::Flush,
        }
    }
}

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRecord {
    /// Arrival, relative to the first request of the workload's own clock (which need not be 0).
    pub at: SimTime,
    /// First byte, inside `volume`.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Volume, disk or LUN the request addresses; 0 where the format has none. Readers that know several
    /// volumes leave them apart; the workload layer lays them side by side or filters them.
    pub volume: u32,
    /// Write-lifetime hint or stream id, 0 where there is none.
    pub hint: u16,
    /// What it does.
    pub op: TraceOp,
}

impl From<&IoRecord> for BlockCommand {
    #[inline]
    fn from(record: &IoRecord) -> Self {
        Self::new(record.op.into(), Extent::new(record.offset, record.len), Hint(record.hint))
    }
}

/// What a reader knows about its workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkloadInfo {
    /// Format or generator name, as in its registry.
    pub format: String,
    /// Whether the time stamps are real, so that an open-loop replay makes sense.
    pub has_real_times: bool,
    /// Requests read so far.
    pub records: u64,
    /// Requests whose time stamp went back and was clamped or sorted (formats whose public files do that).
    pub time_reversals: u64,
    /// Lines or records skipped because they are not I/O (plug lines, summaries, non-data SCSI commands).
    pub skipped: u64,
    /// Total requests, where it is known before reading (binary formats, generators).
    pub expected_records: Option<u64>,
}

/// A workload could not be read. The message names the file, the line or byte offset, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TraceError {
    #[error("{source_name}: {place}: {message}")]
    Record {
        source_name: String,
        place: String,
        /// What is wrong, with the value and what was expected.
        message: String,
    },
    #[error("{source_name}: {message}")]
    Io { source_name: String, message: String },
    #[error("workload '{spec}': {message}")]
    Spec {
        spec: String,
        /// What is wrong, with the key, the value and what was expected.
        message: String,
    },
}

/// Reads a workload record by record.
///
/// Errors carry the line or offset. After an error the reader is finished and yields `None`.
pub trait TraceReader: Iterator<Item = Result<IoRecord, TraceError>> {
    /// What is known so far; final after the last record.
    fn info(&self) -> WorkloadInfo;

    /// Who issued the record that was returned last. Formats that know nothing say so.
    fn origin(&self) -> Origin<'_> {
        Origin::default()
    }
}

impl<R: TraceReader + ?Sized> TraceReader for Box<R> {
    fn info(&self) -> WorkloadInfo {
        (**self).info()
    }

    fn origin(&self) -> Origin<'_> {
        (**self).origin()
    }
}
