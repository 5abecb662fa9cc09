//! Programs, words of blocks and records of pages as they are written.

use super::{FAILED, FULL, Flash};
use crate::layout::OOB_MOST;
use crate::record::{Beside, BlockWord, Entry, Kind, Record};
use crate::store::Store;
use nandscape_core::{BlockId, FlashError, FlashResult, Oob, OutOfBand, Ppn};
use nandscape_media::checksum::sum;
use std::sync::atomic::{Ordering, compiler_fence};

impl<S: Store, O: OutOfBand> Flash<S, O> {
    /// Checks the rules, and makes the block ready for its first page.
    pub(super) fn begin_program(&mut self, page: Ppn) -> FlashResult<(BlockId, u32)> {
        let (block, index) = self.locate(page)?;
        self.check_writable()?;
        let state = self.blocks[block.index()];
        if index != state.write_pointer {
            let expected = state.write_pointer;
            if index < expected && self.entry(page, state.erases) != Entry::Empty {
                return Err(FlashError::NotErased { page });
            }
            if !self.header.capabilities.out_of_order_program {
                // A page that a failure of the machine passed over is as good as torn.
                return Err(if index < expected {
                    FlashError::NotErased { page }
                } else {
                    FlashError::OutOfOrder { page, expected }
                });
            }
        }
        if !state.is_open {
            self.open_block(block)?;
        }
        Ok((block, index))
    }

    /// Clears the records of an erased block. Its old content is lost, so the erase is settled first.
    pub(super) fn open_block(&mut self, block: BlockId) -> FlashResult<()> {
        if self.blocks[block.index()].is_unsettled {
            self.sync_all()?;
        }
        self.store.before_overwrite(block, &self.layout);
        let pages = self.layout.geometry.pages_per_block;
        let first = self.layout.record(self.layout.geometry.page(block, 0)) as usize;
        let len = pages as usize * self.layout.record_bytes as usize;
        for first in Self::places(first as u64, self.layout.to_second_record) {
            self.store.tables_mut()[first..first + len].fill(0);
        }
        self.blocks[block.index()].is_open = true;
        self.put_word(block);
        self.check_tables()
    }

    /// Writes the word that holds what is true now.
    pub(crate) fn put_word(&mut self, block: BlockId) {
        let word = self.blocks[block.index()].word(self.layout.geometry.pages_per_block);
        self.put_twice(self.layout.block(block) + 8, word.encode(block, 1));
    }

    /// Writes the word that holds what is true after a failure of the machine.
    pub(crate) fn settle(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        state.is_unsettled = false;
        let word = BlockWord { erases: state.erases, is_bad: state.is_bad, ..BlockWord::default() };
        self.put_twice(self.layout.block(block), word.encode(block, 0));
    }

    pub(crate) fn put_state(&mut self) {
        self.is_dirty = true;
        self.write_state();
    }

    /// As [`Self::put_state`], of which no sync need be the reason.
    pub(super) fn write_state(&mut self) {
        let state = self.state.encode();
        for at in self.layout.states() {
            self.store.tables_mut()[at as usize..][..state.len()].copy_from_slice(&state);
        }
    }

    /// Writes a word of a block's entry and its second copy.
    fn put_twice(&mut self, offset: u64, word: [u8; 8]) {
        self.is_dirty = true;
        for at in Self::places(offset, self.layout.to_second_block) {
            self.store.tables_mut()[at..at + 8].copy_from_slice(&word);
        }
    }

    /// The record of a page whose program was cut short.
    pub(crate) fn put_torn(&mut self, page: Ppn, place: (BlockId, u32)) {
        let mut bytes = [0; OOB_MOST];
        Oob::TORN.encode(&mut bytes);
        self.put_record(page, place, &bytes[..Oob::BYTES], Kind::Torn);
    }

    /// The record, after its bytes, and with it the page is programmed.
    pub(crate) fn put_record(&mut self, page: Ppn, (block, index): (BlockId, u32), oob: &[u8], kind: Kind) {
        assert!(oob.len() <= self.header.oob_bytes as usize, "the image was made for a shorter OOB");
        let state = &mut self.blocks[block.index()];
        let record = Record { kind, generation: state.erases, epoch: self.state.epoch };
        let is_last = index + 1 == self.layout.geometry.pages_per_block && state.write_pointer <= index;
        state.write_pointer = state.write_pointer.max(index + 1);
        let at = self.layout.record(page) as usize;
        let place = &mut self.store.tables_mut()[at..at + self.layout.record_bytes as usize];
        let sums: &[u32] = if kind == Kind::Data { &self.sums } else { &[] };
        record.encode(page, Beside { oob, sums, rest_at: self.layout.oob_rest }, place);
        if self.layout.has_copies() {
            // A kill leaves at most one copy cut short: the second is not begun before the first is complete.
            compiler_fence(Ordering::SeqCst);
            self.mend_record(page, false);
        }
        self.is_dirty = true;
        if is_last {
            self.put_word(block);
        }
    }

    pub(super) fn write_bytes(&mut self, page: Ppn, data: &[u8]) -> FlashResult<()> {
        let units = data.chunks_exact(self.layout.units.bytes as usize);
        for (sum_of_unit, unit) in self.sums.iter_mut().zip(units) {
            *sum_of_unit = sum(unit);
        }
        self.store.write_at(self.layout.page(page), data).map_err(|error| self.write_failed(&error))
    }

    /// Writes the bytes of a programmed page again. An error fails the image.
    pub(crate) fn rewrite(&mut self, page: Ppn, data: &[u8]) {
        if self.store.write_at(self.layout.page(page), data).is_err() {
            self.failed = Some(FAILED);
        }
    }

    #[cold]
    pub(super) fn write_failed(&mut self, error: &std::io::Error) -> FlashError {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        // Room may come back (`RLIMIT_FSIZE` gives `FileTooLarge`); the page is still erased.
        if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
            return FlashError::ReadOnly { reason: FULL };
        }
        self.failed = Some(FAILED);
        FlashError::ReadOnly { reason: FAILED }
    }
}
