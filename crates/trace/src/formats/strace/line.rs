//! One line of strace: process, time, and a call with its arguments and result.

use crate::error::shown;
use crate::fields::{decimal, whole, whole32};
use memchr::memmem;

/// What stands before a call: its process and its time, where strace was asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) pid: Option<u32>,
    pub(super) stamp: Option<Stamp>,
}

/// A time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Since 1970 (`-ttt`), or since the line before (`-r`): only the size of the first one tells.
    Seconds(u64),
    /// Since midnight (`-t`, `-tt`).
    OfDay(u64),
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A whole call.
    Call(&'a [u8]),
    /// The beginning of a call that others interrupt.
    Unfinished(&'a [u8]),
    /// The rest of the process's call.
    Resumed(&'a [u8]),
    /// The process ended.
    Exit,
    /// Another thread of the process, this one, took its number by `execve`.
    Superseded(u32),
    /// strace began to follow a process, in the middle of a call that began like this.
    Attached(u32, &'a [u8]),
    /// A signal, an empty line, a remark.
    Remark,
}

const HIGHEST_PID: u64 = 1 << 22;
const ATTACHED: &[u8] = b"strace: Process ";

/// Splits a line. The message of an error says what was expected.
pub(super) fn split(line: &[u8]) -> Result<(Prefix, Body<'_>), String> {
    let mut rest = line.trim_ascii();
    let mut prefix = Prefix::default();
    // Stack traces of -k, remarks on the mode of a process, and messages of strace itself.
    if rest.is_empty() || rest.starts_with(b"> ") || rest.starts_with(b"[ Process ") {
        return Ok((prefix, Body::Remark));
    }
    if let Some(after) = rest.strip_prefix(b"[pid ") {
        let end = memchr::memchr(b']', after).ok_or("[pid without its ]: expected [pid NUMBER]")?;
        prefix.pid = Some(pid(after[..end].trim_ascii())?);
        rest = after[end + 1..].trim_ascii_start();
    }
    while let Some((word, after)) = number(rest) {
        if prefix.stamp.is_some() {
            break;
        }
        let is_pid = word.iter().all(u8::is_ascii_digit)
            && prefix.pid.is_none()
            && whole(word, "pid").is_ok_and(|pid| pid <= HIGHEST_PID);
        if is_pid {
            prefix.pid = Some(pid(word)?);
            rest = after;
            // The name of its program, by --decode-pids.
            if rest.first() == Some(&b'<')
                && !rest.starts_with(b"<...")
                && let Some(end) = memchr::memchr(b'>', rest)
            {
                rest = &rest[end + 1..];
            }
        } else {
            prefix.stamp = Some(stamp(word)?);
            rest = after;
        }
        rest = rest.trim_ascii_start();
    }
    // `(+ 0.000012)` is the time since the line before, beside another one; `[...]` is a number of the call
    // or where the program stood.
    while let [first @ (b'(' | b'['), ..] = rest {
        let close = if *first == b'(' { b')' } else { b']' };
        let end = memchr::memchr(close, rest).ok_or_else(|| expected(rest))?;
        rest = rest[end + 1..].trim_ascii_start();
    }
    Ok((prefix, body(rest)?))
}

fn expected(found: &[u8]) -> String {
    format!("{}: expected a call such as write(3, \"\"..., 10) = 10", shown(found))
}

fn pid(word: &[u8]) -> Result<u32, String> {
    // The name of the program may stand beside it.
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    whole32(&word[..digits], "pid")
}

/// A first word of digits, points and colons, and what follows.
fn number(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().take_while(|&&byte| byte.is_ascii_digit() || byte == b'.' || byte == b':').count();
    (end > 0 && text[0].is_ascii_digit()).then(|| text.split_at(end))
}

fn stamp(word: &[u8]) -> Result<Stamp, String> {
    const SECOND: u64 = 1_000_000_000;
    let parts: Vec<_> = word.split(|&byte| byte == b':').collect();
    match parts[..] {
        [seconds] => decimal(seconds, SECOND, "time").map(Stamp::Seconds),
        [hours, minutes, seconds] => {
            let (hours, minutes) = (whole32(hours, "hours")?, whole32(minutes, "minutes")?);
            let seconds = decimal(seconds, SECOND, "seconds")?;
            if hours > 23 || minutes > 59 || seconds > 60 * SECOND {
                return Err(format!("time is {}: expected HH:MM:SS", shown(word)));
            }
            Ok(Stamp::OfDay((u64::from(hours) * 60 + u64::from(minutes)) * 60 * SECOND + seconds))
        }
        _ => Err(format!("time is {}: expected seconds or HH:MM:SS", shown(word))),
    }
}

fn body(text: &[u8]) -> Result<Body<'_>, String> {
    if text.is_empty() {
        return Err("nothing after process and time: expected a call".to_owned());
    }
    if let Some(at) = memmem::find(text, ATTACHED) {
        let after = &text[at + ATTACHED.len()..];
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if after[digits..].trim_ascii() == b"attached" {
            return Ok(Body::Attached(pid(after)?, &text[..at]));
        }
    }
    if text.starts_with(b"---") || text.starts_with(b"strace: ") || text == b"<unfinished ...>" {
        return Ok(Body::Remark);
    }
    if let Some(after) = text.strip_prefix(b"+++ ") {
        return match after.strip_prefix(b"superseded by execve in pid ") {
            Some(after) => pid(after).map(Body::Superseded),
            None if after.ends_with(b"+++") => Ok(Body::Exit),
            None => Err(format!("{}: expected +++ at the end", shown(text))),
        };
    }
    if text.starts_with(b"<... ") {
        const RESUMED: &[u8] = b"resumed>";
        let at = memmem::find(text, RESUMED)
            .ok_or_else(|| format!("{}: expected <... CALL resumed>", shown(text)))?;
        return Ok(Body::Resumed(&text[at + RESUMED.len()..]));
    }
    if text.ends_with(b"<unfinished ...>) = ?") || text.ends_with(b"<detached ...>") {
        return Ok(Body::Remark);
    }
    if let Some(head) = text.strip_suffix(b"<unfinished ...>") {
        return name(head).map(|_| Body::Unfinished(head));
    }
    name(text).map(|_| Body::Call(text))
}

/// The name of a call, and its text behind the parenthesis.
pub(super) fn name(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'?');
    let end = text.iter().take_while(|byte| is_letter(byte)).count();
    if end == 0 || text.get(end) != Some(&b'(') {
        return Err(expected(text));
    }
    Ok((&text[..end], &text[end + 1..]))
}

/// A call that ended.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a [u8],
    arguments: Vec<&'a [u8]>,
    /// What it returned, or the name of its error.
    pub(super) outcome: Result<u64, &'a [u8]>,
    /// Path of the file whose descriptor it returned (`-y`).
    pub(super) path: Option<Path>,
}

