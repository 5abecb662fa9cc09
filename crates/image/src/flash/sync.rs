//! Syncs, and what can be given back after one.

use super::{CAME_BACK, FAILED, Flash, LOST, UNPROVEN};
use crate::store::Store;
use nandscape_core::{FlashError, FlashResult, OutOfBand};
use std::io::Error;

impl<S: Store, O: OutOfBand> Flash<S, O> {
    /// Makes everything safe, then the erases that waited for it.
    pub(crate) fn sync_all(&mut self) -> FlashResult<()> {
        self.failed.map_or(Ok(()), |reason| Err(FlashError::ReadOnly { reason }))?;
        if !self.is_dirty {
            return Ok(());
        }
        self.sync_store()?;
        self.is_dirty = false;
        // Records of another epoch than this count as covered.
        if self.unproven.is_empty() {
            self.state.epoch = self.state.epoch.wrapping_add(1);
        }
        self.write_state();
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

    /// Whether programs and erases are taken. A refused read does not mean that the bytes are gone: a layer
    /// above may give them up only if the file works, as a sync of something new shows, yet refuses them.
    #[inline]
    pub(super) fn check_writable(&mut self) -> FlashResult<()> {
        self.failed.map_or(Ok(()), |reason| Err(FlashError::ReadOnly { reason }))?;
        if self.refused.is_empty() { Ok(()) } else { self.check_refused() }
    }

    #[cold]
    fn check_refused(&mut self) -> FlashResult<()> {
        let refused = std::mem::take(&mut self.refused);
        self.put_state();
        self.sync_all()?;
        let mut bytes = vec![0; self.layout.geometry.page_bytes as usize];
        let came_back = refused.into_iter().any(|page| {
            let erases = self.blocks[self.layout.geometry.block_of(page).index()].erases;
            self.find(page, erases).is_ok_and(|found| self.read_bytes(page, found.at, 0, &mut bytes))
        });
        self.refused.clear();
        if came_back { Err(FlashError::ReadOnly { reason: CAME_BACK }) } else { Ok(()) }
    }

    /// Looks for the bytes of unproven pages, and rewrites those that are there, for the next sync to cover.
    #[cold]
    pub(super) fn prove(&mut self) -> FlashResult<()> {
        let mut bytes = vec![0; self.layout.geometry.page_bytes as usize];
        let mut unproven = std::mem::take(&mut self.unproven);
        unproven.retain(|page| {
            let at = self.layout.record(*page) as usize;
            let is_there = self.read_bytes(*page, at, 0, &mut bytes);
            if is_there {
                self.rewrite(*page, &bytes);
            }
            !is_there
        });
        self.refused.clear();
        self.unproven = unproven;
        if !self.unproven.is_empty() {
            return Err(FlashError::ReadOnly { reason: UNPROVEN });
        }
        self.state.boot = self.session;
        self.put_state();
        self.is_dirty = true;
        self.check_writable()
    }

    /// Whether the file refused a read since this was last asked.
    pub(crate) fn was_refused(&mut self) -> bool {
        let was_refused = !self.refused.is_empty();
        self.refused.clear();
        was_refused
    }

    /// The sync that ends a start. If it fails it is the last, so that the image is not closed as good.
    pub(crate) fn sync_first(&mut self) -> Result<(), Error> {
        let synced = if self.failed.is_some() { Err(Error::other(FAILED)) } else { self.store.sync() };
        synced.inspect_err(|_| self.distrust_cache())
    }

    pub(super) fn sync_store(&mut self) -> FlashResult<()> {
        self.check_tables()?;
        self.store.sync().map_err(|_| {
            self.distrust_cache();
            FlashError::ReadOnly { reason: FAILED }
        })
    }

    /// After a failed sync no later one covers what the system gave up, though its cache may hold it. The
    /// next start finds the state of no session, and rewrites everything that no sync covered.
    fn distrust_cache(&mut self) {
        self.failed = Some(FAILED);
        self.state.boot = [0; 16];
        self.put_state();
    }

    /// Fails the image if a part of its tables was lost: the next start does not find what was written there.
    #[inline]
    pub(super) fn check_tables(&mut self) -> FlashResult<()> {
        if !self.store.is_lost() {
            return Ok(());
        }
        self.failed = Some(LOST);
        Err(FlashError::ReadOnly { reason: LOST })
    }

    /// Gives up the space of the blocks erased longest ago, except those that will be programmed next.
    pub(super) fn vacate(&mut self) {
        let block_bytes = self.layout.geometry.block_bytes();
        while self.vacant.len() > self.spare_blocks {
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
    pub(crate) fn close(&mut self) -> FlashResult<()> {
        self.sync_all()?;
        if !self.unproven.is_empty() {
            self.prove()?;
            self.sync_all()?;
        }
        self.state.is_clean = true;
        self.put_state();
        self.sync_store()
    }
}
