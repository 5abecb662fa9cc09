//! Operations on objects for a device that has blocks: each object is a file of the file system model, which
//! finds places for it, as it does for recordings of file operations.
//!
//! A store of objects lies below a page cache, so writes of whole blocks go to the device at once, as they
//! went to the store. Others wait in the model's page cache until they are synced or old.

use crate::error::{Result, io};
use crate::options::{BoxReader, Target};
use nandscape_core::{Hint, IoRecord, Origin, TraceError, TraceOp, TraceReader, WorkloadInfo};
use nandscape_host::fs::{BLOCK, FileNames, FileOp, FileOpKind, FileSystem, FsError, FsOptions};
use std::collections::BTreeMap;

pub(crate) struct Placed {
    inner: BoxReader,
    target: Target,
    /// `None` while no operation on an object was seen, and without one all requests are those of a device.
    files: Option<Files>,
    has_begun: bool,
    at_end: bool,
}

struct Files {
    system: FileSystem,
    /// By number of the object: that of its life, which is that of the file.
    lives: BTreeMap<u32, u32>,
    last: u32,
}

impl Placed {
    pub(crate) fn new(inner: BoxReader, target: Target) -> Self {
        Self { inner, target, files: None, has_begun: false, at_end: false }
    }

    fn begin(&mut self) -> Result<(), FsError> {
        let Target { volume_bytes, page_bytes, files, .. } = self.target;
        let size = (volume_bytes > 0).then_some(volume_bytes);
        let options = FsOptions { size, align: page_bytes, reads: true, ..FsOptions::over(files) };
        let system = FileSystem::new(options, FileNames::default())?;
        self.files = Some(Files { system, lives: BTreeMap::new(), last: 0 });
        Ok(())
    }
}

impl Files {
    fn apply(&mut self, record: &IoRecord) -> Result<(), FsError> {
        let IoRecord { at, offset, len, .. } = *record;
        let op = |kind, file, offset, len| FileOp { at, kind, writer: 0, file, offset, len };
        if record.op == TraceOp::ObjectFlush && len > 0 {
            let mut lives = self.lives.values().rev();
            let last = lives.next().copied();
            for life in lives {
                self.system.apply(&op(FileOpKind::SyncRange, *life, 0, 0))?;
            }
            return last.map_or(Ok(()), |life| self.system.apply(&op(FileOpKind::Fsync, life, 0, 0)));
        }
        let known = self.lives.get(&record.volume).copied().filter(|_| record.op != TraceOp::ObjectCreate);
        let life = if let Some(life) = known {
            life
        } else {
            self.last += 1;
            self.lives.insert(record.volume, self.last);
            let is_new = record.op == TraceOp::ObjectCreate;
            let kind = if is_new { FileOpKind::Create } else { FileOpKind::Open };
            self.system.apply(&op(kind, self.last, 0, 0))?;
            // Other classes of objects mean nothing to a file system.
            if (Hint::NONE.0..=Hint::EXTREME.0).contains(&record.hint) {
                self.system.apply(&op(FileOpKind::Hint, self.last, 0, record.hint.into()))?;
            }
            self.last
        };
        let kind = match record.op {
            TraceOp::ObjectWrite => FileOpKind::Write,
            TraceOp::ObjectRead => FileOpKind::Read,
            TraceOp::ObjectTruncate => FileOpKind::Truncate,
            TraceOp::ObjectPunch => FileOpKind::Punch,
            TraceOp::ObjectFlush => FileOpKind::Fsync,
            TraceOp::ObjectDelete => {
                self.lives.remove(&record.volume);
                FileOpKind::Delete
            }
            _ => return Ok(()),
        };
        self.system.apply(&op(kind, life, offset, len))?;
        if kind == FileOpKind::Write && len > 0 && (offset | len).is_multiple_of(BLOCK) {
            self.system.apply(&op(FileOpKind::SyncRange, life, offset, len))?;
        }
        Ok(())
    }
}

