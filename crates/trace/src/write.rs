//! Conversion to any writable format.

use crate::error::Result;
use crate::error::{io, spec};
use crate::formats;
use nandscape_core::TraceReader;
use std::io::{BufWriter, Write};

/// What [`convert_skipping`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Requests written.
    pub written: u64,
    /// Requests left out because the format cannot hold them.
    pub left_out: u64,
}

/// Writes every request of `reader` to `out` in a format given as `name[:key=value,...]`; returns how many.
///
/// Errors of the reader come back as they are. A request that the format cannot hold (a discard in MSR, a
/// start that is not on a sector in MQSim) is an error that names it. The caller makes the file appear
/// atomically: after an error, what was written is not a valid trace.
pub fn convert(reader: impl TraceReader, format: &str, out: &mut dyn Write) -> Result<u64> {
    run(reader, format, out, false).map(|done| done.written)
}

/// As [`convert`], but requests that the format cannot hold are left out and counted.
pub fn convert_skipping(reader: impl TraceReader, format: &str, out: &mut dyn Write) -> Result<Converted> {
    run(reader, format, out, true)
}

fn run(mut reader: impl TraceReader, format: &str, out: &mut dyn Write, skip: bool) -> Result<Converted> {
    let (entry, params) = formats::by_call(format).map_err(|message| spec(format, message))?;
    let make = entry.write.ok_or_else(|| {
        let writable = formats::FORMATS.iter().filter(|f| f.is_writable()).map(|f| f.info.name);
        spec(format, format!("cannot be written; writable: {}", writable.collect::<Vec<_>>().join(", ")))
    })?;
    let failed = |error: std::io::Error| io("output", error.to_string());
    let mut writer = make(Box::new(BufWriter::with_capacity(256 << 10, out)), &params);
    let mut done = Converted::default();
    for record in reader.by_ref() {
        match writer.write(&record?) {
            Ok(()) => done.written += 1,
            Err(error) if skip && error.kind() == std::io::ErrorKind::InvalidInput => done.left_out += 1,
            Err(error) => return Err(failed(error)),
        }
    }
    writer.finish().map_err(failed)?;
    Ok(done)
}
