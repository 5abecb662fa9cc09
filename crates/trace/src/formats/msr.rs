//! MSR Cambridge block traces (SNIA IOTTA 388; Narayanan et al., FAST '08).
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: Windows FILETIME (100 ns since 1601),
//! bytes. Files are not strictly in order; they are sorted in a window. Volumes are named `host_disk`, as the
//! files are (`hm_0`).

use super::{Confidence, Format, Head};
use crate::error::shown;
use crate::fields::{columns, scaled, split, whole};
use crate::gate::{Clock, Labels, Parsed};
use crate::order::SortWindow;
use crate::text::LineFormat;
use crate::writer::{lines, read_or_write};
use nandscape_core::{Info, IoRecord, SimTime, TraceOp};
use std::io::Write;

pub const ENTRY: Format = Format {
    info: Info {
        name: "msr",
        summary: "MSR Cambridge CSV: FILETIME,host,disk,Read|Write,offset,size,response",
        source: "SNIA IOTTA 388, Narayanan et al., FAST '08",
        params: &[],
    },
    extensions: &["csv"],
    many_volumes: true,
    detect,
    read: |input, _| Ok(Box::new(SortWindow::new(input.lines("msr", Clock::Raw, Msr::default())))),
    write: Some(|out, _| lines(out, line)),
};

/// FILETIME of the start of the Unix epoch; written traces start there.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

fn detect(head: &Head) -> Confidence {
    let fits = |line: &[u8]| {
        split::<7>(line, b',').is_some_and(|f| {
            f[0].len() >= 17 && whole(f[0], "").is_ok() && op(f[3]).is_ok() && whole(f[4], "").is_ok()
        })
    };
    Confidence::Certain.if_passed(head.all_lines(fits))
}

fn op(field: &[u8]) -> Result<TraceOp, String> {
    match field {
        b"Read" => Ok(TraceOp::Read),
        b"Write" => Ok(TraceOp::Write),
        _ if field.eq_ignore_ascii_case(b"read") => Ok(TraceOp::Read),
        _ if field.eq_ignore_ascii_case(b"write") => Ok(TraceOp::Write),
        _ => Err(format!("type is {}: expected Read or Write", shown(field))),
    }
}

#[derive(Default)]
struct Msr {
    labels: Labels,
    /// `host_disk` of this line, and of the last one with its number.
    buffer: Vec<u8>,
    last: (Vec<u8>, u32),
}

impl LineFormat for Msr {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        if line.is_empty() {
            return Ok(Parsed::Header);
        }
        let [time, host, disk, kind, offset, len, _response] =
            columns::<7>(line, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime")?;
        let at = whole(time, "Timestamp")?
            .checked_sub(UNIX_EPOCH)
            .ok_or_else(|| format!("Timestamp is {}: expected a FILETIME after 1970", shown(time)))?;
        let at = SimTime(scaled(at, 100, "Timestamp")?);
        let op = op(kind)?;
        let offset = whole(offset, "Offset")?;
        let len = whole(len, "Size")?;
        whole(disk, "DiskNumber")?;
        self.buffer.clear();
        self.buffer.extend_from_slice(host);
        self.buffer.push(b'_');
        self.buffer.extend_from_slice(disk);
        if self.buffer != self.last.0 {
            self.last = (self.buffer.clone(), self.labels.id(&self.buffer)?);
        }
        Ok(Parsed::Io(IoRecord { at, offset, len, volume: self.last.1, hint: 0, op }))
    }

    fn label(&self, volume: u32) -> Option<&str> {
        self.labels.name(volume)
    }
}

fn line(out: &mut dyn Write, record: &IoRecord) -> std::io::Result<()> {
    let kind = read_or_write(record, "msr", "Read", "Write")?;
    let ticks = UNIX_EPOCH + record.at.as_ns() / 100;
    writeln!(out, "{ticks},nandscape,{},{kind},{},{},0", record.volume, record.offset, record.len)
}