/// A path that strace prints beside a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) bytes: Vec<u8>,
    pub(super) is_deleted: bool,
}

/// A file descriptor among the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fd {
    /// The number; `None` is the working directory.
    pub(super) number: Option<i32>,
    pub(super) path: Option<Path>,
}

/// Reads `name(arguments) = result`. `None` if it has no result, as where its process ended first.
pub(super) fn call(text: &[u8]) -> Result<Option<Call<'_>>, String> {
    let (name, inside) = name(text)?;
    let (arguments, after) =
        arguments(inside).ok_or_else(|| format!("{}: expected arguments up to a )", shown(text)))?;
    let no_result = || format!("{}: expected = and the result of {}", shown(after), shown(name));
    let result = after.trim_ascii().strip_prefix(b"=").ok_or_else(no_result)?.trim_ascii();
    if result.first() == Some(&b'?') {
        return Ok(None);
    }
    let end =
        result.iter().take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'x' | b'-')).count();
    let (value, rest) = result.split_at(end);
    let outcome = match value.strip_prefix(b"-") {
        Some(_) => {
            let error = rest.trim_ascii_start();
            let end = error.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            Err(&error[..end])
        }
        None => Ok(unsigned(value).map_err(|_| no_result())?),
    };
    let path = if rest.first() == Some(&b'<') {
        let end = annotation(rest).ok_or_else(no_result)?;
        Some(path(&rest[1..end - 1], &rest[end..]))
    } else {
        None
    };
    // Where processes have numbers of their own, that of strace stands in a remark.
    let outcome = match (outcome, memmem::find(rest, b" in strace's PID NS")) {
        (Ok(_), Some(at)) => {
            let start = rest[..at].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
            Ok(whole(&rest[start..at], "pid")?)
        }
        (outcome, _) => outcome,
    };
    Ok(Some(Call { name, arguments, outcome, path }))
}