impl Iterator for Placed {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(files) = &mut self.files
                && let Some(record) = files.system.next_request()
            {
                return Some(Ok(record));
            }
            if self.at_end {
                return None;
            }
            let done = match self.inner.next() {
                Some(Ok(record)) => {
                    if !std::mem::replace(&mut self.has_begun, true)
                        && record.op.is_object_op()
                        && let Err(error) = self.begin()
                    {
                        self.at_end = true;
                        return Some(Err(self.failed(&error)));
                    }
                    match &mut self.files {
                        None => return Some(Ok(record)),
                        Some(files) => files.apply(&record),
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.at_end = true;
                    self.files.as_mut().map_or(Ok(()), |files| files.system.finish())
                }
            };
            if let Err(error) = done {
                self.at_end = true;
                return Some(Err(self.failed(&error)));
            }
        }
    }
}

impl Placed {
    fn failed(&self, error: &FsError) -> TraceError {
        let info = self.inner.info();
        io(&info.format, format!("request {}, on files of a block device: {error}", info.records))
    }
}

impl TraceReader for Placed {
    fn info(&self) -> WorkloadInfo {
        let info = self.inner.info();
        // Of the requests that come out nothing is known before.
        let expected_records = info.expected_records.filter(|_| self.files.is_none());
        WorkloadInfo { expected_records, ..info }
    }

    fn origin(&self) -> Origin<'_> {
        self.files.as_ref().map_or_else(|| self.inner.origin(), |files| files.system.origin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrappers::testing::{all, io, list};
    use nandscape_host::fs::Below;

    const TARGET: Target =
        Target { capacity_bytes: 64 << 20, volume_bytes: 64 << 20, page_bytes: 4096, files: Below::Xfs };

    #[test]
    fn objects_become_files_on_blocks() {
        let records = [
            io(10, TraceOp::ObjectCreate, 7, 0, 0),
            io(20, TraceOp::ObjectWrite, 7, 0, 300_000),
            io(30, TraceOp::ObjectFlush, 7, 0, 0),
            io(40, TraceOp::ObjectDelete, 7, 0, 0),
            io(50, TraceOp::ObjectCreate, 7, 0, 0),
            io(60, TraceOp::ObjectWrite, 7, 0, 100),
            io(70, TraceOp::ObjectFlush, 1, 0, IoRecord::EVERY_OBJECT),
        ];
        let placed = all(Placed::new(list(&records), TARGET));
        assert!(placed.iter().all(|record| !record.op.is_object_op() && record.end() <= TARGET.volume_bytes));
        let whole = [
            io(1, TraceOp::ObjectCreate, 7, 0, 0),
            io(2, TraceOp::ObjectWrite, 7, 0, 8192),
            io(3, TraceOp::ObjectWrite, 7, 8192, 100),
        ];
        let mut at_once = Placed::new(list(&whole), TARGET);
        let first = at_once.next().unwrap().unwrap();
        assert_eq!((first.op, first.len, first.at.as_ns()), (TraceOp::Write, 8192, 2), "before the end");
        let data: u64 =
            placed.iter().filter(|r| r.op == TraceOp::Write && r.len >= 100 << 10).map(|r| r.len).sum();
        assert_eq!(data, 300_000_u64.next_multiple_of(4096), "the first life of the object");
        assert!(placed.iter().any(|record| record.op == TraceOp::Flush));
    }

    #[test]
    fn requests_of_a_device_stay_and_a_full_volume_is_an_error() {
        let records = [io(1, TraceOp::Write, 0, 4096, 4096), io(2, TraceOp::Read, 0, 0, 512)];
        assert_eq!(all(Placed::new(list(&records), TARGET)), records);
        let records = [
            io(1, TraceOp::ObjectCreate, 1, 0, 0),
            io(2, TraceOp::ObjectWrite, 1, 0, 100 << 20),
            io(3, TraceOp::ObjectFlush, 1, 0, 0),
        ];
        let mut placed = Placed::new(list(&records), TARGET);
        let error = placed.find_map(Result::err).expect("100 MiB on 64").to_string();
        assert!(error.contains("the volume is full"), "{error}");
        assert!(placed.next().is_none());
    }
}
