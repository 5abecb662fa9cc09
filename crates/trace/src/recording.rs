//! Recordings: the native CSV, written while a device is served, and readable however the server ended.
//!
//! `.csv` is plain text. `.csv.zst` is a sequence of whole zstd frames, each behind a skippable frame of 20
//! bytes that gives its length (little endian: magic 0x184D2A5E, 12, `nsr1`, bytes of the zstd frame, bytes
//! of text). zstd's own tools pass over those. A reader that knows them can tell a last frame that was cut
//! off, because the server was killed while it wrote, from a damaged file: it ends before it.

use crate::formats::csv::CsvLines;
use crate::frames::frame;
use nandscape_core::IoRecord;
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;

const FRAME_TEXT: usize = 512 << 10;
/// Columns beside the four that every native CSV has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Number of the namespace.
    pub volume: bool,
    /// Stream id or placement handle.
    pub hint: bool,
}

/// Writes a recording.
#[derive(Debug)]
pub struct RecordingWriter {
    file: File,
    compresses: bool,
    columns: Columns,
    text: Vec<u8>,
    /// Commands in it.
    waiting: u64,
    file_bytes: u64,
    commands: u64,
}

impl RecordingWriter {
    /// Makes the file, which must not exist. Its name ends in `.csv` or `.csv.zst`.
    pub fn create(path: &Path, columns: Columns) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let plain = name.strip_suffix(".zst");
        let compresses = plain.is_some();
        if Path::new(plain.unwrap_or(&name)).extension().is_none_or(|extension| extension != "csv") {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{}: expected a name that ends in .csv or .csv.zst", path.display()),
            ));
        }
        let file = File::create_new(path).map_err(|error| named(path, &error))?;
        let mut text = Vec::with_capacity(FRAME_TEXT + 4096);
        CsvLines::header(&mut text, columns.volume, columns.hint);
        let mut writer = Self { file, compresses, columns, text, waiting: 0, file_bytes: 0, commands: 0 };
        if let Err(error) = writer.flush() {
            // Nothing but a part of the header is in it.
            let _ = std::fs::remove_file(path);
            return Err(named(path, &error));
        }
        Ok(writer)
    }

    /// Adds commands. They are in the file after [`RecordingWriter::flush`], or when enough have come
    /// together.
    pub fn write(&mut self, records: &[IoRecord]) -> Result<()> {
        for record in records {
            CsvLines::line(&mut self.text, record, self.columns.volume, self.columns.hint);
            self.waiting += 1;
            if self.text.len() >= FRAME_TEXT {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what has come together. Where the file cannot take it, as many whole lines stay as there was
    /// room for, or whole frames.
    pub fn flush(&mut self) -> Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let compressed = if self.compresses { Some(frame(&self.text)?) } else { None };
        let bytes = compressed.as_ref().unwrap_or(&self.text);
        let outcome = self.file.write_all(bytes);
        if outcome.is_ok() {
            (self.file_bytes, self.commands) =
                (self.file_bytes + bytes.len() as u64, self.commands + self.waiting);
        } else {
            self.cut_to_whole_lines()?;
        }
        self.text.clear();
        self.waiting = 0;
        outcome
    }

    /// After a part of the text was written.
    fn cut_to_whole_lines(&mut self) -> Result<()> {
        let written = self.file.metadata()?.len().saturating_sub(self.file_bytes) as usize;
        let text = if self.compresses { &[] } else { &self.text[..written.min(self.text.len())] };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.commands += text[..whole].split_inclusive(|byte| *byte == b'\n').count() as u64;
        self.file_bytes += whole as u64;
        self.file.set_len(self.file_bytes)
    }

    /// Bytes in the file.
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Commands in the file.
    pub const fn commands(&self) -> u64 {
        self.commands
    }

    /// Writes the rest, down to the disk.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync_data()
    }
}

