//! `--limit N`: the first N requests of the source.

use crate::error::Result;
use crate::options::BoxReader;
use nandscape_core::{IoRecord, Origin, TraceReader, WorkloadInfo};

pub(crate) struct Limit {
    inner: BoxReader,
    most: u64,
    passed: u64,
}

impl Limit {
    pub(crate) fn new(inner: BoxReader, limit: u64) -> Self {
        Self { inner, most: limit, passed: 0 }
    }
}

impl Iterator for Limit {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.passed == self.most {
            return None;
        }
        self.passed += 1;
        self.inner.next()
    }
}

impl TraceReader for Limit {
    fn info(&self) -> WorkloadInfo {
        let info = self.inner.info();
        let expected_records = info.expected_records.map(|n| n.min(self.most));
        WorkloadInfo { records: info.records.min(self.most), expected_records, ..info }
    }

    fn origin(&self) -> Origin<'_> {
        self.inner.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrappers::testing::{all, io, list};
    use nandscape_core::TraceOp;

    #[test]
    fn no_more_than_the_limit_and_no_less_than_there_is() {
        let records: Vec<_> = (0..5).map(|i| io(i, TraceOp::Write, 0, i, 1)).collect();
        assert_eq!(all(Limit::new(list(&records), 3)), records[..3]);
        assert_eq!(all(Limit::new(list(&records), 9)), records);
        assert_eq!(all(Limit::new(list(&records), 0)), []);
    }
}
