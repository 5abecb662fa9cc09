//! A start from what the flash holds: the journal below tells where the newest data of each page is, the
//! device how far blocks are written.

use super::PageMap;
use crate::error::FtlBuildError;
use crate::parts::base::{LOST, first_oob};
use crate::victim::BlockState;
use nandscape_core::journal::newest;
use nandscape_core::{BlockId, FlashDevice, Lpn, Params, Ppn};

/// A block that holds pages: the sequence number of its first readable page and the log that wrote it.
struct Used {
    seq: u64,
    block: u32,
    log: usize,
}

impl<D: FlashDevice> PageMap<D> {
    /// Takes over what the flash holds. Blocks that were being written go on where they are; whatever
    /// collection was about to do is decided anew.
    pub(super) fn adopt(&mut self, params: &Params) -> Result<(), FtlBuildError> {
        if self.device.journal().is_none() {
            let reason = "it is not erased, and has no journal that tells what it holds".to_owned();
            return Err(FtlBuildError::Device { ftl: super::INFO.name, reason });
        }
        self.adopt_map(params)?;
        let mut used = self.used_blocks()?;
        for Used { block, log, .. } in &used {
            // Without groups a log is in use on all planes or on none.
            let own = self.domain_of(*block);
            let domains = if self.groups.is_some() { own..own + 1 } else { 0..self.domains.len() };
            for domain in self.domains[domains].iter_mut().filter(|domain| !domain.logs[*log].active) {
                domain.use_log(*log);
            }
        }
        // Blocks filled first come first, for policies that look at age.
        used.sort_unstable_by_key(|used| (used.seq, used.block));
        used.retain(|Used { block, .. }| {
            let next = self.device.write_pointer(BlockId(*block));
            let slc = self.slc.as_deref_mut().filter(|slc| slc.blocks.contains(BlockId(*block)));
            if slc.is_some() {
                self.seq += u64::from(next);
            }
            slc.map(|slc| slc.adopt(*block, next)).is_none()
        });
        let partly = |used: &Used| self.device.write_pointer(BlockId(used.block)) < self.pages_per_block;
        let (open, full): (Vec<Used>, Vec<Used>) = used.into_iter().partition(partly);
        for Used { block, log, .. } in full {
            self.seq += u64::from(self.pages_per_block);
            let domain = self.domain_of(block);
            self.domains[domain].take_over(block, log, &mut self.blocks.infos, self.seq);
        }
        for Used { block, log, .. } in open {
            let next = self.device.write_pointer(BlockId(block));
            assert!(next > 0, "block {block} of log {log} holds pages, and is erased");
            self.seq += u64::from(next);
            let domain = self.domain_of(block);
            self.domains[domain].reopen(block, log, next, &mut self.blocks.infos);
        }
        if self.lacks_blocks() {
            self.trouble.attention = true;
        }
        Ok(())
    }

    fn domain_of(&self, block: u32) -> usize {
        (block / self.domains[0].blocks) as usize
    }

    /// Map, sectors and valid pages.
    fn adopt_map(&mut self, params: &Params) -> Result<(), FtlBuildError> {
        let logical = self.map.entries().len() as u32;
        for lpn in (0..logical).map(Lpn) {
            if let Some(page) = newest(&self.device, lpn) {
                self.map.set(lpn, page, Ppn::NONE);
                self.sectors.set(lpn, self.sectors.whole());
                let block = self.blocks.block_of(page);
                self.blocks.set(page, block);
                if let Some(groups) = &mut self.groups {
                    groups.added(page);
                }
                if let Some(paged) = &mut self.paged {
                    paged.added(lpn);
                }
            }
        }
        let beyond = (logical..self.device.geometry().pages())
            .map(Lpn)
            .find(|lpn| newest(&self.device, *lpn).is_some());
        match beyond {
            None => Ok(()),
            Some(lpn) => {
                let expected = format!(
                    "the capacity that the device was written with: it holds logical page {}, of {logical} that there would be",
                    lpn.0
                );
                Err(params.error(super::config::size_key(params), expected).into())
            }
        }
    }

    /// The good blocks that are not erased.
    fn used_blocks(&mut self) -> Result<Vec<Used>, FtlBuildError> {
        let mut used = Vec::new();
        for block in 0..self.device.geometry().blocks() {
            let is_bad = self.blocks.infos[block as usize].state == BlockState::Bad;
            if is_bad || self.device.write_pointer(BlockId(block)) == 0 {
                continue;
            }
            let oob = first_oob(&mut self.device, BlockId(block))
                .map_err(|error| FtlBuildError::start_failed(super::INFO.name, &error))?;
            let (seq, log) = oob.map_or((0, 0), |oob| (oob.seq, usize::from(oob.stream & !LOST)));
            let logs = &self.domains[0].logs;
            // A log that is no more, or has no blocks of its own any more.
            let log = if logs.get(log).is_some_and(|log| log.shape.slots > 0) { log } else { 0 };
            used.push(Used { seq, block, log });
        }
        Ok(used)
    }
}
