//! DiskSim ASCII traces.
//!
//! `arrival device block size flags`: milliseconds with decimals, blocks of 512 B, `flags` hexadecimal with
//! bit 0 set for reads.

use super::{Confidence, Format, Head, Input};
use crate::error::shown;
use crate::fields::{decimal, scaled, whole, whole32, words};
use crate::gate::{Clock, Parsed};
use crate::text::{LineFormat, TextReader};
use crate::write::{RecordWriter, unsupported};
use nandscape_core::{Info, IoRecord, Op, SimTime};
use std::io::Write;

/// Registry entry.
pub const ENTRY: Format = Format {
    info: Info {
        name: "disksim",
        summary: "DiskSim ASCII: arrival (decimal ms) device block size flags(bit 0: read), 512 B blocks",
        source: "DiskSim 4.0 reference manual, section on traces",
        params: &[],
    },
    extensions: &["disksim", "trace"],
    many_volumes: true,
    detect,
    read: |Input { bytes, name, settings }, _| {
        Ok(Box::new(TextReader::new(bytes, &name, "disksim", Clock::Clamp, &settings, Disksim)))
    },
    write: Some(|out, _| Box::new(Writer { out })),
};

/// Only decimal arrivals tell it from MQSim's form.
fn detect(head: &Head) -> Confidence {
    head.likely(|line| Disksim.parse(line, 0).is_ok() && words::<1>(line).0[0].contains(&b'.'))
}

struct Disksim;

impl LineFormat for Disksim {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        let ([arrival, device, block, size, flags], count) = words::<5>(line);
        if count == 0 {
            return Ok(Parsed::Header);
        }
        if count != 5 {
            return Err(format!("{}: expected 5 columns, arrival device block size flags", shown(line)));
        }
        let bits = std::str::from_utf8(flags)
            .ok()
            .and_then(|text| u32::from_str_radix(text, 16).ok())
            .ok_or_else(|| format!("flags is {}: expected a hexadecimal number", shown(flags)))?;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(decimal(arrival, 1_000_000, "arrival")?),
            offset: scaled(whole(block, "block")?, 512, "block")?,
            len: scaled(whole(size, "size")?, 512, "size")?,
            volume: whole32(device, "device")?,
            hint: 0,
            op: if bits & 1 == 1 { Op::Read } else { Op::Write },
        }))
    }
}

struct Writer<'a> {
    out: Box<dyn Write + 'a>,
}

impl RecordWriter for Writer<'_> {
    fn write(&mut self, record: &IoRecord) -> std::io::Result<()> {
        let flags = match record.op {
            Op::Read => 1,
            Op::Write => 0,
            _ => return Err(unsupported(record, "disksim", "reads and writes only")),
        };
        if !(record.offset | record.len).is_multiple_of(512) {
            return Err(unsupported(record, "disksim", "starts and lengths on 512 B"));
        }
        let ns = record.at.as_ns();
        let (ms, rest) = (ns / 1_000_000, ns % 1_000_000);
        let (start, size) = (record.offset / 512, record.len / 512);
        writeln!(self.out, "{ms}.{rest:06} {} {start} {size} {flags}", record.volume)
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
