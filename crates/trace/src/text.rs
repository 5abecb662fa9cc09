//! The reader of every line-based format.

use crate::decode::Bytes;
use crate::error::Result;
use crate::gate::{Clock, Gate, Parsed, ReadSettings};
use crate::lines::{LONGEST_LINE, LineError, Lines};
use nandscape_core::{IoRecord, Origin, TraceReader, WorkloadInfo};

pub(crate) trait LineFormat: Send {
    /// Reads one line. `number` counts from 1. The message of an error says what was found and what was
    /// expected; place and file are added by the reader.
    fn parse(&mut self, line: &[u8], number: u64) -> Result<Parsed, String>;

    fn label(&self, _volume: u32) -> Option<&str> {
        None
    }

    /// Who issued the request of the line that was parsed last.
    fn origin(&self) -> Origin<'_> {
        Origin::default()
    }

    /// What to try when a file held no request.
    fn hint(&self) -> Option<String> {
        None
    }
}

pub(crate) struct TextReader<F> {
    lines: Lines,
    format: F,
    gate: Gate,
}

impl<F: LineFormat> TextReader<F> {
    pub(crate) fn new(
        bytes: Bytes,
        source: &str,
        name: &str,
        clock: Clock,
        settings: &ReadSettings,
        format: F,
    ) -> Self {
        Self { lines: Lines::new(bytes), format, gate: Gate::new(source, name, clock, settings) }
    }
}

impl<F: LineFormat> Iterator for TextReader<F> {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.gate.finished {
            return None;
        }
        loop {
            let number = self.lines.number() + 1;
            let outcome = match self.lines.next_line() {
                Ok(Some(line)) if memchr::memchr(0, line).is_some() => {
                    Err("a zero byte: expected text, this looks like binary data".to_owned())
                }
                Ok(Some(line)) => self.format.parse(line, number),
                Ok(None) => Ok(Parsed::End),
                Err(LineError::Io(message)) => {
                    return Some(Err(self.gate.fail(format!("after line {}", number - 1), message)));
                }
                Err(LineError::TooLong) => Err(format!(
                    "longer than {LONGEST_LINE} B: expected short lines of text, this looks like another format"
                )),
            };
            let admitted = match outcome {
                Ok(Parsed::Io(record)) => {
                    let format = &self.format;
                    self.gate.admit(record, |volume| format.label(volume))
                }
                Ok(Parsed::Skip) => {
                    self.gate.info.skipped += 1;
                    continue;
                }
                Ok(Parsed::Header) => continue,
                Ok(Parsed::End) => return self.gate.finish(self.format.hint().as_deref()).map(Err),
                Err(message) => Err(message),
            };
            match admitted {
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => {}
                Err(message) => return Some(Err(self.gate.fail(format!("line {number}"), message))),
            }
        }
    }
}

impl<F: LineFormat> TraceReader for TextReader<F> {
    fn info(&self) -> WorkloadInfo {
        self.gate.info.clone()
    }

    fn origin(&self) -> Origin<'_> {
        self.format.origin()
    }
}
