//! Syncs, and what can be given back after one.

use super::{FAILED, Flash, LOST, SPARE_BYTES};
use crate::layout::STATE;
use crate::store::Store;
use nandscape_core::FlashError;

impl<S: Store> Flash<S> {
    /// Makes everything safe, then the erases that waited for it.
    pub fn sync_all(&mut self) -> Result<(), FlashError> {
        if let Some(reason) = self.failed {
            return Err(FlashError::ReadOnly { reason });
        }
        if !self.is_dirty {
            return Ok(());
        }
        self.sync_store()?;
        self.is_dirty = false;
        self.state.epoch = self.state.epoch.wrapping_add(1);
        let state = self.state.encode();
        self.store.tables_mut()[STATE as usize..][..state.len()].copy_from_slice(&state);
        if !self.unsettled.is_empty() {
            for block in std::mem::take(&mut self.unsettled) {
                self.settle(block);
            }
            self.sync_store()?;
            self.is_dirty = false;
            self.vacate();
        }
        Ok(())
    }

    pub(super) fn sync_store(&mut self) -> Result<(), FlashError> {
        self.check_tables()?;
        self.store.sync().map_err(|_| {
            self.failed = Some(FAILED);
            FlashError::ReadOnly { reason: FAILED }
        })
    }

    /// Fails the image when a part of its tables was lost: what was written there since will not be found by the next start.
    #[inline]
    pub(super) fn check_tables(&mut self) -> Result<(), FlashError> {
        if !self.store.is_lost() {
            return Ok(());
        }
        self.failed = Some(LOST);
        Err(FlashError::ReadOnly { reason: LOST })
    }

    /// Gives up the space of the blocks that were erased longest ago, but for those that will be programmed next.
    pub(super) fn vacate(&mut self) {
        let block_bytes = self.layout.geometry.block_bytes();
        let spare = (SPARE_BYTES / block_bytes).max(8) as usize;
        while self.vacant.len() > spare {
            let Some((block, erases)) = self.vacant.pop_front() else { break };
            let state = self.blocks[block.index()];
            if state.erases == erases && !state.is_open {
                self.store.before_overwrite(block, &self.layout);
                // Space that cannot be given up is only lost.
                let _ = self.store.punch(self.layout.block_data(block), block_bytes);
            }
        }
    }

    /// Everything safe, and marked so.
    pub fn close(&mut self) -> Result<(), FlashError> {
        self.sync_all()?;
        self.state.is_clean = true;
        self.put_state();
        self.sync_store()
    }
}
