//! Small readers around a reader, one file each.

pub(crate) mod dense;
pub(crate) mod limit;
pub(crate) mod repeat;
pub(crate) mod time_scale;
pub(crate) mod volumes;

#[cfg(test)]
pub(crate) mod testing {
    use nandscape_core::{IoRecord, Op, SimTime, TraceError, TraceReader, WorkloadInfo};

    /// A reader over a list.
    pub(crate) struct List(pub(crate) std::vec::IntoIter<IoRecord>, pub(crate) u64);

    impl Iterator for List {
        type Item = Result<IoRecord, TraceError>;
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

    pub(crate) fn io(at: u64, op: Op, volume: u32, offset: u64, len: u64) -> IoRecord {
        IoRecord { at: SimTime(at), offset, len, volume, hint: 0, op }
    }

    pub(crate) fn all(reader: impl TraceReader) -> Vec<IoRecord> {
        reader.map(Result::unwrap).collect()
    }
}
