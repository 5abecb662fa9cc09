//! Lines of a text trace, without an allocation per line.

use std::io::Read;

/// Longest line that is read; real formats stay below a few hundred bytes.
pub(crate) const LONGEST_LINE: usize = 64 << 10;
/// What some programs put before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const BUFFER: usize = 256 << 10;

pub(crate) enum LineError {
    /// The source failed: truncated compressed stream, operating system error.
    Io(String),
    TooLong,
}

/// Splits a byte stream into lines. A byte order mark at the start is passed over. `\n` and `\r\n` end a
/// line; the last one may lack its end.
pub(crate) struct Lines {
    source: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    at_end: bool,
    number: u64,
    only_whole: bool,
    has_cut: bool,
}

impl Lines {
    pub(crate) fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            at_end: false,
            number: 0,
            only_whole: false,
            has_cut: false,
        }
    }

    /// Number of the line that was returned last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// As [`Lines::new`], but a last line without its end was cut off, and is left out.
    pub(crate) fn whole(source: Box<dyn Read + Send>) -> Self {
        Self { only_whole: true, ..Self::new(source) }
    }

    /// Whether the last line was cut off.
    pub(crate) fn has_cut(&self) -> bool {
        self.has_cut
    }

    /// The next line without its end, or `None` after the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, LineError> {
        let mut searched = self.start;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let stop = searched + found;
                return self.take(stop, stop + 1);
            }
            if self.at_end {
                self.has_cut |= self.only_whole && self.start < self.end;
                if self.start == self.end || self.only_whole {
                    return Ok(None);
                }
                return self.take(self.end, self.end);
            }
            let pending = self.end - self.start;
            if pending > LONGEST_LINE {
                self.number += 1;
                return Err(LineError::TooLong);
            }
            self.refill()?;
            searched = self.start + pending;
        }
    }

    /// Reads more behind what is pending, moving that to the front first. The buffer is four times the
    /// longest line.
    fn refill(&mut self) -> Result<(), LineError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let got = read_some(&mut self.source, &mut self.buffer[self.end..]).map_err(LineError::Io)?;
        self.end += got;
        self.at_end = got == 0;
        Ok(())
    }

    fn take(&mut self, stop: usize, next: usize) -> Result<Option<&[u8]>, LineError> {
        self.number += 1;
        let start = std::mem::replace(&mut self.start, next);
        if stop - start > LONGEST_LINE {
            return Err(LineError::TooLong);
        }
        let mut line = &self.buffer[start..stop];
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// `read` that retries interruptions and turns errors into text.
pub(crate) fn read_some(source: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, String> {
    loop {
        match source.read(buffer) {
            Ok(got) => return Ok(got),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &'static [u8]) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Box::new(text));
        let mut out = Vec::new();
        while let Ok(Some(line)) = lines.next_line() {
            out.push(line.to_vec());
        }
        out
    }

    #[test]
    fn both_line_ends_and_a_missing_last_one() {
        assert_eq!(all(b"a\r\n\nb"), [&b"a"[..], b"", b"b"]);
        assert_eq!(all(b"a\n"), [b"a"]);
        assert!(all(b"").is_empty());
    }

    #[test]
    fn a_last_line_without_its_end_can_be_left_out() {
        let mut lines = Lines::whole(Box::new(&b"a\nb"[..]));
        assert_eq!(lines.next_line().ok().flatten(), Some(&b"a"[..]));
        assert!(!lines.has_cut() && lines.next_line().ok().flatten().is_none());
        assert!(lines.has_cut() && lines.number() == 1);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(all(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"), [&b"a"[..], b"\xef\xbb\xbfb"]);
    }

    #[test]
    fn lines_across_buffer_borders_are_whole() {
        let line = [b'x'; 1000];
        let text: Vec<u8> = (0..2000).flat_map(|_| line.iter().copied().chain([b'\n'])).collect();
        let mut lines = Lines::new(Box::new(std::io::Cursor::new(text)));
        let mut count = 0;
        while let Ok(Some(got)) = lines.next_line() {
            assert_eq!(got, line);
            count += 1;
        }
        assert_eq!((count, lines.number()), (2000, 2000));
    }

    #[test]
    fn an_endless_line_is_refused_in_bounded_memory() {
        let mut lines = Lines::new(Box::new(std::io::repeat(b'1')));
        assert!(matches!(lines.next_line(), Err(LineError::TooLong)));
    }
}
