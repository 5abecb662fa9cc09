//! Alibaba cloud block traces (Li et al., IISWC '20).
//!
//! `device_id,opcode,offset,length,timestamp`, no header: bytes, microseconds of the Unix epoch. Sorted in a
//! window, since 1000 devices were merged.

use super::{Confidence, Format, Head, Input};
use crate::error::shown;
use crate::fields::{scaled, split, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::order::SortWindow;
use crate::text::{LineFormat, TextReader};
use crate::write::{RecordWriter, unsupported};
use nandscape_core::{Info, IoRecord, Op, SimTime};
use std::io::Write;

/// Registry entry.
pub const ENTRY: Format = Format {
    info: Info {
        name: "alibaba",
        summary: "Alibaba CSV: device_id,R|W,offset,length,timestamp (us)",
        source: "Li et al., IISWC '20; github.com/alibaba/block-traces",
        params: &[],
    },
    extensions: &["csv"],
    many_volumes: true,
    detect,
    read: |Input { bytes, name, settings }, _| {
        Ok(Box::new(SortWindow::new(TextReader::new(
            bytes,
            &name,
            "alibaba",
            Clock::Raw,
            &settings,
            Alibaba,
        ))))
    },
    write: Some(|out, _| Box::new(Writer { out })),
};

fn detect(head: &Head) -> Confidence {
    head.likely(|line| Alibaba.parse(line, 0).is_ok())
}

struct Alibaba;

impl LineFormat for Alibaba {
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String> {
        if line.is_empty() || number == 1 && line.starts_with(b"device_id,") {
            return Ok(Parsed::Header);
        }
        let [device, code, offset, len, time] = split::<5>(line, b',').ok_or_else(|| {
            format!("{}: expected 5 columns, device_id,opcode,offset,length,timestamp", shown(line))
        })?;
        let op = match code {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err(format!("opcode is {}: expected R or W", shown(code))),
        };
        Ok(Parsed::Io(IoRecord {
            at: SimTime(scaled(whole(time, "timestamp")?, 1000, "timestamp")?),
            offset: whole(offset, "offset")?,
            len: whole(len, "length")?,
            volume: whole32(device, "device_id")?,
            hint: 0,
            op,
        }))
    }
}

struct Writer<'a> {
    out: Box<dyn Write + 'a>,
}

impl RecordWriter for Writer<'_> {
    fn write(&mut self, record: &IoRecord) -> std::io::Result<()> {
        let code = match record.op {
            Op::Read => 'R',
            Op::Write => 'W',
            _ => return Err(unsupported(record, "alibaba", "reads and writes only")),
        };
        let us = record.at.as_ns() / 1000;
        writeln!(self.out, "{},{code},{},{},{us}", record.volume, record.offset, record.len)
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
