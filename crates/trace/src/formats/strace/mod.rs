//! Output of `strace`: the file operations of its system calls.
//!
//! Made by `strace -f -y -ttt -s 0 -o FILE -e trace=%file,%desc,%process,sync,msync PROGRAM`. Lines are those
//! of one process or of several, with numbers in front (`-o`) or in brackets; calls in two pieces are joined.
//! Of the calls that succeeded, those on regular files become operations of the format `ops`. Descriptors,
//! their offsets and paths are followed as the kernel does: they are inherited, shared, duplicated, and
//! closed by `execve`. Lengths are results, so that strings may be cut short.
//!
//! * A call counts at the time of the line with its result. Times may be seconds since 1970 (`-ttt`), a time
//!   of day (`-t`, `-tt`) or distances (`-r`); without them the order is all there is.
//! * A file that was opened before the recording is known by the path that `-y` prints; its offset is taken
//!   to be 0. Without `-y` such a descriptor is left out and counted.
//! * A file opened with `O_CREAT` is new if the flags or an earlier failure say so, or else if nothing is
//!   read from it, and no size above 0 is reported, before its first change.
//! * An unlinked file lives on until its last descriptor is closed.
//! * `O_DSYNC` is a sync after each write, `O_DIRECT` a `syncrange`; `sync` is one of everything.
//! * A last line without its end is left out: strace was stopped while it wrote it.

mod calls;
mod files;
mod line;
mod paths;
mod processes;
#[cfg(test)]
mod tests;

use super::file_model::{self, Calls, Step};
use super::file_model::{
    CACHE, DATA, DIRTY, DISCARD, END, EXPIRE, FIT, INTERVAL, JOURNAL, LEVEL, READS, REQUEST, SIZE,
};
use super::{Confidence, Format, Head, Input};
use crate::gate::Clock;
use crate::options::BoxReader;
use calls::System;
use files::{Files, Scope, normal};
use line::{Body, Stamp};
use nandscape_core::{Info, Params, SimTime, keys};
use nandscape_host::fs::FileNames;
use processes::Processes;
use std::collections::VecDeque;

keys! { PARAMS:
    DIR: Option<String> = text(),
        "directories whose files belong to the recording, apart by ':'; absent: all but those of programs and their \
         settings (/usr, /lib, /bin, /etc, ...), /run, /dev, /proc and /sys";
    CWD: Option<String> = text(), "working directory of the first process, where the recording does not have it";
    LEVEL; SIZE; FIT; CACHE; EXPIRE; INTERVAL; DIRTY; JOURNAL; DATA; DISCARD; READS; REQUEST; END;
}

pub const ENTRY: Format = Format {
    info: Info {
        name: "strace",
        summary: "system calls on files (strace -f -y -ttt), placed on blocks by a small file system model",
        source: "strace(1)",
        params: PARAMS,
    },
    extensions: &["strace"],
    many_volumes: true,
    detect,
    read,
    write: None,
};

fn detect(head: &Head<'_>) -> Confidence {
    let is_call = |line: &[u8]| matches!(line::split(line), Ok((_, Body::Call(_) | Body::Unfinished(_))));
    if head.lines.iter().any(|line| is_call(line)) {
        head.likely(|line| line::split(line).is_ok())
    } else {
        Confidence::No
    }
}

fn read(input: Input, params: &Params) -> Result<BoxReader, String> {
    let (head, mut input) = input.head()?;
    // The clock is strace's own, even if all requests are at the end of a short recording.
    input.settings.times_made_up = false;
    let first = first_stamp(&head);
    let clock = if first.is_some() { Clock::Strict } else { Clock::None };
    let strace = Strace::new(first, params);
    file_model::reader(input, params, ENTRY.info.name, clock, FileNames::default(), Box::new(strace))
}

