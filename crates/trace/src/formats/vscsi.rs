//! CloudPhysics vscsi binary traces (Waldspurger et al., FAST '15), versions 1 and 2.
//!
//! Little endian, no file header; the high byte of each record's `ver` says which layout it has.
//! v1, 32 B: `u32 sn, u32 len, u32 nSG, u16 cmd, u16 ver, u64 lbn, u64 ts`;
//! v2, 40 B: `u16 cmd, u16 ver, u32 sn, u32 len, u32 nSG, u64 lbn, u64 ts, u64 rt`.
//! Lengths in bytes, `lbn` in 512 B sectors, microseconds. SCSI reads and writes are requests, UNMAP and
//! WRITE SAME discards, SYNCHRONIZE CACHE a flush; other commands are skipped.

use super::{Confidence, Format};
use crate::binary::{RecordFormat, u16_at, u32_at, u64_at};
use crate::gate::{Clock, Parsed};
use nandscape_core::{Info, IoRecord, SimTime, TraceOp, keys};

keys! { PARAMS:
    VERSION: u64 = int(0, 2) or "0", "record layout; found from the content if 0";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "vscsi",
        summary: "CloudPhysics vscsi binary, version 1 (32 B records) or 2 (40 B)",
        source: "Waldspurger et al., FAST '15; libCacheSim's reader",
        params: PARAMS,
    },
    extensions: &["vscsi", "vscsi1", "vscsi2", "vscsitrace"],
    many_volumes: false,
    detect: |head| Confidence::Certain.if_passed(layout_of(head.bytes, 8).is_some()),
    read: |input, params| {
        let (head, input) = input.head()?;
        let version = match params.get(VERSION) {
            0 => layout_of(&head, 2)
                .ok_or("offset 0: neither version 1 nor version 2: give vscsi:version=1 or 2")?,
            1 => Version::One,
            _ => Version::Two,
        };
        Ok(Box::new(input.records("vscsi", Clock::ClampFromFirst, Vscsi { version })))
    },
    write: None,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }

    /// `cmd` and `ver`.
    fn tag(self, record: &[u8]) -> (u16, u16) {
        match self {
            Self::One => (u16_at(record, 12), u16_at(record, 14)),
            Self::Two => (u16_at(record, 0), u16_at(record, 2)),
        }
    }

    fn fits(self, record: &[u8]) -> bool {
        let (cmd, ver) = self.tag(record);
        let high = match self {
            Self::One => 1,
            Self::Two => 2,
        };
        ver >> 8 == high && cmd <= 0xff
    }
}

/// The layout that the first records agree on (fewer where there are fewer).
fn layout_of(head: &[u8], records: usize) -> Option<Version> {
    [Version::One, Version::Two].into_iter().find(|version| {
        let size = version.bytes();
        head.len() >= size && head.chunks_exact(size).take(records).all(|record| version.fits(record))
    })
}

struct Vscsi {
    version: Version,
}

impl RecordFormat for Vscsi {
    fn record_bytes(&self) -> usize {
        self.version.bytes()
    }

    fn parse(&mut self, record: &[u8]) -> Result<Parsed, String> {
        if !self.version.fits(record) {
            let (cmd, ver) = self.version.tag(record);
            return Err(format!(
                "version field {ver:#06x} with command {cmd:#x}: expected the layout of the first record"
            ));
        }
        let (cmd, _) = self.version.tag(record);
        let (len, lbn, us) = match self.version {
            Version::One => (u32_at(record, 4), u64_at(record, 16), u64_at(record, 24)),
            Version::Two => (u32_at(record, 8), u64_at(record, 16), u64_at(record, 24)),
        };
        let op = match cmd {
            0x08 | 0x28 | 0x88 | 0xa8 => TraceOp::Read,
            0x0a | 0x2a | 0x8a | 0xaa => TraceOp::Write,
            0x41 | 0x42 | 0x93 => TraceOp::Trim,
            0x35 | 0x91 => TraceOp::Flush,
            _ => return Ok(Parsed::Skip),
        };
        let offset = lbn.checked_mul(512).ok_or_else(|| format!("lbn {lbn}: expected one below 2^55"))?;
        let at = us.checked_mul(1000).ok_or_else(|| format!("time stamp {us} us: too late"))?;
        Ok(Parsed::Io(IoRecord { at: SimTime(at), offset, len: u64::from(len), volume: 0, hint: 0, op }))
    }
}
