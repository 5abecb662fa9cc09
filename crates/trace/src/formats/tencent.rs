//! Tencent cloud block storage traces (Zhang et al., ATC '20).
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`, no header: whole Unix seconds, sectors, 0 read and 1 write. File
//! order is kept, and the requests of one second are spread evenly over it.

use super::Format;
use crate::fields::{columns, digit, scaled, sectors, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::order::SpreadSeconds;
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, SimTime};

pub const ENTRY: Format = Format {
    info: Info {
        name: "tencent",
        summary: "Tencent CBS CSV: Timestamp (s),Offset,Size (sectors),IOType (0 read, 1 write),VolumeID",
        source: "SNIA IOTTA 27917, Zhang et al., ATC '20",
        params: &[],
    },
    extensions: &["csv"],
    many_volumes: true,
    detect: |head| head.likely(|line| Tencent.parse(line, 0).is_ok()),
    read: |input, _| Ok(Box::new(SpreadSeconds::new(input.lines("tencent", Clock::Raw, Tencent)))),
    write: None,
};

struct Tencent;

impl LineFormat for Tencent {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        if line.is_empty() {
            return Ok(Parsed::Header);
        }
        let [time, offset, size, kind, volume] = columns::<5>(line, "Timestamp,Offset,Size,IOType,VolumeID")?;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(scaled(whole(time, "Timestamp")?, 1_000_000_000, "Timestamp")?),
            offset: sectors(offset, "Offset")?,
            len: sectors(size, "Size")?,
            volume: whole32(volume, "VolumeID")?,
            hint: 0,
            op: digit(kind, "IOType")?,
        }))
    }
}
