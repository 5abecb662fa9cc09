//! The reader of every format made of fixed-size binary records.

use crate::decode::Bytes;
use crate::error::Result;
use crate::gate::{Clock, Gate, Parsed, ReadSettings};
use crate::lines::read_some;
use nandscape_core::{IoRecord, TraceReader, WorkloadInfo};

pub(crate) trait RecordFormat: Send {
    fn record_bytes(&self) -> usize;

    /// Reads one record of that size. The message of an error says what was found and what was expected.
    fn parse(&mut self, record: &[u8]) -> Result<Parsed, String>;

    /// Sees every run of whole records as it comes from the source, for check sums.
    fn saw(&mut self, _records: &[u8]) {}

    /// Called at the end of the source; an error if more should have come.
    fn at_end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

const BUFFER: usize = 256 << 10;

pub(crate) struct BinaryReader<F> {
    source: Bytes,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Offset of `start` in the decompressed file.
    position: u64,
    format: F,
    gate: Gate,
}

impl<F: RecordFormat> BinaryReader<F> {
    pub(crate) fn new(
        source: Bytes,
        name: &str,
        format_name: &str,
        clock: Clock,
        settings: &ReadSettings,
        format: F,
    ) -> Self {
        let gate = Gate::new(name, format_name, clock, settings);
        Self { source, buffer: vec![0; BUFFER].into(), start: 0, end: 0, position: 0, format, gate }
    }

    /// Says how far into the file the records begin, for error messages.
    pub(crate) fn starting_at(mut self, position: u64, expected_records: Option<u64>) -> Self {
        self.position = position;
        self.gate.info.expected_records = expected_records;
        self
    }

    /// For formats that say themselves whether their times are real.
    pub(crate) fn with_real_times(mut self, real: bool) -> Self {
        self.gate.info.has_real_times &= real;
        self
    }

    /// Fills the buffer to at least one record; `false` at the end of the source.
    #[cold]
    fn refill(&mut self) -> Result<bool> {
        let size = self.format.record_bytes();
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < size {
            let got = read_some(&mut self.source, &mut self.buffer[self.end..])
                .map_err(|message| self.gate.fail(format!("after offset {}", self.position), message))?;
            if got == 0 {
                if self.end > 0 {
                    let message = format!(
                        "the file ends {} B into a record of {size} B: it is cut off or of another format",
                        self.end
                    );
                    return Err(self.gate.fail(format!("offset {}", self.position), message));
                }
                return Ok(false);
            }
            self.end += got;
        }
        // Only whole records are announced; the rest is announced with its other half.
        let whole = self.end - self.end % size;
        self.format.saw(&self.buffer[..whole]);
        Ok(true)
    }

    #[inline]
    fn next_record(&mut self) -> Result<Option<IoRecord>> {
        let size = self.format.record_bytes();
        loop {
            if self.end - self.start < size && !self.refill()? {
                self.format
                    .at_end()
                    .map_err(|message| self.gate.fail(format!("offset {}", self.position), message))?;
                return self.gate.finish(None).map_or(Ok(None), Err);
            }
            let record = &self.buffer[self.start..self.start + size];
            let admitted = match self.format.parse(record) {
                Ok(Parsed::Io(record)) => self.gate.admit(record, |_| None),
                Ok(Parsed::Skip) => {
                    self.gate.info.skipped += 1;
                    Ok(None)
                }
                Ok(Parsed::Header) => Ok(None),
                Ok(Parsed::End) => return self.gate.finish(None).map_or(Ok(None), Err),
                Err(message) => Err(message),
            };
            match admitted {
                Ok(admitted) => {
                    self.start += size;
                    self.position += size as u64;
                    if admitted.is_some() {
                        return Ok(admitted);
                    }
                }
                Err(message) => return Err(self.gate.fail(format!("offset {}", self.position), message)),
            }
        }
    }
}

impl<F: RecordFormat> Iterator for BinaryReader<F> {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.gate.finished {
            return None;
        }
        self.next_record().transpose()
    }
}

impl<F: RecordFormat> TraceReader for BinaryReader<F> {
    fn info(&self) -> WorkloadInfo {
        self.gate.info.clone()
    }
}

/// A little-endian number out of a record whose size is known.
#[inline]
pub(crate) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

#[inline]
pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

#[inline]
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | u64::from(u32_at(record, at + 4)) << 32
}
