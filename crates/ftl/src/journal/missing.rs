//! Pages that a checkpoint names and the device no longer has: their records were lost at rest. A mark takes
//! the place of each, so that reading the logical page is an error and no layer programs the page as if it
//! were free.

use super::shape::Table;
use super::{Journal, SEQ_STEP};
use crate::parts::base::LOST;
use nandscape_core::{BlockId, Cause, FlashDevice, FlashResult, Issue, Lpn, Oob, Ppn, SimTime};
use std::collections::{BTreeMap, BTreeSet};

impl<D: FlashDevice> Journal<D> {
    /// Programs the marks. `pages` are those that the map of the checkpoint names.
    pub(super) fn mark_missing(&mut self, pages: &BTreeMap<Ppn, Lpn>, table: &Table) -> FlashResult<()> {
        let geometry = *self.device.geometry();
        let blocks: BTreeSet<BlockId> = pages.keys().map(|page| geometry.block_of(*page)).collect();
        let is_free = self.device.capabilities().out_of_order_program;
        for block in blocks {
            // No map that was written here names a page of the journal's own blocks.
            if self.device.is_bad(block) || self.is_reserved(block) {
                continue;
            }
            let known = table.get(block);
            for index in 0..geometry.pages_per_block {
                let page = geometry.page(block, index);
                if self.device.is_programmed(page) || !known.is_programmed(index) {
                    continue;
                }
                let newest = pages.get(&page).filter(|lpn| self.newest.get(**lpn) == Some(page));
                let (lpn, stream) = match newest {
                    Some(lpn) => (*lpn, LOST),
                    None if is_free => continue,
                    None => (Lpn::PADDING, 0),
                };
                let oob = Oob { lpn, stream, seq: self.seq };
                self.seq += SEQ_STEP;
                let zeroes = vec![0; geometry.page_bytes as usize];
                let issue = Issue::new(SimTime::ZERO, Cause::Meta);
                let done = self.device.program(page, oob, geometry.page_bytes, Some(&zeroes), issue)?;
                self.programmed = self.device.join(self.programmed, done);
            }
        }
        Ok(())
    }
}
