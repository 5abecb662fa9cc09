//! FIU (SyLab) traces with content hashes: homes, mail, web-vm, online.
//!
//! `ts_ns pid process lba size R|W major minor md5`, blanks between, sectors. The process name may hold
//! blanks, so lines are taken apart from both ends. The hash is not used yet.

use super::{Confidence, Format};
use crate::error::shown;
use crate::fields::{letter, sectors, whole, whole32};
use crate::gate::{Clock, Parsed, device_number};
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, SimTime};

pub const ENTRY: Format = Format {
    info: Info {
        name: "fiu",
        summary: "FIU: ts_ns pid process lba size R|W major minor md5 (sectors)",
        source: "SNIA IOTTA 390, Koller and Rangaswami, FAST '10",
        params: &[],
    },
    extensions: &["blkparse", "fiu"],
    many_volumes: true,
    detect: |head| Confidence::Certain.if_passed(head.all_lines(|line| Fiu.parse(line, 0).is_ok())),
    read: |input, _| Ok(Box::new(input.lines("fiu", Clock::ClampFromFirst, Fiu))),
    write: None,
};

struct Fiu;

impl LineFormat for Fiu {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Header);
        }
        let bad = || format!("{}: expected ts pid process lba size R|W major minor md5", shown(line));
        let mut words = line.split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty());
        let mut take = || words.next().ok_or_else(bad);
        let (time, pid) = (take()?, take()?);
        let mut back = || words.next_back().ok_or_else(bad);
        let (hash, minor, major, kind, size, lba) = (back()?, back()?, back()?, back()?, back()?, back()?);
        // The process name is what is left, and there must be one.
        words.next().ok_or_else(bad)?;
        whole(pid, "pid")?;
        if !hash.iter().all(u8::is_ascii_hexdigit) {
            return Err(format!("md5 is {}: expected hexadecimal digits", shown(hash)));
        }
        Ok(Parsed::Io(IoRecord {
            at: SimTime(whole(time, "ts")?),
            offset: sectors(lba, "lba")?,
            len: sectors(size, "size")?,
            volume: device_number(whole32(major, "major")?, whole32(minor, "minor")?),
            hint: 0,
            op: letter(kind, "operation")?,
        }))
    }
}
