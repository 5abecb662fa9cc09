//! SPC traces (UMass: Financial1/2, WebSearch).
//!
//! `ASU,LBA,Size,Opcode,Timestamp[,...]`: LBA in 512 B blocks of its unit, size in bytes, `R`/`W` in either
//! case, seconds with decimals. Blanks after commas and further columns occur. Each ASU is a volume.

use super::Format;
use crate::error::shown;
use crate::fields::{columns, decimal, sectors, split, trim, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::text::LineFormat;
use crate::writer::{lines, read_or_write, unsupported};
use nandscape_core::{Info, IoRecord, SimTime, TraceOp};
use std::io::Write;

pub const ENTRY: Format = Format {
    info: Info {
        name: "spc",
        summary: "SPC: ASU,LBA (512 B),size (bytes),R|W,seconds",
        source: "SPC trace file format 1.0.1; UMass trace repository",
        params: &[],
    },
    extensions: &["spc"],
    many_volumes: true,
    detect: |head| {
        let has_decimals =
            |line: &[u8]| split::<5>(line, b',').is_some_and(|fields| fields[4].contains(&b'.'));
        head.likely(|line| Spc.parse(line, 0).is_ok() && has_decimals(line))
    },
    read: |input, _| Ok(Box::new(input.lines("spc", Clock::Clamp, Spc))),
    write: Some(|out, _| lines(out, line)),
};

struct Spc;

impl LineFormat for Spc {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        if line.is_empty() {
            return Ok(Parsed::Header);
        }
        let fields = columns::<5>(line, "ASU,LBA,Size,Opcode,Timestamp")?;
        let [asu, lba, size, code, rest] = fields.map(trim);
        let stamp = trim(rest.split(|&b| b == b',').next().unwrap_or(rest));
        let op = match code {
            b"R" | b"r" => TraceOp::Read,
            b"W" | b"w" => TraceOp::Write,
            _ => return Err(format!("Opcode is {}: expected R or W", shown(code))),
        };
        Ok(Parsed::Io(IoRecord {
            at: SimTime(decimal(stamp, 1_000_000_000, "Timestamp")?),
            offset: sectors(lba, "LBA")?,
            len: whole(size, "Size")?,
            volume: whole32(asu, "ASU")?,
            hint: 0,
            op,
        }))
    }
}

fn line(out: &mut dyn Write, record: &IoRecord) -> std::io::Result<()> {
    let code = read_or_write(record, "spc", 'R', 'W')?;
    let IoRecord { offset, len, volume, .. } = record;
    if !offset.is_multiple_of(512) {
        return Err(unsupported(record, "spc", "starts on 512 B"));
    }
    let (seconds, rest) = (record.at.as_ns() / 1_000_000_000, record.at.as_ns() % 1_000_000_000);
    writeln!(out, "{volume},{},{len},{code},{seconds}.{rest:09}", offset / 512)
}
