//! Default text output of blkparse.
//!
//! `maj,min cpu seq secs.nanosecs pid ACTION RWBS start + count [process]`. One request shows up once for
//! each stage it passes, so exactly one action is used: D (issued to the drive, the default) or Q (queued by
//! the file system). Other actions, plug lines without an address and the summary at the end are skipped and
//! counted.
//!
//! RWBS holds R, W or D, and flags around it; an F before it asks for a flush first, one after it for a write
//! through (FUA). A flush alone (`F`, `FN`, `FWS` with no sectors) is a flush; a leading F on a write is not
//! turned into one, since the kernel issues that flush as a request of its own.
//!
//! Zoned devices: `ZA` append, `ZR` reset, `ZRA` reset of every zone, `ZF` finish, `ZO` open, `ZC` close,
//! each before the flags (Linux 6.17, `blk_fill_rwbs` in `kernel/trace/blktrace.c`; blkparse for version 2 of
//! the trace protocol, `fill_rwbs` in `blkparse_fmt.c`, patches of September 2025). An older blkparse shows
//! all of them as `W` or `N`, which cannot be told apart. The default output has no start for a request of 0
//! bytes, which all but appends are, so they need an output format with one ([`FORMAT`]). The action `ZM`
//! repeats such a request at the top of the block layer.

use super::{Confidence, Format, Head};
use crate::error::shown;
use crate::fields::{decimal, sectors, whole, words};
use crate::gate::{Clock, Parsed, device_number};
use crate::text::LineFormat;
use nandscape_core::{Info, IoRecord, SimTime, TraceOp, keys};

/// Output format of blkparse that has the start of requests without data.
const FORMAT: &str = r#"-f "%D %2c %8s %5T.%9t %5p %2a %3d %S + %n [%C]\n""#;

keys! { PARAMS:
    ACTION: String = choice(&["D", "Q"]) or "D", "D: what the drive sees, Q: what the file system sends";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "blkparse",
        summary: "blkparse default text, one action of it",
        source: "blktrace(8), blkparse(1)",
        params: PARAMS,
    },
    extensions: &["blkparse", "txt"],
    many_volumes: true,
    detect,
    read: |input, params| {
        let action = params.get(ACTION).as_bytes()[0];
        Ok(Box::new(input.lines("blkparse", Clock::Clamp, Blkparse { action, seen: [0; 2] })))
    },
    write: None,
};

fn detect(head: &Head) -> Confidence {
    let event = |line: &[u8]| {
        let ([device, cpu, seq, time], count) = words::<4>(line);
        count >= 6
            && device_of(device).is_some()
            && whole(cpu, "").is_ok()
            && whole(seq, "").is_ok()
            && time.contains(&b'.')
    };
    // The first line decides: what follows may be messages or the summary.
    Confidence::Certain.if_passed(head.lines.first().is_some_and(|first| event(first)))
}

fn device_of(field: &[u8]) -> Option<u32> {
    let comma = field.iter().position(|&b| b == b',')?;
    let number = |bytes| whole(bytes, "").ok().and_then(|n| u32::try_from(n).ok());
    Some(device_number(number(&field[..comma])?, number(&field[comma + 1..])?))
}

/// The operation of zones that RWBS names, and whether it is for all of them.
fn zone_op(rwbs: &[u8]) -> Option<(TraceOp, bool)> {
    let letters = rwbs.strip_prefix(b"F").unwrap_or(rwbs).strip_prefix(b"Z")?;
    Some(match letters {
        [b'R', b'A', ..] => (TraceOp::Reset, true),
        [b'R', ..] => (TraceOp::Reset, false),
        [b'A', ..] => (TraceOp::Append, false),
        [b'F', ..] => (TraceOp::Finish, false),
        [b'O', ..] => (TraceOp::Open, false),
        [b'C', ..] => (TraceOp::Close, false),
        _ => return None,
    })
}

struct Blkparse {
    action: u8,
    /// Lines with action D and Q, to say which one would have worked.
    seen: [u64; 2],
}

impl LineFormat for Blkparse {
    fn parse(&mut self, line: &[u8], _: u64) -> Result<Parsed, String> {
        let (fields, count) = words::<10>(line);
        let [device, _cpu, _seq, time, _pid, action, rwbs, start, plus, count_512] = fields;
        let Some(volume) = device_of(device) else {
            return Ok(if count == 0 { Parsed::Header } else { Parsed::Skip });
        };
        match action {
            b"D" => self.seen[0] += 1,
            b"Q" => self.seen[1] += 1,
            _ => {}
        }
        if action != [self.action] {
            // A cut-off or garbled event would otherwise pass as one of another kind.
            return if count >= 6 && decimal(time, 1_000_000_000, "time").is_ok() {
                Ok(Parsed::Skip)
            } else {
                Err(format!("{}: expected maj,min cpu seq time pid action ...", shown(line)))
            };
        }
        let at = SimTime(decimal(time, 1_000_000_000, "time")?);
        let is_flush = rwbs.first() == Some(&b'F');
        if let Some((op, is_for_all)) = zone_op(rwbs) {
            let (offset, len) = match (plus, op) {
                _ if is_for_all => (0, IoRecord::EVERY_ZONE),
                (b"+", TraceOp::Append) => (sectors(start, "start")?, sectors(count_512, "count")?),
                (b"+", _) => (sectors(start, "start")?, 0),
                _ => {
                    let rwbs = shown(rwbs);
                    return Err(format!(
                        "{rwbs} without its zone: expected start + count, from blkparse {FORMAT}"
                    ));
                }
            };
            return Ok(Parsed::Io(IoRecord { at, offset, len, volume, hint: 0, op }));
        }
        let data = rwbs.iter().find(|b| matches!(b, b'R' | b'W' | b'D'));
        let (offset, len) = match plus {
            b"+" => (sectors(start, "start")?, sectors(count_512, "count")?),
            _ if is_flush => (0, 0),
            _ => return Err(format!("{}: expected start + count after {}", shown(line), shown(rwbs))),
        };
        let op = match data {
            _ if is_flush && len == 0 => TraceOp::Flush,
            Some(b'R') => TraceOp::Read,
            Some(b'W') => TraceOp::Write,
            Some(_) => TraceOp::Trim,
            None if rwbs.first() == Some(&b'N') => return Ok(Parsed::Skip),
            None => {
                return Err(format!(
                    "RWBS is {}: expected one with R, W, D, N, F or Z and a letter",
                    shown(rwbs)
                ));
            }
        };
        Ok(Parsed::Io(IoRecord { at, offset, len, volume, hint: 0, op }))
    }

    fn hint(&self) -> Option<String> {
        let other = if self.action == b'D' { (self.seen[1], 'Q') } else { (self.seen[0], 'D') };
        Some(match other {
            (0, _) => format!("none has action {}", char::from(self.action)),
            (n, letter) => format!(
                "none has action {} but {n} have {letter}: --format blkparse:action={letter}",
                char::from(self.action)
            ),
        })
    }
}
