//! fio I/O logs, versions 1 to 3 (`write_iolog`, `read_iolog`).
//!
//! Version 3: `timestamp file action [offset length]`, microseconds since the start of the job. Version 2 has
//! no time stamps; `wait` gives the microseconds since the wait before, and only these make its clock.
//! Version 1 is `rw, offset, length` without a header. Bytes. Each file is a volume. `sync` and `datasync`
//! are flushes, `trim` a discard; add, open and close are skipped. The file name may hold blanks: lines are
//! taken apart from both ends.
//!
//! No version has lines for zones: fio logs `io_ddir_name` of each request (iolog.c, `log_io_u`), and the
//! zone resets of `zonemode=zbd` are no requests (zbd.c). Its `trim` jobs reset zones in that mode
//! (`zbd_do_io_u_trim`), but their log says `trim` and does not name the mode.

use super::{Confidence, Format, Head};
use crate::error::shown;
use crate::fields::{digit, split, trim, whole};
use crate::gate::{Clock, Labels, Parsed};
use crate::text::LineFormat;
use crate::writer::{lines, unsupported};
use nandscape_core::{Info, IoRecord, SimTime, TraceOp};
use std::io::Write;

pub const ENTRY: Format = Format {
    info: Info {
        name: "fio",
        summary: "fio iolog version 3 (written), 2 and 1 (read)",
        source: "fio manual, Trace file format v1, v2 and v3",
        params: &[],
    },
    extensions: &["iolog", "fio-log", "log"],
    many_volumes: true,
    detect,
    read: |input, _| {
        let (head, input) = input.head()?;
        let clock = if has_times(&head) { Clock::Clamp } else { Clock::None };
        Ok(Box::new(input.lines("fio", clock, Fio { version: 0, labels: Labels::default(), now_us: 0 })))
    },
    write: Some(|out, _| {
        let mut is_started = false;
        lines(out, move |out, record| line(out, record, std::mem::replace(&mut is_started, true)))
    }),
};

fn version(line: &[u8]) -> Option<u8> {
    match trim(line) {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

/// Version 3 has times, version 2 if it waits (looked for in the first 64 KiB), version 1 never.
fn has_times(head: &[u8]) -> bool {
    let first = head.split(|&b| b == b'\n').next().unwrap_or(head);
    match version(first) {
        Some(3) => true,
        Some(_) => memchr::memmem::find(head, b" wait ").is_some(),
        None => false,
    }
}

fn detect(head: &Head) -> Confidence {
    if head.lines.first().is_some_and(|line| version(line).is_some()) {
        return Confidence::Certain;
    }
    Confidence::Possible.if_passed(head.all_lines(|line| plain(line).is_ok()))
}

fn plain(line: &[u8]) -> Result<(TraceOp, u64, u64), String> {
    let fields = split::<3>(line, b',').ok_or_else(|| {
        format!(
            "{}: expected 'fio version 2 iolog', 'fio version 3 iolog', or rw, offset, length",
            shown(line)
        )
    })?;
    let [rw, offset, len] = fields.map(trim);
    Ok((digit(rw, "rw")?, whole(offset, "offset")?, whole(len, "length")?))
}

struct Fio {
    /// 0 before the first line.
    version: u8,
    labels: Labels,
    /// Sum of the waits of version 2.
    now_us: u64,
}

enum Action {
    Data(TraceOp),
    Flush,
    Wait,
    File,
}

fn action(word: &[u8]) -> Option<Action> {
    Some(match word {
        b"read" => Action::Data(TraceOp::Read),
        b"write" => Action::Data(TraceOp::Write),
        b"trim" => Action::Data(TraceOp::Trim),
        b"sync" | b"datasync" => Action::Flush,
        b"wait" => Action::Wait,
        b"add" | b"open" | b"close" => Action::File,
        _ => return None,
    })
}

/// The last blank-separated word and what stands before it.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_end();
    match text.iter().rposition(|b| matches!(b, b' ' | b'\t')) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (&text[..0], text),
    }
}

impl Fio {
    fn event(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let bad = || {
            let stamp = if self.version == 3 { "timestamp " } else { "" };
            format!("{}: expected {stamp}file action [offset length]", shown(line))
        };
        let (stamp, rest) = if self.version == 3 {
            let at = line.iter().position(|b| matches!(b, b' ' | b'\t')).ok_or_else(bad)?;
            (whole(&line[..at], "timestamp")?, &line[at + 1..])
        } else {
            (0, line)
        };
        // An action without numbers ends the line; one with numbers stands two words before the end.
        let (before, last) = last_word(rest);
        let (file, word, numbers) = if action(last).is_some() && !trim(before).is_empty() {
            (before, last, None)
        } else {
            let (before, offset) = last_word(before);
            let (file, word) = last_word(before);
            (file, word, Some((whole(offset, "offset")?, whole(last, "length")?)))
        };
        let file = trim(file);
        if file.is_empty() {
            return Err(bad());
        }
        let kind = action(word).ok_or_else(|| {
            format!(
                "action is {}: expected read, write, sync, datasync, trim, wait, add, open or close",
                shown(word)
            )
        })?;
        let op = match kind {
            Action::File => return Ok(Parsed::Skip),
            Action::Wait => {
                if self.version == 3 {
                    return Err("wait is not allowed in version 3".to_owned());
                }
                let (us, _) = numbers.ok_or_else(bad)?;
                self.now_us =
                    self.now_us.checked_add(us).ok_or_else(|| format!("wait of {us} us: too long"))?;
                return Ok(Parsed::Skip);
            }
            Action::Flush => TraceOp::Flush,
            Action::Data(op) => op,
        };
        let (offset, len) = match (op, numbers) {
            (TraceOp::Flush, _) => (0, 0),
            (_, Some(numbers)) => numbers,
            (_, None) => return Err(bad()),
        };
        let us = if self.version == 3 { stamp } else { self.now_us };
        let at = us.checked_mul(1000).ok_or_else(|| format!("timestamp {us} us: too late"))?;
        let volume = self.labels.id(file)?;
        Ok(Parsed::Io(IoRecord { at: SimTime(at), offset, len, volume, hint: 0, op }))
    }
}

impl LineFormat for Fio {
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String> {
        if number == 1 {
            self.version = version(line).unwrap_or(1);
            if self.version > 1 {
                return Ok(Parsed::Header);
            }
        }
        if trim(line).is_empty() && number > 1 {
            return Ok(Parsed::Header);
        }
        if self.version > 1 {
            return self.event(line);
        }
        let (op, offset, len) = plain(line)?;
        Ok(Parsed::Io(IoRecord { at: SimTime::ZERO, offset, len, volume: 0, hint: 0, op }))
    }

    fn label(&self, volume: u32) -> Option<&str> {
        self.labels.name(volume)
    }
}

/// The name of the one file that written logs use; fio replaces it by `replay_redirect`.
const FILE: &str = "/dev/nandscape";

fn line(out: &mut dyn Write, record: &IoRecord, is_started: bool) -> std::io::Result<()> {
    let us = record.at.as_ns() / 1000;
    if !is_started {
        writeln!(out, "fio version 3 iolog\n{us} {FILE} add\n{us} {FILE} open")?;
    }
    let word = match record.op {
        TraceOp::Read => "read",
        TraceOp::Write => "write",
        TraceOp::Trim => "trim",
        TraceOp::Flush => return writeln!(out, "{us} {FILE} sync 0 0"),
        _ => {
            return Err(unsupported(record, "fio", "reads, writes, discards and flushes"));
        }
    };
    writeln!(out, "{us} {FILE} {word} {} {}", record.offset, record.len)
}
