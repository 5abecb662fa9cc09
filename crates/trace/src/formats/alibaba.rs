//! Alibaba cloud block traces (Li et al., IISWC '20).
//!
//! `device_id,opcode,offset,length,timestamp`, no header: bytes, microseconds of the Unix epoch. Sorted in a
//! window, since 1000 devices were merged.

use super::Format;
use crate::fields::{columns, letter, scaled, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::order::SortWindow;
use crate::text::LineFormat;
use crate::writer::{lines, read_or_write};
use nandscape_core::{Info, IoRecord, SimTime};
use std::io::Write;

pub const ENTRY: Format = Format {
    info: Info {
        name: "alibaba",
        summary: "Alibaba CSV: device_id,R|W,offset,length,timestamp (us)",
        source: "Li et al., IISWC '20; github.com/alibaba/block-traces",
        params: &[],
    },
    extensions: &["csv"],
    many_volumes: true,
    detect: |head| head.likely(|line| Alibaba.parse(line, 0).is_ok()),
    read: |input, _| Ok(Box::new(SortWindow::new(input.lines("alibaba", Clock::Raw, Alibaba)))),
    write: Some(|out, _| lines(out, line)),
};

struct Alibaba;

impl LineFormat for Alibaba {
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String> {
        if line.is_empty() || number == 1 && line.starts_with(b"device_id,") {
            return Ok(Parsed::Header);
        }
        let [device, code, offset, len, time] =
            columns::<5>(line, "device_id,opcode,offset,length,timestamp")?;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(scaled(whole(time, "timestamp")?, 1000, "timestamp")?),
            offset: whole(offset, "offset")?,
            len: whole(len, "length")?,
            volume: whole32(device, "device_id")?,
            hint: 0,
            op: letter(code, "opcode")?,
        }))
    }
}

fn line(out: &mut dyn Write, record: &IoRecord) -> std::io::Result<()> {
    let code = read_or_write(record, "alibaba", 'R', 'W')?;
    let us = record.at.as_ns() / 1000;
    writeln!(out, "{},{code},{},{},{us}", record.volume, record.offset, record.len)
}
