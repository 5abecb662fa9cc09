//! `--time-scale X`: every gap times X, from the first request on.

use crate::BoxReader;
use crate::error::io;
use crate::gate::TIME_MAX_NS;
use nandscape_core::{IoRecord, Origin, SimTime, TraceError, TraceReader, WorkloadInfo};

pub(crate) struct TimeScale {
    inner: BoxReader,
    factor: f64,
    first: Option<u64>,
    finished: bool,
}

impl TimeScale {
    pub(crate) fn new(inner: BoxReader, factor: f64) -> Self {
        Self { inner, factor, first: None, finished: false }
    }
}

impl Iterator for TimeScale {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let mut record = match self.inner.next()? {
            Ok(record) => record,
            Err(error) => return Some(Err(error)),
        };
        let at = record.at.as_ns();
        let first = *self.first.get_or_insert(at);
        let scaled = (at - first) as f64 * self.factor;
        if scaled > TIME_MAX_NS as f64 {
            self.finished = true;
            return Some(Err(io(
                &self.inner.info().format,
                format!("time {at} ns x {} exceeds 100 years: expected a smaller time scale", self.factor),
            )));
        }
        record.at = SimTime(first + scaled.round() as u64);
        Some(Ok(record))
    }
}

impl TraceReader for TimeScale {
    fn info(&self) -> WorkloadInfo {
        self.inner.info()
    }

    fn origin(&self) -> Origin<'_> {
        self.inner.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrappers::testing::{all, io, list};
    use nandscape_core::Op;

    #[test]
    fn gaps_are_multiplied_and_the_start_stays() {
        let records = [10u64, 20, 50].map(|at| io(at, Op::Read, 0, 0, 1));
        let scaled = all(TimeScale::new(list(&records), 0.5));
        assert_eq!(scaled.iter().map(|r| r.at.as_ns()).collect::<Vec<_>>(), [10, 15, 30]);
    }

    #[test]
    fn an_overflow_is_one_error() {
        let records = [0, 1 << 40, 1 << 41].map(|at| io(at, Op::Read, 0, 0, 1));
        let mut scaled = TimeScale::new(list(&records), 1e9);
        assert!(scaled.next().unwrap().is_ok());
        assert!(scaled.next().unwrap().unwrap_err().to_string().contains("100 years"));
        assert!(scaled.next().is_none());
    }
}
