//! Pages as they are read and verified.

use super::Flash;
use super::copies::Found;
use crate::record::{Entry, Kind, Record};
use crate::store::Store;
use nandscape_core::{FlashError, FlashResult, OutOfBand, Ppn};
use nandscape_media::checksum::sum;

/// Pages that are remembered after a refused read.
const MOST_REFUSED: usize = 1024;

impl<S: Store, O: OutOfBand> Flash<S, O> {
    /// The OOB of a page and bytes of it.
    pub(super) fn read_any(&mut self, page: Ppn, start: u32, data: Option<&mut [u8]>) -> FlashResult<O> {
        let (block, index) = self.locate(page)?;
        let state = self.blocks[block.index()];
        if index >= state.write_pointer {
            return Err(FlashError::Erased { page });
        }
        let Found { record, at } = match self.find(page, state.erases) {
            Ok(found) => found,
            Err(Entry::Empty) if self.header.capabilities.out_of_order_program => {
                return Err(FlashError::Erased { page });
            }
            // Images of version 1 have gaps that a failure of the machine left.
            Err(Entry::Empty) if !self.layout.has_copies() => return Err(self.refuse_torn(page)),
            Err(_) => return Err(self.refuse(page)),
        };
        if record.kind == Kind::Torn {
            return Err(self.refuse_torn(page));
        }
        if at as u64 != self.layout.record(page) {
            self.mend_record(page, true);
        }
        self.totals.reads += 1;
        let is_good = match data {
            None => true,
            Some(data) if record.kind == Kind::Blank => {
                data.fill(0);
                true
            }
            Some(data) => self.read_bytes(page, at, start, data),
        };
        if !is_good {
            self.health.checksum_errors += 1;
            return Err(FlashError::Uncorrectable { page });
        }
        Ok(Record::oob(self.record_at(at), self.layout.oob_rest))
    }

    #[cold]
    pub(super) fn refuse(&mut self, page: Ppn) -> FlashError {
        self.totals.reads += 1;
        self.health.checksum_errors += 1;
        FlashError::Damaged { page }
    }

    #[cold]
    pub(super) fn refuse_torn(&mut self, page: Ppn) -> FlashError {
        self.totals.reads += 1;
        self.health.torn_pages += 1;
        FlashError::Uncorrectable { page }
    }

    /// Reads bytes of a page with its record at `at`; `false` where a unit is wrong or cannot be read.
    pub(crate) fn read_bytes(&mut self, page: Ppn, at: usize, start: u32, data: &mut [u8]) -> bool {
        let units = self.layout.units.covering(start, data.len() as u32);
        let (first, end) = (units.start * self.layout.units.bytes, units.end * self.layout.units.bytes);
        let offset = self.layout.page(page) + u64::from(first);
        if first == start && (end - first) as usize == data.len() {
            return self.read_store(page, offset, data) && self.verify(at, units.start, data);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let whole = &mut buffer[..(end - first) as usize];
        let is_good = self.read_store(page, offset, whole) && self.verify(at, units.start, whole);
        data.copy_from_slice(&whole[(start - first) as usize..][..data.len()]);
        self.buffer = buffer;
        is_good
    }

    #[inline]
    fn read_store(&mut self, page: Ppn, offset: u64, data: &mut [u8]) -> bool {
        let is_read = self.store.read_at(offset, data).is_ok();
        if !is_read && self.refused.len() < MOST_REFUSED && self.refused.last() != Some(&page) {
            self.refused.push(page);
        }
        is_read
    }

    fn verify(&self, at: usize, first: u32, bytes: &[u8]) -> bool {
        let record = self.record_at(at);
        bytes
            .chunks_exact(self.layout.units.bytes as usize)
            .zip(first..)
            .all(|(unit, index)| sum(unit) == Record::unit_sum(record, index))
    }
}
