//! Plain block ids: one little-endian u32 (or u64) after the other, or one decimal number a line. Reads, no
//! times.

use super::{Confidence, Format};
use crate::binary::{RecordFormat, u32_at, u64_at};
use crate::fields::{scaled, trim, whole};
use crate::gate::{Clock, Parsed};
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, SimTime, TraceOp, keys};

keys! { TEXT_PARAMS:
    BLOCK: u64 = size(1, 1 << 30) or "4k", "bytes of a block";
}

keys! { BINARY_PARAMS:
    BLOCK;
    BITS: String = choice(&["32", "64"]) or "32", "width of an id";
}

pub const TEXT: Format = Format {
    info: Info {
        name: "ids",
        summary: "one decimal block id a line; reads, no times",
        source: "LIRS and caching literature",
        params: TEXT_PARAMS,
    },
    extensions: &["ids", "trc"],
    many_volumes: false,
    detect: |head| head.likely(|line| whole(trim(line), "").is_ok()),
    read: |input, params| {
        Ok(Box::new(input.lines("ids", Clock::None, Ids { block: params.get(BLOCK), bytes: 0 })))
    },
    write: None,
};

pub const BINARY: Format = Format {
    info: Info {
        name: "ids-le",
        summary: "little-endian u32 (or u64) block ids; reads, no times",
        source: "CloudPhysics set of the LIRS2 authors",
        params: BINARY_PARAMS,
    },
    extensions: ENTRY_EXTENSIONS,
    many_volumes: false,
    // Any bytes are block ids, so only the extension can say so.
    detect: |head| Confidence::Possible.if_passed(ENTRY_EXTENSIONS.contains(&head.extension.as_str())),
    read: |input, params| {
        let bytes = if params.get(BITS) == "64" { 8 } else { 4 };
        Ok(Box::new(input.records("ids-le", Clock::None, Ids { block: params.get(BLOCK), bytes })))
    },
    write: None,
};

const ENTRY_EXTENSIONS: &[&str] = &["u32le", "ids32"];

struct Ids {
    block: u64,
    /// Width of a binary id.
    bytes: usize,
}

impl Ids {
    fn record(&self, id: u64) -> Result<Parsed, String> {
        let offset = scaled(id, self.block, "block id")?;
        let (at, len) = (SimTime::ZERO, self.block);
        Ok(Parsed::Io(IoRecord { at, offset, len, volume: 0, hint: 0, op: TraceOp::Read }))
    }
}

impl LineFormat for Ids {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        match trim(line) {
            b"" => Ok(Parsed::Header),
            id => self.record(whole(id, "block id")?),
        }
    }
}

impl RecordFormat for Ids {
    fn record_bytes(&self) -> usize {
        self.bytes
    }

    fn parse(&mut self, record: &[u8]) -> Result<Parsed, String> {
        self.record(if self.bytes == 8 { u64_at(record, 0) } else { u64::from(u32_at(record, 0)) })
    }
}
