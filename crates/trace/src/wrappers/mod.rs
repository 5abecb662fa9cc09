//! Small readers around a reader, one file each.

pub(crate) mod dense;
pub(crate) mod limit;
pub(crate) mod placed;
pub(crate) mod repeat;
pub(crate) mod time_scale;
pub(crate) mod volumes;

use crate::error::Result;
use crate::options::BoxReader;
use nandscape_core::{IoRecord, Origin, TraceReader, WorkloadInfo};

/// Changes each request of another reader. An error of the change ends it.
pub(crate) struct Changed<C> {
    inner: BoxReader,
    change: C,
    /// Of the last request, before the change: later readers see one address space.
    volume: u32,
    is_finished: bool,
}

impl<C: FnMut(&mut IoRecord) -> Result<()>> Changed<C> {
    pub(crate) fn new(inner: BoxReader, change: C) -> Self {
        Self { inner, change, volume: 0, is_finished: false }
    }
}

impl<C: FnMut(&mut IoRecord) -> Result<()>> Iterator for Changed<C> {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let mut next = self.inner.next();
        if let Some(Ok(record)) = &mut next {
            self.volume = record.volume;
            if let Err(error) = (self.change)(record) {
                self.is_finished = true;
                return Some(Err(error));
            }
        }
        next
    }
}

impl<C: FnMut(&mut IoRecord) -> Result<()>> TraceReader for Changed<C> {
    fn info(&self) -> WorkloadInfo {
        self.inner.info()
    }

    fn origin(&self) -> Origin<'_> {
        let origin = self.inner.origin();
        Origin { volume: origin.volume.max(self.volume), ..origin }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use crate::error::Result;
    use nandscape_core::{IoRecord, SimTime, TraceOp, TraceReader, WorkloadInfo};

    pub(crate) struct List(pub(crate) std::vec::IntoIter<IoRecord>, pub(crate) u64);

    impl Iterator for List {
        type Item = Result<IoRecord>;
        fn next(&mut self) -> Option<Self::Item> {
            self.1 += 1;
            self.0.next().map(Ok)
        }
    }

    impl TraceReader for List {
        fn info(&self) -> WorkloadInfo {
            WorkloadInfo { records: self.1, has_real_times: true, ..WorkloadInfo::default() }
        }
    }

    pub(crate) fn list(records: &[IoRecord]) -> crate::BoxReader {
        let owned: Vec<_> = records.into();
        Box::new(List(owned.into_iter(), 0))
    }

    pub(crate) fn io(at: u64, op: TraceOp, volume: u32, offset: u64, len: u64) -> IoRecord {
        IoRecord { at: SimTime(at), offset, len, volume, hint: 0, op }
    }

    pub(crate) fn all(reader: impl TraceReader) -> Vec<IoRecord> {
        reader.map(Result::unwrap).collect()
    }
}
