//! MQSim and SSDsim ASCII traces.
//!
//! `arrival device start size type`, blanks between; start and size in 512 B sectors; type 0 is a **write**
//! and 1 a read. The unit of the integer arrival time is not in the file: SSDsim uses ns, MQSim what its
//! workload file says.

use super::Format;
use crate::error::shown;
use crate::fields::{scaled, sectors, whole, whole32, words};
use crate::gate::{Clock, Parsed};
use crate::text::LineFormat;
use crate::writer::{lines, read_or_write, whole_sectors};
use nandscape_core::{Info, IoRecord, Params, SimTime, TraceOp, keys};
use std::io::Write;

keys! { PARAMS:
    UNIT: String = choice(&["ps", "ns", "us", "ms"]) or "ns", "unit of the arrival times";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "mqsim",
        summary: "MQSim/SSDsim ASCII: arrival device start size type(0 write, 1 read), sectors",
        source: "MQSim (FAST '18) and SSDsim trace readers",
        params: PARAMS,
    },
    extensions: &["mqsim", "ssdsim", "ascii", "trace"],
    many_volumes: true,
    detect: |head| {
        let unit = Unit { multiply: 1, divide: 1 };
        head.likely(|line| Mqsim { unit }.parse(line, 0).is_ok())
    },
    read: |input, params| Ok(Box::new(input.lines("mqsim", Clock::Clamp, Mqsim { unit: Unit::of(params) }))),
    write: Some(|out, params| {
        let unit = Unit::of(params);
        lines(out, move |out, record| line(out, record, unit))
    }),
};

/// Times are `stamp x multiply / divide` ns.
#[derive(Clone, Copy)]
struct Unit {
    multiply: u64,
    divide: u64,
}

impl Unit {
    fn of(params: &Params) -> Self {
        let (multiply, divide) = match params.get(UNIT) {
            "ps" => (1, 1000),
            "us" => (1000, 1),
            "ms" => (1_000_000, 1),
            _ => (1, 1),
        };
        Self { multiply, divide }
    }
}

struct Mqsim {
    unit: Unit,
}

impl LineFormat for Mqsim {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        let ([arrival, device, start, size, kind], count) = words::<5>(line);
        if count == 0 {
            return Ok(Parsed::Header);
        }
        if count != 5 {
            return Err(format!("{}: expected 5 columns, arrival device start size type", shown(line)));
        }
        let op = match kind {
            b"0" => TraceOp::Write,
            b"1" => TraceOp::Read,
            _ => return Err(format!("type is {}: expected 0 (write) or 1 (read)", shown(kind))),
        };
        let stamp = scaled(whole(arrival, "arrival")?, self.unit.multiply, "arrival")? / self.unit.divide;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(stamp),
            offset: sectors(start, "start")?,
            len: sectors(size, "size")?,
            volume: whole32(device, "device")?,
            hint: 0,
            op,
        }))
    }
}

fn line(out: &mut dyn Write, record: &IoRecord, unit: Unit) -> std::io::Result<()> {
    let kind = read_or_write(record, "mqsim", 1, 0)?;
    let (start, size) = whole_sectors(record, "mqsim")?;
    let stamp = u128::from(record.at.as_ns()) * u128::from(unit.divide) / u128::from(unit.multiply);
    writeln!(out, "{stamp} {} {start} {size} {kind}", record.volume)
}