fn named(path: &Path, error: &Error) -> Error {
    Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Frames;
    use nandscape_core::{SimTime, TraceOp};
    use std::io::Read;

    fn record(n: u64) -> IoRecord {
        let (at, offset) = (SimTime(n * 1_234), n * 4096);
        IoRecord { at, offset, len: 4096, volume: (n % 3) as u32, hint: (n % 5) as u16, op: TraceOp::Write }
    }

    fn text(bytes: &[u8]) -> Result<String> {
        let mut out = String::new();
        Frames::new(bytes).read_to_string(&mut out)?;
        Ok(out)
    }

    /// A recording of several frames: its bytes, and where they end.
    fn sample() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for part in 0..4u64 {
            let mut lines = Vec::new();
            for n in part * 100..(part + 1) * 100 {
                CsvLines::line(&mut lines, &record(n), true, true);
            }
            bytes.extend(frame(&lines).unwrap());
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn cut_anywhere_a_recording_gives_the_whole_lines_before() {
        let (bytes, ends) = sample();
        let whole = text(&bytes).unwrap();
        assert_eq!(whole.lines().count(), 400);
        for cut in 0..=bytes.len() {
            let got = text(&bytes[..cut]).unwrap();
            assert!(whole.starts_with(&got) && (got.is_empty() || got.ends_with('\n')), "{cut}");
            assert_eq!(got.lines().count(), 100 * ends.iter().filter(|end| **end <= cut).count(), "{cut}");
        }
    }

    #[test]
    fn what_a_full_disk_did_not_take_leaves_whole_lines_that_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["r.csv", "r.csv.zst"] {
            let path = dir.path().join(name);
            let records: Vec<IoRecord> = (0..30).map(record).collect();
            let mut most = 0;
            for cut in 0..700 {
                let mut writer = RecordingWriter::create(&path, Columns::default()).unwrap();
                writer.write(&records[..10]).unwrap();
                writer.flush().unwrap();
                // As a write that ends in the middle.
                writer.write(&records[10..]).unwrap();
                let bytes =
                    if writer.compresses { frame(&writer.text).unwrap() } else { writer.text.clone() };
                writer.file.write_all(&bytes[..cut.min(bytes.len() - 1)]).unwrap();
                writer.cut_to_whole_lines().unwrap();
                let file = std::fs::read(&path).unwrap();
                assert_eq!(file.len() as u64, writer.file_bytes(), "{name} {cut}");
                let text =
                    if writer.compresses { text(&file).unwrap() } else { String::from_utf8(file).unwrap() };
                assert!(text.ends_with('\n'), "{name} {cut}: {text}");
                assert_eq!(text.lines().count() as u64, 1 + writer.commands(), "{name} {cut}");
                most = most.max(writer.commands());
                std::fs::remove_file(&path).unwrap();
            }
            assert_eq!(most, if name == "r.csv" { 29 } else { 10 });
        }
    }

    #[test]
    fn a_flipped_bit_is_an_error_unless_it_looks_like_a_cut() {
        let (bytes, _) = sample();
        let whole = text(&bytes).unwrap();
        let mut refused = 0;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            match text(&damaged) {
                Err(error) => {
                    assert!(error.to_string().contains("damaged at offset"), "{error}");
                    refused += 1;
                }
                // A length that grows past the end of the file.
                Ok(got) => assert!(whole.starts_with(&got), "{at}"),
            }
        }
        assert!(refused > bytes.len() * 9 / 10, "{refused} of {}", bytes.len());
    }

    #[test]
    fn plain_and_compressed_files_read_alike_and_other_names_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let records: Vec<IoRecord> = (0..50_000).map(record).collect();
        let mut read = Vec::new();
        for name in ["t.csv", "t.csv.zst"] {
            let path = dir.path().join(name);
            let mut writer = RecordingWriter::create(&path, Columns { volume: true, hint: true }).unwrap();
            writer.write(&records).unwrap();
            writer.finish().unwrap();
            let bytes = writer.file_bytes();
            assert_eq!(bytes, path.metadata().unwrap().len());
            let target = crate::Target { capacity_bytes: 1 << 30, ..crate::Target::NONE };
            let reader = crate::open(path.to_str().unwrap(), &crate::OpenOptions::default(), target).unwrap();
            read.push(reader.map(|record| record.unwrap()).collect::<Vec<_>>());
            assert!(
                RecordingWriter::create(&path, Columns::default()).unwrap_err().to_string().contains(name)
            );
        }
        assert_eq!(read[0].len(), records.len());
        for (got, record) in read[0].iter().zip(&records) {
            // Volumes are laid side by side by whoever reads.
            assert_eq!((got.at, got.op, got.len, got.hint), (record.at, record.op, record.len, record.hint));
        }
        assert_eq!(read[0], read[1]);
        let wrong = RecordingWriter::create(&dir.path().join("t.json"), Columns::default()).unwrap_err();
        assert!(wrong.to_string().contains("expected a name that ends in .csv or .csv.zst"), "{wrong}");
    }
}
