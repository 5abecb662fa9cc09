//! The reference layer's start from what a device holds.

use super::{Log, Place, RECORD_BYTES, Sabotage, record_of};
use nandscape_core::journal::newest;
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, FlashResult, Issue, Lpn, Ppn, SimTime};
use std::collections::BTreeMap;

impl<D: FlashDevice> Log<D> {
    pub(super) fn recover(&mut self) -> FlashResult<()> {
        let geometry = *self.device.geometry();
        let mut drops: BTreeMap<u32, u64> = BTreeMap::new();
        for block in 0..geometry.blocks() {
            if self.device.is_bad(BlockId(block)) {
                continue;
            }
            let pointer = self.device.write_pointer(BlockId(block));
            match pointer {
                0 => {
                    self.free.insert(block);
                }
                _ if pointer < geometry.pages_per_block && self.sabotage == Sabotage::LeaksBlocks => {
                    self.leaked.insert(block);
                }
                // One goes on; of more than one, the others wait for collection.
                _ if pointer < geometry.pages_per_block && self.open.is_none() => {
                    self.open = Some(BlockId(block));
                }
                _ => {}
            }
            for index in 0..if self.has_journal { 0 } else { pointer } {
                self.recover_page(geometry.page(BlockId(block), index), &mut drops)?;
            }
        }
        if self.has_journal {
            for lpn in 0..self.map.len() {
                self.map[lpn] = newest(&self.device, Lpn(lpn as u32)).map(|page| Place { page, seq: 0 });
            }
        }
        for (lpn, seq) in drops {
            self.seq = self.seq.max(seq + 1);
            let place = &mut self.map[lpn as usize];
            if place.is_none_or(|place| place.seq < seq) && self.sabotage != Sabotage::ForgetsDrops {
                *place = None;
                self.dropped.insert(lpn, seq);
            }
        }
        Ok(())
    }

    fn recover_page(&mut self, page: Ppn, drops: &mut BTreeMap<u32, u64>) -> FlashResult<()> {
        let mut data = vec![0; self.device.geometry().page_bytes as usize];
        let oob = match self.device.read(page, 0, Some(&mut data), Issue::new(SimTime::ZERO, Cause::Meta)) {
            Ok(read) => read.oob,
            Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.seq = self.seq.max(oob.seq + 1);
        if oob.lpn == Lpn::META {
            self.records.push(page);
            for record in data.chunks_exact(RECORD_BYTES).take_while(|record| record[0] == 1) {
                let (lpn, seq) = record_of(record);
                let newest = drops.entry(lpn).or_default();
                *newest = seq.max(*newest);
            }
            return Ok(());
        }
        let place = &mut self.map[oob.lpn.index()];
        let is_newer =
            place.is_none_or(|place| (place.seq < oob.seq) != (self.sabotage == Sabotage::OldestWins));
        if is_newer {
            *place = Some(Place { page, seq: oob.seq });
        }
        Ok(())
    }
}
