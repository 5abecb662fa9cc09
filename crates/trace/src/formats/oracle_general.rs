//! libCacheSim's oracleGeneral binary and its variant with operations.
//!
//! Little endian, packed. 24 B: `u32 time_s, u64 obj_id, u32 obj_size, i64 next_access_vtime`. The variant
//! `ops=true`, 27 B: `u32 time_s, u64 obj_id, u32 obj_size, u8 op, u16 namespace, i64 next`; namespaces are
//! volumes. Without operations every request is a read. For block traces the object is the block address:
//! `block` gives its unit (512 B sectors by default).

use super::{Confidence, Format, Head};
use crate::binary::{RecordFormat, u16_at, u32_at, u64_at};
use crate::gate::{Clock, Parsed};
use crate::order::SpreadSeconds;
use nandscape_core::{Info, IoRecord, SimTime, TraceOp, keys};

keys! { PARAMS:
    BLOCK: u64 = size(1, 1 << 30) or "512", "bytes that one step of the object id stands for";
    OPS: bool = flag() or "false", "the 27 B variant with operation and namespace";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "oracle-general",
        summary: "libCacheSim oracleGeneral binary: time, object, size; everything is a read",
        source: "libCacheSim (Yang et al.), traceReader/generalReader",
        params: PARAMS,
    },
    extensions: &["oraclegeneral", "bin"],
    many_volumes: true,
    detect,
    read: |input, params| {
        let format = OracleGeneral { block: params.get(BLOCK), ops: params.get(OPS) };
        Ok(Box::new(SpreadSeconds::new(input.records("oracle-general", Clock::Raw, format))))
    },
    write: None,
};

/// No signature, so only plausible columns: times that never fall far, sizes that are not zero, and a "next"
/// that lies ahead.
fn detect(head: &Head) -> Confidence {
    let mut records = head.bytes.chunks_exact(24);
    let mut last = 0;
    let plausible = records.by_ref().take(2000).enumerate().all(|(index, r)| {
        let (time, size, next) = (u32_at(r, 0), u32_at(r, 12), u64_at(r, 16).cast_signed());
        let in_order = index == 0 || time >= last && time - last < 86_400 * 30;
        last = time;
        in_order && size > 0 && (next == -1 || u64::try_from(next).is_ok_and(|next| next > index as u64))
    });
    Confidence::Possible.if_passed(plausible && head.bytes.len() >= 24)
}

struct OracleGeneral {
    block: u64,
    ops: bool,
}

impl RecordFormat for OracleGeneral {
    fn record_bytes(&self) -> usize {
        if self.ops { 27 } else { 24 }
    }

    fn parse(&mut self, record: &[u8]) -> Result<Parsed, String> {
        let (seconds, object, size) = (u32_at(record, 0), u64_at(record, 4), u32_at(record, 12));
        let (op, volume) = if self.ops {
            (cache_op(record[16]), u32::from(u16_at(record, 17)))
        } else {
            (Some(TraceOp::Read), 0)
        };
        let Some(op) = op else { return Ok(Parsed::Skip) };
        let offset = object
            .checked_mul(self.block)
            .ok_or_else(|| format!("object {object} x {} B exceeds 2^64", self.block))?;
        let at = SimTime(u64::from(seconds) * 1_000_000_000);
        Ok(Parsed::Io(IoRecord { at, offset, len: u64::from(size), volume, hint: 0, op }))
    }
}

/// Operation numbers of the cache traces: 1 get, 2 gets, 3 set, 4 add, 5 cas, 6 replace, 7 append, 8 prepend,
/// 9 delete, 10 incr, 11 decr, 12 read, 13 write.
fn cache_op(code: u8) -> Option<TraceOp> {
    match code {
        0 | 1 | 2 | 12 => Some(TraceOp::Read),
        3..=8 | 10 | 11 | 13 => Some(TraceOp::Write),
        9 => Some(TraceOp::Trim),
        _ => None,
    }
}
