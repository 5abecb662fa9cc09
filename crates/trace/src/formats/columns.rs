//! Column-mapped text: any file with one request a line.
//!
//! `time=0:us,op=3,offset=4:sectors,len=5,volume=1,header=1,sep=comma`: columns count from 0; a unit may
//! follow a colon. Lines are sorted by time in a window, as in the public formats.

use super::{Confidence, Format};
use crate::error::shown;
use crate::fields::{decimal, scaled, trim, whole, whole32};
use crate::gate::{Clock, Labels, Parsed};
use crate::order::SortWindow;
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, Key, Params, SimTime, TraceOp, keys, units};

keys! { PARAMS:
    TIME: Option<String> = text(), "column[:s|ms|us|ns|filetime], decimals allowed; no times if absent";
    OP: Option<String> = text(), "column, or R or W for all requests";
    OFFSET: Option<String> = text(), "column[:bytes|sectors|SIZE]";
    LEN: Option<String> = text(), "column[:bytes|sectors|SIZE], or a size for all requests";
    VOLUME: Option<String> = text(), "column, a number or a name";
    READ: Option<String> = text(), "what the op column says for a read, where it is not R or read";
    WRITE: Option<String> = text(), "what the op column says for a write, where it is not W or write";
    HEADER: u64 = int(0, 1000) or "0", "lines to pass over at the start";
    SEP: String = choice(&["comma", "tab", "blank", "semicolon", "pipe"]) or "comma",
        "what stands between columns; runs of blanks count as one";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "columns",
        summary: "any text with one request a line, by a map of its columns",
        source: "nandscape",
        params: PARAMS,
    },
    extensions: &[],
    many_volumes: true,
    detect: |_| Confidence::No,
    read: |input, params| {
        let format = Columns::new(params)?;
        if format.time.is_none() {
            return Ok(Box::new(input.lines("columns", Clock::None, format)));
        }
        Ok(Box::new(SortWindow::new(input.lines("columns", Clock::Raw, format))))
    },
    write: None,
};

/// Columns beyond this one cannot be mapped.
const COLUMNS_MAX: usize = 64;

const WORDS: [(&[&str], TraceOp); 4] = [
    (&["r", "read", "rs"], TraceOp::Read),
    (&["w", "write", "ws"], TraceOp::Write),
    (&["d", "discard", "trim", "unmap"], TraceOp::Trim),
    (&["f", "flush", "sync"], TraceOp::Flush),
];

#[derive(Clone, Copy)]
struct Column {
    index: usize,
    unit: u64,
}

enum OpFrom {
    All(TraceOp),
    Column(usize),
}

enum LenFrom {
    All(u64),
    Column(Column),
}

struct Columns {
    time: Option<Column>,
    op: OpFrom,
    offset: Column,
    len: LenFrom,
    volume: Option<usize>,
    read: Vec<u8>,
    write: Vec<u8>,
    header: u64,
    separator: u8,
    labels: Labels,
}

fn column(
    key: Key<Option<String>>,
    text: &str,
    unit_of: impl Fn(&str) -> Option<u64>,
    units: &str,
) -> Result<Column, String> {
    let key = key.param.name;
    let (index, unit) = text.split_once(':').unwrap_or((text, ""));
    let index = index
        .parse::<usize>()
        .ok()
        .filter(|index| *index < COLUMNS_MAX)
        .ok_or_else(|| format!("{key} = '{text}': expected a column from 0 to {}", COLUMNS_MAX - 1))?;
    let unit = unit_of(unit).ok_or_else(|| format!("{key} = '{text}': expected the unit {units}"))?;
    Ok(Column { index, unit })
}

fn size_unit(text: &str) -> Option<u64> {
    match text {
        "" | "bytes" => Some(1),
        "sectors" => Some(512),
        other => units::parse_size(other).ok().filter(|size| (1..=1 << 30).contains(size)),
    }
}

fn time_unit(text: &str) -> Option<u64> {
    Some(match text {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "" | "us" => 1000,
        "filetime" => 100,
        "ns" => 1,
        _ => return None,
    })
}

