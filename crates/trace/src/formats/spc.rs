//! SPC traces (UMass: Financial1/2, WebSearch).
//!
//! `ASU,LBA,Size,Opcode,Timestamp[,...]`: LBA in 512 B blocks of its unit, size in bytes, `R`/`W` in either
//! case, seconds with decimals. Blanks after commas and further columns occur. Each ASU is a volume.

use super::{Confidence, Format, Head, Input};
use crate::error::shown;
use crate::fields::{decimal, scaled, split, trim, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::text::{LineFormat, TextReader};
use crate::write::{RecordWriter, unsupported};
use nandscape_core::{Info, IoRecord, Op, SimTime};
use std::io::Write;

/// Registry entry.
pub const ENTRY: Format = Format {
    info: Info {
        name: "spc",
        summary: "SPC: ASU,LBA (512 B),size (bytes),R|W,seconds",
        source: "SPC trace file format 1.0.1; UMass trace repository",
        params: &[],
    },
    extensions: &["spc"],
    many_volumes: true,
    detect,
    read: |Input { bytes, name, settings }, _| {
        Ok(Box::new(TextReader::new(bytes, &name, "spc", Clock::Clamp, &settings, Spc)))
    },
    write: Some(|out, _| Box::new(Writer { out })),
};

fn detect(head: &Head) -> Confidence {
    head.likely(|line| {
        Spc.parse(line, 0).is_ok() && split::<5>(line, b',').is_some_and(|f| f[4].contains(&b'.'))
    })
}

struct Spc;

impl LineFormat for Spc {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        if line.is_empty() {
            return Ok(Parsed::Header);
        }
        let fields = split::<5>(line, b',')
            .ok_or_else(|| format!("{}: expected 5 columns, ASU,LBA,Size,Opcode,Timestamp", shown(line)))?;
        let [asu, lba, size, code, rest] = fields.map(trim);
        let stamp = trim(rest.split(|&b| b == b',').next().unwrap_or(rest));
        let op = match code {
            b"R" | b"r" => Op::Read,
            b"W" | b"w" => Op::Write,
            _ => return Err(format!("Opcode is {}: expected R or W", shown(code))),
        };
        Ok(Parsed::Io(IoRecord {
            at: SimTime(decimal(stamp, 1_000_000_000, "Timestamp")?),
            offset: scaled(whole(lba, "LBA")?, 512, "LBA")?,
            len: whole(size, "Size")?,
            volume: whole32(asu, "ASU")?,
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
            _ => return Err(unsupported(record, "spc", "reads and writes only")),
        };
        if !record.offset.is_multiple_of(512) {
            return Err(unsupported(record, "spc", "starts on 512 B"));
        }
        let ns = record.at.as_ns();
        let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        writeln!(
            self.out,
            "{},{},{},{code},{seconds}.{rest:09}",
            record.volume,
            record.offset / 512,
            record.len
        )
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
