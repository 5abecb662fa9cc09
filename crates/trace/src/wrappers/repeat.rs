//! `--repeat N`: the whole workload N times, each time opened anew. Objects that a pass leaves are deleted
//! behind it, since the next one makes the same.

use crate::error::Result;
use crate::error::io;
use crate::gate::TIME_MAX_NS;
use crate::options::BoxReader;
use nandscape_core::{IoRecord, Origin, SimTime, TraceOp, TraceReader, WorkloadInfo};
use std::collections::BTreeSet;

pub(crate) type Opener = Box<dyn FnMut() -> Result<BoxReader> + Send>;

/// After which passes objects are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletes {
    /// All but the last.
    Between,
    Always,
}

/// Each pass starts one mean gap after the last request of the pass before, so that times keep growing.
pub(crate) struct Repeat {
    open: Opener,
    inner: BoxReader,
    passes: u64,
    pass: u64,
    first: Option<u64>,
    last: u64,
    shift: u64,
    in_pass: u64,
    deletes: Deletes,
    /// Objects that are there.
    live: BTreeSet<u32>,
    /// Counts of the finished passes.
    done: WorkloadInfo,
    finished: bool,
}

impl Repeat {
    pub(crate) fn new(mut open: Opener, passes: u64, deletes: Deletes) -> Result<Self> {
        let inner = open()?;
        let done = WorkloadInfo::default();
        Ok(Self {
            open,
            inner,
            passes,
            pass: 1,
            first: None,
            last: 0,
            shift: 0,
            in_pass: 0,
            deletes,
            live: BTreeSet::new(),
            done,
            finished: false,
        })
    }

    /// Deletes an object that the pass has left, if it is to leave none.
    fn delete(&mut self) -> Option<IoRecord> {
        if self.deletes == Deletes::Between && self.pass >= self.passes {
            return None;
        }
        let volume = self.live.pop_first()?;
        self.done.records += 1;
        let (at, op) = (SimTime(self.last), TraceOp::ObjectDelete);
        Some(IoRecord { at, op, volume, offset: 0, len: 0, hint: 0 })
    }

    /// Opens the next pass; `false` after the last.
    fn advance(&mut self) -> Result<bool> {
        if self.pass >= self.passes || self.in_pass == 0 {
            return Ok(false);
        }
        let info = self.inner.info();
        self.done.records += info.records;
        self.done.time_reversals += info.time_reversals;
        self.done.skipped += info.skipped;
        let first = self.first.unwrap_or(0);
        // In `last` and `in_pass` all passes so far are counted, which keeps the mean gap the same.
        let gap = if self.in_pass > 1 { (self.last - first) / (self.in_pass - 1) } else { 0 };
        self.shift = (self.last + gap).saturating_sub(first);
        if self.shift > TIME_MAX_NS {
            return Err(io(
                &info.format,
                format!("pass {} begins later than 100 years: expected fewer repetitions", self.pass + 1),
            ));
        }
        self.inner = (self.open)()?;
        self.pass += 1;
        Ok(true)
    }
}

impl Iterator for Repeat {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.finished {
            match self.inner.next() {
                Some(Ok(mut record)) => {
                    let at = record.at.as_ns();
                    self.first.get_or_insert(at);
                    self.last = at + self.shift;
                    record.at = SimTime(self.last);
                    self.in_pass += 1;
                    match record.op {
                        TraceOp::ObjectCreate => _ = self.live.insert(record.volume),
                        TraceOp::ObjectDelete => _ = self.live.remove(&record.volume),
                        _ => {}
                    }
                    return Some(Ok(record));
                }
                Some(Err(error)) => {
                    self.finished = true;
                    return Some(Err(error));
                }
                None => {
                    if let Some(record) = self.delete() {
                        return Some(Ok(record));
                    }
                    match self.advance() {
                        Ok(true) => {}
                        Ok(false) => self.finished = true,
                        Err(error) => {
                            self.finished = true;
                            return Some(Err(error));
                        }
                    }
                }
            }
        }
        None
    }
}

impl TraceReader for Repeat {
    fn info(&self) -> WorkloadInfo {
        let info = self.inner.info();
        WorkloadInfo {
            records: info.records + self.done.records,
            time_reversals: info.time_reversals + self.done.time_reversals,
            skipped: info.skipped + self.done.skipped,
            expected_records: info.expected_records.and_then(|n| n.checked_mul(self.passes)),
            ..info
        }
    }

    fn origin(&self) -> Origin<'_> {
        self.inner.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrappers::testing::{all, io, list};

    #[test]
    fn times_keep_growing_by_the_mean_gap() {
        let records = [5u64, 15, 25].map(|at| io(at, TraceOp::Read, 0, at, 1));
        let repeat = Repeat::new(Box::new(move || Ok(list(&records))), 3, Deletes::Between).unwrap();
        let times: Vec<_> = all(repeat).iter().map(|r| r.at.as_ns()).collect();
        assert_eq!(times, [5, 15, 25, 35, 45, 55, 65, 75, 85]);
    }

    #[test]
    fn an_empty_workload_does_not_loop_for_ever() {
        let repeat = Repeat::new(Box::new(|| Ok(list(&[]))), u64::MAX, Deletes::Between).unwrap();
        assert_eq!(all(repeat), []);
    }

    #[test]
    fn what_a_pass_leaves_is_deleted_before_the_next_one() {
        use TraceOp::{ObjectCreate, ObjectDelete, ObjectWrite};
        let records = [
            io(1, ObjectCreate, 4, 0, 0),
            io(2, ObjectCreate, 2, 0, 0),
            io(3, ObjectCreate, 3, 0, 0),
            io(4, ObjectWrite, 4, 0, 10),
            io(5, ObjectDelete, 2, 0, 0),
        ];
        let repeat = |passes, deletes| {
            let reader = Repeat::new(Box::new(move || Ok(list(&records))), passes, deletes).unwrap();
            all(reader).iter().map(|record| (record.op, record.volume)).collect::<Vec<_>>()
        };
        let pass = records.map(|record| (record.op, record.volume));
        let ends = [(ObjectDelete, 3), (ObjectDelete, 4)];
        assert_eq!(repeat(1, Deletes::Between), pass);
        assert_eq!(repeat(1, Deletes::Always), [&pass[..], &ends].concat());
        assert_eq!(repeat(2, Deletes::Between), [&pass[..], &ends, &pass].concat());
    }
}