impl Columns {
    fn new(params: &Params) -> Result<Self, String> {
        const SIZES: &str = "bytes, sectors or a size such as 4k";
        let required = |key: Key<Option<String>>| {
            params.get(key).ok_or_else(|| format!("{} is missing: expected a column number", key.param.name))
        };
        let time = |text| column(TIME, text, time_unit, "s, ms, us, ns or filetime");
        let time = params.get(TIME).map(time).transpose()?;
        let plain =
            |key, text| column(key, text, |unit| unit.is_empty().then_some(1), "none").map(|c| c.index);
        let op = match required(OP)? {
            "R" | "r" => OpFrom::All(TraceOp::Read),
            "W" | "w" => OpFrom::All(TraceOp::Write),
            text => OpFrom::Column(plain(OP, text)?),
        };
        let offset = column(OFFSET, required(OFFSET)?, size_unit, SIZES)?;
        let len = match required(LEN)? {
            text if text.parse::<usize>().is_ok() || text.contains(':') => {
                LenFrom::Column(column(LEN, text, size_unit, SIZES)?)
            }
            text => LenFrom::All(units::parse_size(text).map_err(|error| format!("len: {error}"))?),
        };
        let volume = params.get(VOLUME).map(|text| plain(VOLUME, text)).transpose()?;
        let word = |key: Key<Option<String>>| params.get(key).unwrap_or_default().as_bytes().to_vec();
        let separator = match params.get(SEP) {
            "tab" => b'\t',
            "blank" => b' ',
            "semicolon" => b';',
            "pipe" => b'|',
            _ => b',',
        };
        let (read, write, header) = (word(READ), word(WRITE), params.get(HEADER));
        Ok(Self { time, op, offset, len, volume, read, write, header, separator, labels: Labels::default() })
    }

    fn op(&self, field: &[u8]) -> Result<TraceOp, String> {
        if !self.read.is_empty() && field == self.read {
            return Ok(TraceOp::Read);
        }
        if !self.write.is_empty() && field == self.write {
            return Ok(TraceOp::Write);
        }
        WORDS
            .iter()
            .find(|(words, _)| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes())))
            .map(|(_, op)| *op)
            .ok_or_else(|| {
                format!("op is {}: expected R, W, read, write, trim or flush; give read= and write= if it says otherwise", shown(field))
            })
    }
}

/// A whole number, or a decimal one that is cut to whole units of a nanosecond.
fn time(field: &[u8], unit: u64) -> Result<u64, String> {
    if field.contains(&b'.') {
        decimal(field, unit, "time")
    } else {
        scaled(whole(field, "time")?, unit, "time")
    }
}

impl LineFormat for Columns {
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String> {
        if number <= self.header || line.is_empty() {
            return Ok(Parsed::Header);
        }
        let mut fields: [&[u8]; COLUMNS_MAX] = [&[]; COLUMNS_MAX];
        let mut count = 0;
        let is_blank = self.separator == b' ';
        let pieces = line.split(|&b| b == self.separator || is_blank && b == b'\t');
        for field in pieces.filter(|field| !is_blank || !field.is_empty()).take(COLUMNS_MAX) {
            fields[count] = trim(field);
            count += 1;
        }
        let field = |index: usize| {
            (index < count)
                .then_some(fields[index])
                .ok_or_else(|| format!("{}: expected a column {index}, there are {count}", shown(line)))
        };
        let at = self.time.map(|c| time(field(c.index)?, c.unit)).transpose()?.unwrap_or(0);
        let op = match &self.op {
            OpFrom::All(op) => *op,
            OpFrom::Column(index) => self.op(field(*index)?)?,
        };
        let size = |c: Column, name: &str| scaled(whole(field(c.index)?, name)?, c.unit, name);
        let (offset, len) = if op == TraceOp::Flush {
            (0, 0)
        } else {
            let len = match &self.len {
                LenFrom::All(len) => *len,
                LenFrom::Column(c) => size(*c, "len")?,
            };
            (size(self.offset, "offset")?, len)
        };
        let volume = match self.volume {
            None => 0,
            Some(index) => {
                let text = field(index)?;
                if text.first().is_some_and(u8::is_ascii_digit) {
                    whole32(text, "volume")?
                } else {
                    self.labels.id(text)?
                }
            }
        };
        Ok(Parsed::Io(IoRecord { at: SimTime(at), offset, len, volume, hint: 0, op }))
    }
}
