//! Page records as the image has them: two copies of each since format version 2, of which one is enough.

use super::Flash;
use crate::record::{Entry, Record};
use crate::store::Store;
use nandscape_core::{OutOfBand, Ppn};

/// A record, and where the copy of it lies that says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub record: Record,
    pub at: usize,
}

/// What both copies say together. With one copy both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Same(Entry),
    /// The first is the record of a programmed page, the second is not the same.
    First(Record),
    Second(Record),
    /// One is broken, the other empty: a program cut short, or an erased page with a damaged copy.
    HalfBroken {
        is_first: bool,
    },
}

impl<S: Store, O: OutOfBand> Flash<S, O> {
    #[inline]
    pub(crate) fn record_at(&self, at: usize) -> &[u8] {
        &self.store.tables()[at..at + self.layout.record_bytes as usize]
    }

    /// What the copy of a record at a place says.
    #[inline]
    fn entry_at(&self, at: usize, page: Ppn, generation: u32) -> Entry {
        match Record::decode(self.record_at(at), page) {
            // What was programmed before the last erase.
            Entry::Record(record) if record.generation < generation => Entry::Empty,
            Entry::Record(record) if record.generation > generation => Entry::Broken,
            entry => entry,
        }
    }

    /// The record of a page, from the copy that is right; `Err` with [`Entry::Empty`] or [`Entry::Broken`].
    #[inline]
    pub(crate) fn find(&self, page: Ppn, generation: u32) -> Result<Found, Entry> {
        let at = self.layout.record(page) as usize;
        match self.entry_at(at, page, generation) {
            Entry::Record(record) => Ok(Found { record, at }),
            first => self.find_second(page, generation, first),
        }
    }

    #[cold]
    fn find_second(&self, page: Ppn, generation: u32, first: Entry) -> Result<Found, Entry> {
        if !self.layout.has_copies() {
            return Err(first);
        }
        let at = (self.layout.record(page) + self.layout.to_second_record) as usize;
        match (first, self.entry_at(at, page, generation)) {
            (_, Entry::Record(record)) => Ok(Found { record, at }),
            (Entry::Broken, Entry::Broken) => Err(Entry::Broken),
            // That an erased page has lost one copy is likelier than that a programmed page has lost both.
            _ => Err(Entry::Empty),
        }
    }

    #[inline]
    pub(crate) fn entry(&self, page: Ppn, generation: u32) -> Entry {
        self.find(page, generation).map_or_else(|entry| entry, |found| Entry::Record(found.record))
    }

    pub(crate) fn copies(&self, page: Ppn, generation: u32) -> Copies {
        let at = self.layout.record(page) as usize;
        let first = self.entry_at(at, page, generation);
        if !self.layout.has_copies() {
            return Copies::Same(first);
        }
        let second_at = at + self.layout.to_second_record as usize;
        let second = self.entry_at(second_at, page, generation);
        match (first, second) {
            (Entry::Record(_), Entry::Record(_)) if self.record_at(at) == self.record_at(second_at) => {
                Copies::Same(first)
            }
            (Entry::Record(record), _) => Copies::First(record),
            (_, Entry::Record(record)) => Copies::Second(record),
            (Entry::Broken, Entry::Empty) => Copies::HalfBroken { is_first: true },
            (Entry::Empty, Entry::Broken) => Copies::HalfBroken { is_first: false },
            (same, _) => Copies::Same(same),
        }
    }

    /// Writes a record over its other copy.
    pub(crate) fn mend_record(&mut self, page: Ppn, from_second: bool) {
        let first = self.layout.record(page) as usize;
        let second = first + self.layout.to_second_record as usize;
        let (from, to) = if from_second { (second, first) } else { (first, second) };
        let len = self.layout.record_bytes as usize;
        self.store.tables_mut().copy_within(from..from + len, to);
        self.is_dirty = true;
    }
}
