//! Conversion to any writable format.

use crate::error::Result;
use crate::error::{io, spec};
use crate::formats;
use nandscape_core::TraceReader;
use std::io::{BufWriter, Write};

/// What [`convert`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Requests written.
    pub written: u64,
    /// They were of several volumes, which the reader had laid side by side.
    pub has_volumes: bool,
}

/// Writes every request of `reader` to `out` in a format given as `name[:key=value,...]`; returns how many.
///
/// Errors of the reader come back as they are. A request that the format cannot hold (a discard in MSR, a
/// start that is not on a sector in MQSim) is an error that names it. The caller makes the file appear
/// atomically: after an error, what was written is not a valid trace.
pub fn convert(mut reader: impl TraceReader, format: &str, out: &mut dyn Write) -> Result<Converted> {
    let (entry, params) = formats::by_call(format).map_err(|message| spec(format, message))?;
    let make = entry.write.ok_or_else(|| {
        let writable = formats::FORMATS.iter().filter(|f| f.is_writable()).map(|f| f.info.name);
        spec(format, format!("cannot be written; writable: {}", writable.collect::<Vec<_>>().join(", ")))
    })?;
    let failed = |error: std::io::Error| io("output", error.to_string());
    let mut writer = make(Box::new(BufWriter::with_capacity(256 << 10, out)), &params);
    let mut done = Converted::default();
    let mut first = None;
    while let Some(record) = reader.next() {
        let record = record?;
        writer.write(&record).map_err(failed)?;
        done.written += 1;
        if !record.op.is_object_op() {
            let volume = reader.origin().volume;
            done.has_volumes |= *first.get_or_insert(volume) != volume;
        }
    }
    writer.finish().map_err(failed)?;
    Ok(done)
}
