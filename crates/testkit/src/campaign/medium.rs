//! Bytes in memory with faults, which a loss of power takes back to what was synced.

use super::faults::{Access, Faults, Refusal};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page: what a sync covers as a whole.
const PAGE: usize = 4096;
/// Bytes that are written whole or not at all.
const SECTOR: usize = 512;

/// `None`: never written, so that writing it needs space.
type Page = Option<Arc<[u8; PAGE]>>;

/// The content of a store.
#[derive(Clone)]
pub struct Medium {
    /// Capacity in bytes.
    pub bytes: u64,
    now: Vec<Page>,
    durable: Vec<Page>,
    /// Pages that were written since they were synced last.
    unsynced: BTreeSet<usize>,
    /// Pages that were written before a sync that failed.
    forgotten: BTreeSet<usize>,
}

impl Medium {
    /// So many zeroes, none of which take space.
    pub fn new(bytes: u64) -> Self {
        let pages = vec![None; (bytes as usize).div_ceil(PAGE)];
        let (unsynced, forgotten) = (BTreeSet::new(), BTreeSet::new());
        Self { bytes, now: pages.clone(), durable: pages, unsynced, forgotten }
    }

    /// Everything takes space from now on, as after `fallocate`.
    pub fn allocate(&mut self) {
        let zeroes = Arc::new([0; PAGE]);
        for page in self.now.iter_mut().chain(&mut self.durable) {
            page.get_or_insert_with(|| Arc::clone(&zeroes));
        }
    }

    fn pages(&self, offset: u64, len: usize) -> Range<usize> {
        assert!(offset + len as u64 <= self.bytes, "{len} bytes at {offset} are past the end");
        offset as usize / PAGE..(offset as usize + len).div_ceil(PAGE)
    }

    /// What lies there, without a fault and uncounted.
    pub fn peek(&self, offset: u64, bytes: &mut [u8]) {
        self.pages(offset, bytes.len());
        let mut at = offset as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, others) = rest.split_at_mut((PAGE - at % PAGE).min(rest.len()));
            match &self.now[at / PAGE] {
                Some(page) => part.copy_from_slice(&page[at % PAGE..][..part.len()]),
                None => part.fill(0),
            }
            at += part.len();
            rest = others;
        }
    }

    /// Puts something there, without a fault and uncounted; not durable.
    pub fn poke(&mut self, offset: u64, bytes: &[u8]) {
        self.unsynced.extend(self.pages(offset, bytes.len()));
        let mut at = offset as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, others) = rest.split_at((PAGE - at % PAGE).min(rest.len()));
            let page = self.now[at / PAGE].get_or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[at % PAGE..][..part.len()].copy_from_slice(part);
            at += part.len();
            rest = others;
        }
    }

    /// Everything is durable, without a fault and uncounted.
    pub fn settle(&mut self) {
        for page in std::mem::take(&mut self.unsynced) {
            self.durable[page].clone_from(&self.now[page]);
            self.forgotten.remove(&page);
        }
    }

    /// A loss of power: what was not synced is gone.
    pub fn lose_power(&mut self) {
        let forgotten = std::mem::take(&mut self.forgotten);
        for page in std::mem::take(&mut self.unsynced).into_iter().chain(forgotten) {
            self.now[page].clone_from(&self.durable[page]);
        }
    }

    fn refused(
        &mut self,
        faults: &Faults,
        store: usize,
        access: Access,
        place: (u64, usize),
    ) -> Option<Refusal> {
        if access != Access::Sync {
            faults.tell(|| format!("    at {}, {} bytes:", place.0, place.1));
        }
        let refusal = faults.next(store, access);
        if refusal == Some(Refusal::Gone) {
            self.lose_power();
        }
        refusal
    }

    /// Reads as the store with this number. A read that fails may have filled a part.
    pub fn read(
        &mut self,
        faults: &Faults,
        store: usize,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), Refusal> {
        let half = bytes.len() / SECTOR / 2 * SECTOR;
        match self.refused(faults, store, Access::Read, (offset, bytes.len())) {
            None => self.peek(offset, bytes),
            Some(refusal) => {
                if refusal == Refusal::Short {
                    self.peek(offset, &mut bytes[..half]);
                }
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Writes as the store with this number. A write that fails with an input/output error or is short has
    /// written the first half of its sectors.
    pub fn write(&mut self, faults: &Faults, store: usize, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let grows = self.pages(offset, bytes.len()).any(|page| self.now[page].is_none());
        let half = bytes.len() / SECTOR / 2 * SECTOR;
        match self.refused(faults, store, Access::Write { grows }, (offset, bytes.len())) {
            None => self.poke(offset, bytes),
            Some(refusal) => {
                if matches!(refusal, Refusal::Io | Refusal::Short) {
                    self.poke(offset, &bytes[..half]);
                }
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Makes everything durable as the store with this number. After a sync that failed, no later sync covers
    /// what was written before it, as on Linux: only pages that are written again are covered.
    pub fn sync(&mut self, faults: &Faults, store: usize) -> Result<(), Refusal> {
        match self.refused(faults, store, Access::Sync, (0, 0)) {
            None => self.settle(),
            Some(refusal) => {
                self.forgotten.append(&mut self.unsynced);
                return Err(refusal);
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Medium").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
