//! The native CSV: `ts_us,op,offset,len`.
//!
//! One header line, then one request a line: microseconds (decimals allowed), operation, byte offset, bytes.
//! `R` reads, `W` writes, `D` discards, `Z` writes zeroes and `F` flushes. Zoned devices have five more: `A`
//! appends to the zone whose first byte the offset is, `X` resets a zone, `N` finishes, `O` opens and `C`
//! closes one; of these four the length is 0, or above 0 for every zone of the device. Stores of objects have
//! `c` create, `d` delete, `w` write, `r` read, `t` set the size to the offset, `p` punch, and `f` make one
//! object durable, or with a length above 0 all; the volume is the number of the object. The header may name
//! three more columns, `volume`, `hint` and `kind` (what the file system keeps there: `file-data`,
//! `superblock`, `group-descriptors`, `block-bitmap`, `inode-bitmap`, `inode-table`, `directory` or
//! `journal`), in any order after the four. Time going back is an error.

use super::{Confidence, Format};
use crate::error::shown;
use crate::fields::{decimal, whole, whole32};
use crate::gate::{Clock, Parsed};
use crate::text::LineFormat;
use crate::writer::{lines, unsupported};
use nandscape_core::{BlockKind, Info, IoRecord, Origin, SimTime, TraceOp};
use std::io::Write;

const HEADER: &[u8] = b"ts_us,op,offset,len";

pub const ENTRY: Format = Format {
    info: Info {
        name: "csv",
        summary: "native CSV with the header ts_us,op,offset,len (bytes; op R W D Z F, of zones A X N O C, of objects c d w r t p f)",
        source: "nandscape",
        params: &[],
    },
    extensions: &["csv"],
    many_volumes: true,
    detect: |head| {
        Confidence::Certain.if_passed(head.lines.first().is_some_and(|first| first.starts_with(HEADER)))
    },
    read: |input, _| {
        let format = Csv { extra: Vec::new(), kind: BlockKind::default() };
        Ok(Box::new(input.lines("csv", Clock::Strict, format)))
    },
    write: Some(|out, _| {
        // Objects have numbers and hints. Whether there are any, the first request says.
        let (mut text, mut has_objects) = (Vec::new(), None);
        lines(out, move |out, record| {
            text.clear();
            if has_objects.is_none() {
                CsvLines::header(&mut text, record.op.is_object_op(), record.op.is_object_op());
            }
            let has_objects = *has_objects.get_or_insert(record.op.is_object_op());
            if record.op.is_object_op() && !has_objects {
                return Err(unsupported(record, "csv", "objects from the first request on, or none"));
            }
            CsvLines::line(&mut text, record, has_objects, has_objects);
            out.write_all(&text)
        })
    }),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Volume,
    Hint,
    Kind,
}

struct Csv {
    extra: Vec<Extra>,
    /// Of the last line.
    kind: BlockKind,
}

impl Csv {
    fn header(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let expected =
            || format!("header {}: expected ts_us,op,offset,len[,volume][,hint][,kind]", shown(line));
        let rest = line.strip_prefix(HEADER).ok_or_else(expected)?;
        for column in rest.split(|&b| b == b',').skip(1) {
            let extra = match column {
                b"volume" => Extra::Volume,
                b"hint" => Extra::Hint,
                b"kind" => Extra::Kind,
                _ => return Err(expected()),
            };
            if self.extra.contains(&extra) {
                return Err(expected());
            }
            self.extra.push(extra);
        }
        if !rest.is_empty() && self.extra.is_empty() {
            return Err(expected());
        }
        // The header is not a record of another kind, so it does not count as skipped.
        Ok(Parsed::Header)
    }
}

pub(crate) fn op(field: &[u8]) -> Result<TraceOp, String> {
    let known = if let [letter] = field { TraceOp::of_letter(*letter) } else { None };
    known.ok_or_else(|| {
        format!(
            "op is {}: expected R, W, D, Z or F, or A, X, N, O or C of a zone, or c, d, w, r, t, p or f of an object",
            shown(field)
        )
    })
}

fn kind(text: &[u8]) -> Result<BlockKind, String> {
    let known = BlockKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == text);
    known.ok_or_else(|| {
        let names = BlockKind::ALL.map(BlockKind::name).join(", ");
        format!("kind is {}: expected one of {names}", shown(text))
    })
}

impl LineFormat for Csv {
    fn origin(&self) -> Origin<'_> {
        Origin { kind: self.kind, ..Origin::default() }
    }

    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String> {
        if number == 1 {
            return self.header(line);
        }
        let mut rest = Some(line);
        let mut field = |name: &str| {
            let text = rest.ok_or_else(|| format!("{} ends before its {name}", shown(line)))?;
            let at = memchr::memchr(b',', text);
            rest = at.map(|at| &text[at + 1..]);
            Ok::<_, String>(&text[..at.unwrap_or(text.len())])
        };
        let at = SimTime(decimal(field("time")?, 1000, "ts_us")?);
        let op = op(field("op")?)?;
        let offset = whole(field("offset")?, "offset")?;
        let len = whole(field("len")?, "len")?;
        let (mut volume, mut hint) = (0, 0);
        for extra in &self.extra {
            match extra {
                Extra::Volume => volume = whole32(field("volume")?, "volume")?,
                Extra::Hint => {
                    let text = field("hint")?;
                    hint = u16::try_from(whole(text, "hint")?)
                        .map_err(|_| format!("hint is {}: expected a number up to 65535", shown(text)))?;
                }
                Extra::Kind => self.kind = kind(field("kind")?)?,
            }
        }
        if op.is_object_op() && !self.extra.contains(&Extra::Volume) {
            return Err(format!(
                "operation {} of an object: expected a column volume with its number",
                op.letter()
            ));
        }
        if rest.is_some() {
            return Err(format!("{} has more columns than the header", shown(line)));
        }
        Ok(Parsed::Io(IoRecord { at, offset, len, volume, hint, op }))
    }
}

pub(crate) struct CsvLines;

impl CsvLines {
    pub fn header(out: &mut Vec<u8>, volume: bool, hint: bool) {
        out.extend_from_slice(HEADER);
        out.extend_from_slice(if volume { b",volume" } else { b"" });
        out.extend_from_slice(if hint { b",hint" } else { b"" });
        out.push(b'\n');
    }

    pub fn line(out: &mut Vec<u8>, record: &IoRecord, volume: bool, hint: bool) {
        let ns = record.at.as_ns();
        let (us, rest) = (ns / 1000, ns % 1000);
        let written = (|| {
            write!(out, "{us}")?;
            if rest > 0 {
                write!(out, ".{rest:03}")?;
            }
            write!(out, ",{},{},{}", record.op.letter(), record.offset, record.len)?;
            if volume {
                write!(out, ",{}", record.volume)?;
            }
            if hint {
                write!(out, ",{}", record.hint)?;
            }
            out.write_all(b"\n")
        })();
        written.expect("a vector takes everything");
    }
}
