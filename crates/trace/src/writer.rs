//! What the writers of all formats share.

use nandscape_core::{IoRecord, TraceOp};
use std::io::{Error, ErrorKind, Result, Write};

pub(crate) trait RecordWriter {
    /// Writes one request. An error of kind `InvalidInput` says that the format has no such request.
    fn write(&mut self, record: &IoRecord) -> Result<()>;

    fn finish(&mut self) -> Result<()>;
}

/// A writer that calls `line` for each request, and has nothing to add at the end.
pub(crate) fn lines<'a>(
    out: Box<dyn Write + 'a>,
    line: impl FnMut(&mut dyn Write, &IoRecord) -> Result<()> + 'a,
) -> Box<dyn RecordWriter + 'a> {
    Box::new(LineWriter { out, line })
}

struct LineWriter<'a, L> {
    out: Box<dyn Write + 'a>,
    line: L,
}

impl<L: FnMut(&mut dyn Write, &IoRecord) -> Result<()>> RecordWriter for LineWriter<'_, L> {
    fn write(&mut self, record: &IoRecord) -> Result<()> {
        (self.line)(&mut *self.out, record)
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush()
    }
}

/// The word of a format for a read or a write; an error for any other request.
pub(crate) fn read_or_write<T>(record: &IoRecord, format: &str, read: T, write: T) -> Result<T> {
    match record.op {
        TraceOp::Read => Ok(read),
        TraceOp::Write => Ok(write),
        _ => Err(unsupported(record, format, "reads and writes only")),
    }
}

/// Start and length in sectors of 512 B; an error for a request that is not of whole ones.
pub(crate) fn whole_sectors(record: &IoRecord, format: &str) -> Result<(u64, u64)> {
    if !(record.offset | record.len).is_multiple_of(512) {
        return Err(unsupported(record, format, "starts and lengths on 512 B"));
    }
    Ok((record.offset / 512, record.len / 512))
}

pub(crate) fn unsupported(record: &IoRecord, format: &str, expected: &str) -> Error {
    let IoRecord { offset, len, op, .. } = record;
    let request = format!("{} at {offset} of {len} B", op.letter());
    Error::new(ErrorKind::InvalidInput, format!("format {format} cannot hold {request}: expected {expected}"))
}