/// The time of the first line that can have one.
fn first_stamp(head: &[u8]) -> Option<Stamp> {
    let mut prefixes = head.split(|&byte| byte == b'\n').filter_map(|line| line::split(line).ok());
    prefixes.find(|(_, body)| *body != Body::Remark).and_then(|(prefix, _)| prefix.stamp)
}

/// Times below are distances, those above seconds since 1970.
const EPOCH_MIN_NS: u64 = 100_000_000 * 1_000_000_000;
const DAY_NS: u64 = 86_400 * 1_000_000_000;

struct Strace {
    system: System,
    first: Option<Stamp>,
    /// Time of the line, from the first one on.
    now: u64,
    /// Days since the first line, of times of day.
    days: u64,
    /// Time of day of the line before.
    last: u64,
}

impl Strace {
    fn new(first: Option<Stamp>, params: &Params) -> Self {
        let start = params.get(CWD).map(|path| normal(b"", path.as_bytes())).unwrap_or_default();
        let mut files = Files::new(Scope::new(params.get(DIR)), file_model::passes_reads(params));
        files.add_folder(&start);
        Self {
            system: System { processes: Processes::new(start), files, unseen: 0, queued: 0 },
            first,
            now: 0,
            days: 0,
            last: 0,
        }
    }

    fn set_time(&mut self, stamp: Option<Stamp>) -> Result<(), String> {
        match (self.first, stamp) {
            (Some(Stamp::Seconds(first)), Some(Stamp::Seconds(ns))) => {
                self.now =
                    if first < EPOCH_MIN_NS { self.now.saturating_add(ns) } else { ns.saturating_sub(first) };
            }
            (Some(Stamp::OfDay(first)), Some(Stamp::OfDay(ns))) => {
                // Back by most of a day is midnight; by less, a clock that was set.
                self.days += u64::from(ns + DAY_NS / 2 < self.last);
                self.last = ns;
                self.now = self.days.saturating_mul(DAY_NS).saturating_add(ns).saturating_sub(first);
            }
            (None, None) => {}
            (Some(_), None) => return Err("no time: expected one as in the lines before".to_owned()),
            (_, Some(_)) => return Err("a time of another kind than that of the first line".to_owned()),
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let (prefix, body) = line::split(line)?;
        if body == Body::Remark {
            return Ok(());
        }
        self.set_time(prefix.stamp)?;
        let system = &mut self.system;
        let pid = prefix.pid.unwrap_or_else(|| system.processes.only());
        if body == Body::Exit {
            // One that was never met has nothing.
            system.files.at = SimTime(self.now);
            system.exit(pid);
            return Ok(());
        }
        system.processes.meet(pid)?;
        system.files.at = SimTime(self.now);
        system.files.writer = system.processes.leader(pid);
        match body {
            Body::Call(text) => system.call(pid, text, None),
            Body::Unfinished(text) => system.begin(pid, text),
            Body::Resumed(rest) => system.resume(pid, rest),
            Body::Superseded(thread) => {
                system.supersede(thread, pid);
                Ok(())
            }
            Body::Attached(child, text) => {
                if !text.is_empty() {
                    system.begin(pid, text)?;
                }
                system.processes.meet(child)
            }
            Body::Exit | Body::Remark => Ok(()),
        }
    }
}

impl Calls for Strace {
    fn line(&mut self, line: &[u8], _number: u64, out: &mut VecDeque<Step>) -> Result<(), String> {
        let done = self.take(line);
        out.append(&mut self.system.files.steps);
        done
    }

    fn finish(&mut self, out: &mut VecDeque<Step>) {
        self.system.files.finish();
        out.append(&mut self.system.files.steps);
    }

    fn needs_line_ends(&self) -> bool {
        true
    }

    fn skipped(&self) -> u64 {
        self.system.unseen
    }

    fn hint(&self) -> Option<String> {
        let queued = self.system.queued;
        Some(if queued > 0 {
            format!("{queued} requests went through io_uring or io_submit, which strace does not show")
        } else {
            "strace:dir=DIRECTORY names where they are".to_owned()
        })
    }
}
