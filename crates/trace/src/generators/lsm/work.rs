//! Flushes and merges as operations on files, a piece at a time.

use super::tree::{Merge, Table};
use nandscape_core::SimTime;
use nandscape_host::fs::{FileOp, FileOpKind, FileSystem, FsError};

/// Bytes of a record of the list of tables.
const RECORD: u64 = 256;
/// The list of tables, which every flush and merge appends to.
pub(super) const MANIFEST: u32 = 1;
/// Offset that stands for the whole file.
const WHOLE: (u64, u64) = (0, 0);

/// The files below the tree, and the time of the next operation.
#[derive(Debug)]
pub(super) struct Files {
    pub fs: FileSystem,
    pub now: SimTime,
    last: u32,
    manifest_bytes: u64,
    /// Bytes that a flush or merge reads or writes at a time.
    piece: u64,
    has_merge_reads: bool,
}

impl Files {
    pub fn new(fs: FileSystem, piece: u64, has_merge_reads: bool) -> Result<Self, FsError> {
        let mut files =
            Self { fs, piece, has_merge_reads, now: SimTime::ZERO, last: MANIFEST, manifest_bytes: 0 };
        files.ask(FileOpKind::Create, MANIFEST, WHOLE)?;
        Ok(files)
    }

    /// Number of a new file.
    pub fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub fn ask(&mut self, kind: FileOpKind, file: u32, (offset, len): (u64, u64)) -> Result<(), FsError> {
        self.fs.apply(&FileOp { at: self.now, kind, writer: 1, file, offset, len })
    }

    /// A new file that is to have so many bytes, with a lifetime hint of Linux.
    pub fn create(&mut self, file: u32, bytes: u64, hint: u64) -> Result<(), FsError> {
        self.ask(FileOpKind::Create, file, WHOLE)?;
        self.ask(FileOpKind::Hint, file, (0, hint))?;
        // Its size stays (FALLOC_FL_KEEP_SIZE), so stores of objects see nothing of it.
        if self.fs.has_objects() { Ok(()) } else { self.ask(FileOpKind::Allocate, file, (0, bytes)) }
    }

    /// Writes bytes behind those that a file has, and has the page cache write them out.
    pub fn append(&mut self, file: u32, offset: u64, len: u64) -> Result<(), FsError> {
        self.ask(FileOpKind::Write, file, (offset, len))?;
        self.ask(FileOpKind::SyncRange, file, (offset, len))
    }

    fn note(&mut self) -> Result<(), FsError> {
        self.ask(FileOpKind::Write, MANIFEST, (self.manifest_bytes, RECORD))?;
        self.manifest_bytes += RECORD;
        self.ask(FileOpKind::Fsync, MANIFEST, WHOLE)
    }
}

/// What a job is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Writes what was in memory to level 0; the log of it is then deleted.
    Flush {
        table: Table,
        log: Option<u32>,
    },
    Merge(Merge),
}

/// A flush or merge under way.
#[derive(Debug)]
pub(super) struct Job {
    pub purpose: Purpose,
    inputs: Vec<(u32, u64)>,
    /// Files, bytes and hints.
    outputs: Vec<(u32, u64, u64)>,
    read: u64,
    to_read: u64,
    written: u64,
    to_write: u64,
    /// Which file is read and written, and how far.
    reading: (usize, u64),
    writing: (usize, u64),
}

impl Job {
    pub fn new(purpose: Purpose, bytes: impl Fn(f64) -> u64) -> Self {
        let (inputs, tables, level) = match &purpose {
            Purpose::Flush { table, .. } => (Vec::new(), std::slice::from_ref(table), 0),
            Purpose::Merge(merge) => (merge.inputs.clone(), &*merge.outputs, merge.level),
        };
        // As RocksDB: levels 0 and 1 live medium, level 2 long, those behind extremely long.
        let hint = [3, 3, 4].get(level).copied().unwrap_or(5);
        let is_move = matches!(&purpose, Purpose::Merge(merge) if merge.is_move);
        let outputs: Vec<_> = if is_move {
            Vec::new()
        } else {
            tables.iter().map(|table| (table.file, bytes(table.keys).max(1), hint)).collect()
        };
        let inputs = if is_move { Vec::new() } else { inputs };
        Self {
            to_read: inputs.iter().map(|(_, bytes)| bytes).sum(),
            to_write: outputs.iter().map(|(_, bytes, _)| bytes).sum(),
            purpose,
            inputs,
            outputs,
            read: 0,
            written: 0,
            reading: (0, 0),
            writing: (0, 0),
        }
    }

    /// Reads a piece and writes what comes of it. Gives whether it is complete.
    pub fn step(&mut self, files: &mut Files) -> Result<bool, FsError> {
        let mut left = files.piece;
        while left > 0
            && let Some(&(file, bytes)) = self.inputs.get(self.reading.0)
        {
            let part = left.min(bytes - self.reading.1);
            if files.has_merge_reads {
                files.ask(FileOpKind::Read, file, (self.reading.1, part))?;
            }
            (self.read, self.reading.1, left) = (self.read + part, self.reading.1 + part, left - part);
            if self.reading.1 == bytes {
                self.reading = (self.reading.0 + 1, 0);
            }
        }
        let due = if self.read == self.to_read && !self.inputs.is_empty() {
            self.to_write
        } else if self.to_read > 0 {
            (u128::from(self.to_write) * u128::from(self.read) / u128::from(self.to_read)) as u64
        } else {
            (self.written + files.piece).min(self.to_write)
        };
        while self.written < due {
            self.write(files, due)?;
        }
        if self.written < self.to_write || self.read < self.to_read {
            return Ok(false);
        }
        files.note()?;
        if let Purpose::Flush { log: Some(log), .. } = self.purpose {
            files.ask(FileOpKind::Delete, log, WHOLE)?;
        }
        for (file, _) in std::mem::take(&mut self.inputs) {
            files.ask(FileOpKind::Delete, file, WHOLE)?;
        }
        Ok(true)
    }

    fn write(&mut self, files: &mut Files, due: u64) -> Result<(), FsError> {
        let (file, bytes, hint) = self.outputs[self.writing.0];
        if self.writing.1 == 0 {
            files.create(file, bytes, hint)?;
        }
        let part = files.piece.min(bytes - self.writing.1).min(due - self.written);
        files.append(file, self.writing.1, part)?;
        (self.written, self.writing.1) = (self.written + part, self.writing.1 + part);
        if self.writing.1 == bytes {
            files.ask(FileOpKind::Fsync, file, WHOLE)?;
            self.writing = (self.writing.0 + 1, 0);
        }
        Ok(())
    }
}
