//! DiskSim ASCII traces.
//!
//! `arrival device block size flags`: milliseconds with decimals, blocks of 512 B, `flags` hexadecimal with
//! bit 0 set for reads.

use super::Format;
use crate::error::shown;
use crate::fields::{decimal, sectors, whole32, words};
use crate::gate::{Clock, Parsed};
use crate::text::LineFormat;
use crate::writer::{lines, read_or_write, whole_sectors};
use nandscape_core::{Info, IoRecord, SimTime, TraceOp};
use std::io::Write;

pub const ENTRY: Format = Format {
    info: Info {
        name: "disksim",
        summary: "DiskSim ASCII: arrival (decimal ms) device block size flags(bit 0: read), 512 B blocks",
        source: "DiskSim 4.0 reference manual, section on traces",
        params: &[],
    },
    extensions: &["disksim", "trace"],
    many_volumes: true,
    // Only decimal arrivals tell it from MQSim's form.
    detect: |head| {
        head.likely(|line| Disksim.parse(line, 0).is_ok() && words::<1>(line).0[0].contains(&b'.'))
    },
    read: |input, _| Ok(Box::new(input.lines("disksim", Clock::Clamp, Disksim))),
    write: Some(|out, _| lines(out, line)),
};

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
            offset: sectors(block, "block")?,
            len: sectors(size, "size")?,
            volume: whole32(device, "device")?,
            hint: 0,
            op: if bits & 1 == 1 { TraceOp::Read } else { TraceOp::Write },
        }))
    }
}

fn line(out: &mut dyn Write, record: &IoRecord) -> std::io::Result<()> {
    let flags = read_or_write(record, "disksim", 1, 0)?;
    let (start, size) = whole_sectors(record, "disksim")?;
    let (ms, rest) = (record.at.as_ns() / 1_000_000, record.at.as_ns() % 1_000_000);
    writeln!(out, "{ms}.{rest:06} {} {start} {size} {flags}", record.volume)
}
