//! MQSim and SSDsim ASCII traces.
//!
//! `arrival device start size type`, blanks between; start and size in 512 B sectors; type 0 is a **write**
//! and 1 a read. The unit of the integer arrival time is not in the file: SSDsim uses ns, MQSim what its
//! workload file says.

use super::{Confidence, Format, Head, Input};
use crate::error::shown;
use crate::fields::{scaled, whole, whole32, words};
use crate::gate::{Clock, Parsed};
use crate::text::{LineFormat, TextReader};
use crate::write::{RecordWriter, unsupported};
use nandscape_core::{Info, IoRecord, Op, Param, ParamKind, Params, SimTime};
use std::io::Write;

/// Registry entry.
pub const ENTRY: Format = Format {
    info: Info {
        name: "mqsim",
        summary: "MQSim/SSDsim ASCII: arrival device start size type(0 write, 1 read), sectors",
        source: "MQSim (FAST '18) and SSDsim trace readers",
        params: &[Param {
            name: "unit",
            summary: "unit of the arrival times",
            kind: ParamKind::Choice { of: &["ps", "ns", "us", "ms"] },
            default: "ns",
        }],
    },
    extensions: &["mqsim", "ssdsim", "ascii", "trace"],
    many_volumes: true,
    detect,
    read: |Input { bytes, name, settings }, params| {
        let format = Mqsim { unit: Unit::of(params) };
        Ok(Box::new(TextReader::new(bytes, &name, "mqsim", Clock::Clamp, &settings, format)))
    },
    write: Some(|out, params| Box::new(Writer { out, unit: Unit::of(params) })),
};

/// Times are `stamp x multiply / divide` ns.
#[derive(Clone, Copy)]
struct Unit {
    multiply: u64,
    divide: u64,
}

impl Unit {
    fn of(params: &Params) -> Self {
        let (multiply, divide) = match params.text("unit") {
            "ps" => (1, 1000),
            "us" => (1000, 1),
            "ms" => (1_000_000, 1),
            _ => (1, 1),
        };
        Self { multiply, divide }
    }
}

fn detect(head: &Head) -> Confidence {
    let fits = |line: &[u8]| Mqsim { unit: Unit { multiply: 1, divide: 1 } }.parse(line, 0).is_ok();
    head.likely(fits)
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
            b"0" => Op::Write,
            b"1" => Op::Read,
            _ => return Err(format!("type is {}: expected 0 (write) or 1 (read)", shown(kind))),
        };
        let stamp = scaled(whole(arrival, "arrival")?, self.unit.multiply, "arrival")? / self.unit.divide;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(stamp),
            offset: scaled(whole(start, "start")?, 512, "start")?,
            len: scaled(whole(size, "size")?, 512, "size")?,
            volume: whole32(device, "device")?,
            hint: 0,
            op,
        }))
    }
}

struct Writer<'a> {
    out: Box<dyn Write + 'a>,
    unit: Unit,
}

impl RecordWriter for Writer<'_> {
    fn write(&mut self, record: &IoRecord) -> std::io::Result<()> {
        let kind = match record.op {
            Op::Read => 1,
            Op::Write => 0,
            _ => return Err(unsupported(record, "mqsim", "reads and writes only")),
        };
        if !(record.offset | record.len).is_multiple_of(512) {
            return Err(unsupported(record, "mqsim", "starts and lengths on 512 B"));
        }
        let stamp =
            u128::from(record.at.as_ns()) * u128::from(self.unit.divide) / u128::from(self.unit.multiply);
        writeln!(self.out, "{stamp} {} {} {} {kind}", record.volume, record.offset / 512, record.len / 512)
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
