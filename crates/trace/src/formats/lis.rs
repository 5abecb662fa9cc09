//! Traces of the ARC paper (`.lis`; Megiddo and Modha, FAST '03).
//!
//! `start_block count ignored request_no`, blanks between; no operation (taken as reads) and no time.

use super::Format;
use crate::error::shown;
use crate::fields::{scaled, whole, words};
use crate::gate::{Clock, Parsed};
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, SimTime, TraceOp, keys};

keys! { PARAMS:
    BLOCK: u64 = size(1, 1 << 30) or "512", "bytes of a block: 512 or 4k, depending on the set";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "lis",
        summary: "ARC .lis: start_block count ignored request_no; reads, no times",
        source: "Megiddo and Modha, FAST '03",
        params: PARAMS,
    },
    extensions: &["lis"],
    many_volumes: false,
    detect: |head| head.likely(|line| Lis { block: 1 }.parse(line, 0).is_ok()),
    read: |input, params| Ok(Box::new(input.lines("lis", Clock::None, Lis { block: params.get(BLOCK) }))),
    write: None,
};

struct Lis {
    block: u64,
}

impl LineFormat for Lis {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        let ([start, blocks, _, number], count) = words::<4>(line);
        if count == 0 {
            return Ok(Parsed::Header);
        }
        if count != 4 {
            return Err(format!("{}: expected 4 columns, start_block count ignored request_no", shown(line)));
        }
        whole(number, "request_no")?;
        Ok(Parsed::Io(IoRecord {
            at: SimTime::ZERO,
            offset: scaled(whole(start, "start_block")?, self.block, "start_block")?,
            len: scaled(whole(blocks, "count")?, self.block, "count")?,
            volume: 0,
            hint: 0,
            op: TraceOp::Read,
        }))
    }
}