/// The arguments, and what follows the parenthesis.
fn arguments(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut arguments = Vec::new();
    let (mut depth, mut start, mut at) = (0u32, 0, 0);
    loop {
        match *text.get(at)? {
            b'"' => at = end_of_string(text, at)?,
            b'<' if at > 0 && is_descriptor(&text[start..at]) && text.get(at + 1) != Some(&b'<') => {
                at += annotation(&text[at..])?;
                continue;
            }
            b'/' if text.get(at + 1) == Some(&b'*') => {
                at += memmem::find(&text[at..], b"*/")? + 1;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text[start..at].trim_ascii();
                if !last.is_empty() || !arguments.is_empty() {
                    arguments.push(last);
                }
                return Some((arguments, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                arguments.push(text[start..at].trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
}

fn is_descriptor(before: &[u8]) -> bool {
    before.last().is_some_and(u8::is_ascii_digit) || before.ends_with(b"AT_FDCWD")
}

/// Index of the quote that ends a string.
fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Length of `<...>` behind a descriptor. In paths `<` and `>` are escaped; ends of connections have `->`.
fn annotation(text: &[u8]) -> Option<usize> {
    let first = memchr::memchr(b'>', text)?;
    if text.get(1) == Some(&b'/') {
        // A device may stand inside: 0</dev/null<char 1:3>>.
        let nested = memchr::memchr(b'<', &text[1..first]).is_some();
        return Some(first + 1 + usize::from(nested && text.get(first + 1) == Some(&b'>')));
    }
    let opened = memchr::memchr(b'[', &text[..first]).is_some();
    if opened && text[first - 1] != b']' {
        return Some(memmem::find(text, b"]>")? + 2);
    }
    Some(first + 1)
}

/// The path of an annotation; `after` is what follows it.
fn path(text: &[u8], after: &[u8]) -> Path {
    let end = if text.first() == Some(&b'/') {
        memchr::memchr(b'<', text).unwrap_or(text.len())
    } else {
        text.len()
    };
    let bytes = unescape(&text[..end]);
    let is_deleted = after.starts_with(b"(deleted)") || bytes.ends_with(b" (deleted)");
    let bytes = bytes.strip_suffix(b" (deleted)").map_or(bytes.clone(), <[u8]>::to_vec);
    Path { bytes, is_deleted }
}

/// Resolves the escapes of C, and those in octal and hexadecimal.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((&kind, after)) = rest.split_first() else { break };
        let digits = |text: &[u8], base: u32, most: usize| {
            let is_digit = |byte: &&u8| char::from(**byte).is_digit(base);
            let count = text.iter().take(most).take_while(is_digit).count();
            let value = text[..count]
                .iter()
                .fold(0u32, |value, &byte| value * base + char::from(byte).to_digit(base).unwrap_or(0));
            (value as u8, count)
        };
        let (value, used) = match kind {
            b'0'..=b'7' => digits(rest, 8, 3),
            b'x' => {
                let (value, count) = digits(after, 16, 2);
                (value, count + 1)
            }
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'r' => (b'\r', 1),
            b'v' => (0x0b, 1),
            b'f' => (0x0c, 1),
            other => (other, 1),
        };
        out.push(value);
        rest = &rest[used..];
    }
    out
}

/// A number in decimal or, with 0x, in hexadecimal.
fn unsigned(text: &[u8]) -> Result<u64, String> {
    match text.strip_prefix(b"0x") {
        Some(digits) => str::from_utf8(digits)
            .ok()
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| format!("{}: expected a number", shown(text))),
        None => whole(text, "a number"),
    }
}

/// What an argument is called in errors, by its place.
const PLACES: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

impl Call<'_> {
    /// An argument, by its place from 0.
    pub(super) fn get(&self, at: usize) -> Result<&[u8], String> {
        self.arguments.get(at).copied().ok_or_else(|| {
            let (name, count) = (shown(self.name), self.arguments.len());
            format!("{name} has {count} arguments: expected at least {}", at + 1)
        })
    }

    /// An argument that may be absent, as empty text.
    pub(super) fn optional(&self, at: usize) -> &[u8] {
        self.arguments.get(at).copied().unwrap_or_default()
    }

    fn wrong(&self, at: usize, expected: &str) -> String {
        let (name, found) = (shown(self.name), shown(self.optional(at)));
        let place = PLACES.get(at).copied().unwrap_or("last");
        format!("the {place} argument of {name} is {found}: expected {expected}")
    }

    pub(super) fn fd(&self, at: usize) -> Result<Fd, String> {
        descriptor(self.get(at)?).ok_or_else(|| self.wrong(at, "a file descriptor"))
    }

    /// A number that is not negative.
    pub(super) fn whole(&self, at: usize) -> Result<u64, String> {
        let text = self.get(at)?;
        let end = memmem::find(text, b" /*").unwrap_or(text.len());
        unsigned(&text[..end]).map_err(|_| self.wrong(at, "a whole number"))
    }

    /// A number, or `None` if it is negative.
    pub(super) fn positive(&self, at: usize) -> Result<Option<u64>, String> {
        if self.get(at)?.starts_with(b"-") { Ok(None) } else { self.whole(at).map(Some) }
    }

    /// The value behind a pointer: `[12]`, or `[12] => [24]`, of which the first is meant; `None` for NULL.
    pub(super) fn behind(&self, at: usize) -> Result<Option<u64>, String> {
        let text = self.get(at)?;
        if text == b"NULL" {
            return Ok(None);
        }
        let inner = text.strip_prefix(b"[").and_then(|text| Some(&text[..memchr::memchr(b']', text)?]));
        let value = inner.and_then(|inner| unsigned(inner).ok());
        value.map(Some).ok_or_else(|| self.wrong(at, "NULL or [OFFSET]"))
    }

    /// A path between quotes, as the program gave it.
    pub(super) fn string(&self, at: usize) -> Result<Vec<u8>, String> {
        let text = self.get(at)?;
        let end = if text.first() == Some(&b'"') { end_of_string(text, 0) } else { None };
        match end {
            Some(end) if !text[end + 1..].starts_with(b"...") => Ok(unescape(&text[1..end])),
            _ => Err(self.wrong(at, "a whole path in quotes")),
        }
    }

    /// Whether one of the flags, which are joined by `|`, has this name.
    pub(super) fn has(&self, at: usize, flag: &str) -> bool {
        has(self.optional(at), flag)
    }
}

/// A descriptor with its path, if it is one.
pub(super) fn descriptor(text: &[u8]) -> Option<Fd> {
    let (number, after) = if let Some(after) = text.strip_prefix(b"AT_FDCWD") {
        (None, after)
    } else {
        let end = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        (Some(str::from_utf8(&text[..end]).ok()?.parse().ok()?), &text[end..])
    };
    let path = match after.first() {
        Some(b'<') => {
            let end = annotation(after)?;
            Some(path(&after[1..end - 1], &after[end..]))
        }
        None | Some(b' ') => None,
        Some(_) => return None,
    };
    Some(Fd { number, path })
}

/// Whether one of the words, which are apart by other than letters, is this one.
pub(super) fn has(text: &[u8], word: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.split(|byte| !is_letter(byte)).any(|part| part == word.as_bytes())
}
