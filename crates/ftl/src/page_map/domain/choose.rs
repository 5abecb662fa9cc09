//! Which block of a domain is emptied next.

use super::Domain;
use crate::victim::{BlockInfo, BlockState, VictimFacts};

impl Domain {
    /// The block that collection takes next.
    pub fn pick(&mut self, infos: &[BlockInfo], now: u64) -> Option<u32> {
        let blocks = &infos[self.base as usize..(self.base + self.blocks) as usize];
        let facts = VictimFacts { blocks, now };
        let block = self.candidates.pick(&facts).map(|local| self.base + local);
        // What could be gained may all be in pieces that are still being filled.
        block.or_else(|| self.emptiest(infos).filter(|_| self.candidates.takes_pieces()))
    }

    /// Sets the shares of the streams if it is time, from the bytes that the host wrote to each so far.
    pub fn review(&mut self, infos: &[BlockInfo], now: u64, written: &[u64]) {
        let (Some(split), Some(pieces)) = (&mut self.candidates.split, &self.pieces) else { return };
        if split.is_due(now) {
            let infos = &infos[self.base as usize..(self.base + self.blocks) as usize];
            let family = |local| usize::from(self.logs[pieces.log_of(local)].shape.family);
            let held = (0..).zip(infos).filter(|(_, info)| info.valid > 0);
            split.review(now, written, held.map(|(local, info)| (family(local), info.valid)));
        }
    }

    /// The sealed block with the fewest valid pages, by a scan: for policies that keep drawing full blocks.
    pub fn emptiest(&self, infos: &[BlockInfo]) -> Option<u32> {
        (self.base..self.base + self.blocks)
            .filter(|block| infos[*block as usize].state == BlockState::Sealed)
            .min_by_key(|block| infos[*block as usize].valid)
    }

    /// As [`Self::emptiest`] of those whose pages find room and that gain something.
    pub fn emptiest_that_fits(&self, infos: &[BlockInfo]) -> Option<u32> {
        let valid = |block: &u32| infos[*block as usize].valid;
        let fits = |block: &u32| {
            infos[*block as usize].state == BlockState::Sealed
                && valid(block) < self.pages_per_block
                && u64::from(valid(block)) <= self.room(self.target(*block, false), false)
        };
        (self.base..self.base + self.blocks).filter(fits).min_by_key(valid)
    }
}
