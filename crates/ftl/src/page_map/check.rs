//! Invariants, checked by tests.

use super::PageMap;
use super::domain::Domain;
use crate::victim::{BlockInfo, BlockState};
use nandscape_core::{BlockId, FlashDevice, Lpn};

impl<D: FlashDevice> PageMap<D> {
    /// Checks the map against the blocks and the device; panics with the values.
    pub(super) fn check(&self) {
        let mut valid = vec![0; self.blocks.infos.len()];
        let mut live = 0;
        for (lpn, page) in self.map.entries().iter().enumerate() {
            let lpn = Lpn(lpn as u32);
            assert_eq!(self.sectors.get(lpn, page.is_some()) != 0, page.is_some(), "{lpn:?} at {page:?}");
            if page.is_some() {
                assert!(self.blocks.is_valid(*page), "{lpn:?} at {page:?}, which is not valid");
                assert!(self.device.is_programmed(*page), "{lpn:?} at {page:?}, which is erased");
                valid[self.blocks.block_of(*page) as usize] += 1;
                live += 1;
            }
        }
        assert_eq!(self.map.live, live, "live pages");
        for (block, info) in self.blocks.infos.iter().enumerate() {
            assert_eq!(info.valid, valid[block], "valid pages of block {block}");
            assert_eq!(self.blocks.count_bits(block as u32), info.valid, "valid bits of block {block}");
        }
        for domain in &self.domains {
            domain.check(
                &self.blocks.infos,
                |block| self.device.write_pointer(BlockId(block)),
                |block| !self.is_slc(block),
            );
        }
        if let Some(groups) = &self.groups {
            groups.check(self.map.entries().iter().copied().filter(|page| page.is_some()));
        }
        if let Some(paged) = &self.paged {
            paged.check(&self.map);
        }
        if let Some(slc) = &self.slc {
            slc.check(
                |block| self.blocks.infos[block as usize].state,
                |block| self.device.write_pointer(BlockId(block)),
            );
        }
    }
}

impl Domain {
    /// Checks counters, pools and frontiers against the blocks; panics with the values.
    pub fn check(
        &self,
        infos: &[BlockInfo],
        write_pointer: impl Fn(u32) -> u32,
        is_own: impl Fn(u32) -> bool,
    ) {
        let range: Vec<u32> = (self.base..self.base + self.blocks).filter(|block| is_own(*block)).collect();
        let range = range.into_iter();
        let count = |state| range.clone().filter(|b| infos[*b as usize].state == state).count() as u32;
        assert_eq!(self.counts.sealed, count(BlockState::Sealed), "sealed blocks");
        assert_eq!(self.counts.free_blocks, count(BlockState::Free), "free blocks");
        assert_eq!(self.counts.good_blocks, range.len() as u32 - count(BlockState::Bad), "good blocks");
        let invalid: u64 = range
            .clone()
            .filter(|b| infos[*b as usize].state == BlockState::Sealed)
            .map(|b| u64::from(self.pages_per_block - infos[b as usize].valid))
            .sum();
        assert_eq!(self.counts.invalid_sealed, invalid, "invalid pages of sealed blocks");
        let mut pooled = 0;
        for (index, pool) in self.lanes.iter().enumerate() {
            for local in pool.contents() {
                pooled += 1;
                assert_eq!(
                    (local / self.blocks_per_lane()) as usize,
                    index,
                    "block {local} in a foreign pool"
                );
                let block = self.base + local;
                assert_eq!(infos[block as usize], BlockInfo::default(), "block {block} in a pool");
                assert_eq!(write_pointer(block), 0, "block {block} in a pool");
            }
            for log in 0..self.logs.len() {
                let slots = self.slots[self.logs[log].range()].iter();
                let open = slots.filter(|s| s.next < s.end && s.lane as usize == index).count();
                let counted = self.open_on[log * self.lanes.len() + index] as usize;
                assert_eq!(open, counted, "open blocks of log {log} on lane {index}");
            }
        }
        assert_eq!(pooled, self.counts.free_blocks, "blocks in pools");
        let mut open_pages = 0;
        for slot in self.slots.iter().filter(|slot| slot.next < slot.end) {
            assert_eq!(infos[slot.block as usize].state, BlockState::Open, "{slot:?}");
            assert_eq!(write_pointer(slot.block), slot.next % self.pages_per_block, "{slot:?}");
            open_pages += u64::from(slot.end - slot.next);
        }
        open_pages += self.leftover_pages(|_| true);
        let free_pages = u64::from(self.counts.free_blocks) * u64::from(self.pages_per_block) + open_pages;
        assert_eq!(self.counts.free_pages, free_pages, "pages that can be programmed");
        if let (Some(split), Some(pieces)) = (&self.candidates.split, &self.pieces) {
            let mut counts = vec![(0, 0); split.shares().count()];
            for block in range.clone().filter(|b| infos[*b as usize].state == BlockState::Sealed) {
                let (sealed, invalid) =
                    &mut counts[usize::from(self.logs[pieces.log_of(block - self.base)].shape.family)];
                *sealed += 1;
                *invalid += u64::from(self.pages_per_block - infos[block as usize].valid);
            }
            assert_eq!(
                split.counts().collect::<Vec<_>>(),
                counts,
                "sealed blocks and invalid pages of streams"
            );
        }
        if let Some(pieces) = &self.pieces {
            pieces.check(|local| {
                let info = infos[(self.base + local) as usize];
                match info.state {
                    BlockState::Free | BlockState::Bad | BlockState::Cache => false,
                    BlockState::Open | BlockState::Failed => true,
                    BlockState::Sealed | BlockState::Victim if self.candidates.takes_pieces() => true,
                    BlockState::Sealed | BlockState::Victim => info.valid > 0,
                }
            });
            let blocks = (0..self.blocks).filter(|local| pieces.has(*local));
            let of = |local| (local, self.part(local), infos[(self.base + local) as usize]);
            self.candidates.check(blocks.map(of));
        }
    }
}
