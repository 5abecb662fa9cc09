//! Systor '17 virtual desktop traces (Lee et al.).
//!
//! Header `Timestamp,Response,IOType,LUN,Offset,Size`; Unix seconds with nine decimals, response possibly
//! empty, bytes. Lines are not in order; they are sorted in a window.

use super::{Confidence, Format};
use crate::fields::{columns, decimal, letter, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::order::SortWindow;
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, SimTime};

pub const ENTRY: Format = Format {
    info: Info {
        name: "systor",
        summary: "Systor '17 CSV: Timestamp,Response,IOType,LUN,Offset,Size",
        source: "SNIA IOTTA 4964, Lee et al., SYSTOR '17",
        params: &[],
    },
    extensions: &["csv"],
    many_volumes: true,
    detect: |head| Confidence::Certain.if_passed(head.lines.first() == Some(&HEADER)),
    read: |input, _| Ok(Box::new(SortWindow::new(input.lines("systor", Clock::Raw, Systor)))),
    write: None,
};

const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";

struct Systor;

impl LineFormat for Systor {
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String> {
        if line.is_empty() || number == 1 && line == HEADER {
            return Ok(Parsed::Header);
        }
        let [time, _response, kind, lun, offset, size] =
            columns::<6>(line, "Timestamp,Response,IOType,LUN,Offset,Size")?;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(decimal(time, 1_000_000_000, "Timestamp")?),
            offset: whole(offset, "Offset")?,
            len: whole(size, "Size")?,
            volume: whole32(lun, "LUN")?,
            hint: 0,
            op: letter(kind, "IOType")?,
        }))
    }
}
