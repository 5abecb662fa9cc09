//! The two page tables of the page-mapped thesis strategies: logical to physical and back
//! ([thesis table 3.2] to [thesis table 3.4]).

use nandscape_core::{Lpn, Ppn};

/// Forward and inverse page map.
///
/// Invariant: `physical(l) == Some(p)` exactly when `logical(p) == Some(l)`.
#[derive(Clone, Debug)]
pub(crate) struct PageTable {
    forward: Vec<Ppn>,
    inverse: Vec<Lpn>,
}

nandscape_core::state!(impl [] PageTable { tables: forward, inverse; });

impl PageTable {
    /// Bytes of one entry in the thesis's cost model ([thesis 3.2.1.1], T = 8).
    pub(crate) const MODEL_ENTRY_BYTES: u64 = 8;

    pub(crate) fn new(logical_pages: u32, physical_pages: u32) -> Self {
        Self {
            forward: vec![Ppn::NONE; logical_pages as usize],
            inverse: vec![Lpn::NONE; physical_pages as usize],
        }
    }

    /// Where a logical page is (the thesis's `vpg2ppg`).
    #[inline]
    pub(crate) fn physical(&self, lpn: Lpn) -> Option<Ppn> {
        let page = self.forward[lpn.index()];
        page.is_some().then_some(page)
    }

    /// Whose data a physical page holds, if it is live (`ppg2vpg`).
    #[inline]
    pub(crate) fn logical(&self, page: Ppn) -> Option<Lpn> {
        let lpn = self.inverse[page.index()];
        (lpn != Lpn::NONE).then_some(lpn)
    }

    /// Maps `lpn` to `page`, which must be free, in both tables; gives the page it was mapped to before, now
    /// invalid. The map half of the thesis's `allocate_page`; which page it is, the strategy chooses.
    #[inline]
    pub(crate) fn allocate_page(&mut self, lpn: Lpn, page: Ppn) -> Option<Ppn> {
        let holder = std::mem::replace(&mut self.inverse[page.index()], lpn);
        assert!(holder == Lpn::NONE, "page {page:?} given to {lpn:?} still belongs to {holder:?}");
        self.replace(lpn, page)
    }

    /// Unmaps `lpn`; gives the page that held it.
    #[inline]
    pub(crate) fn release(&mut self, lpn: Lpn) -> Option<Ppn> {
        self.replace(lpn, Ppn::NONE)
    }

    #[inline]
    fn replace(&mut self, lpn: Lpn, page: Ppn) -> Option<Ppn> {
        let old = std::mem::replace(&mut self.forward[lpn.index()], page);
        if !old.is_some() {
            return None;
        }
        let owner = std::mem::replace(&mut self.inverse[old.index()], Lpn::NONE);
        assert!(owner == lpn, "{lpn:?} leaves {old:?}, which belongs to {owner:?}");
        Some(old)
    }

    /// Logical pages, mapped or not.
    pub(crate) fn len(&self) -> usize {
        self.forward.len()
    }

    pub(crate) fn dram_bytes(&self) -> u64 {
        4 * (self.forward.len() + self.inverse.len()) as u64
    }

    /// Panics unless the tables are each other's inverse; gives the number of mapped pages.
    pub(crate) fn check(&self) -> u64 {
        let mut mapped = 0;
        for (index, page) in self.forward.iter().enumerate() {
            if page.is_some() {
                mapped += 1;
                let back = self.inverse[page.index()];
                assert_eq!(back, Lpn(index as u32), "inverse of {page:?}");
            }
        }
        let inverse = self.inverse.iter().filter(|lpn| **lpn != Lpn::NONE).count() as u64;
        assert_eq!(mapped, inverse, "mapped logical pages against live physical pages");
        mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_agree_with_each_other() {
        let mut table = PageTable::new(4, 6);
        assert_eq!(table.physical(Lpn(2)), None);
        assert_eq!(table.allocate_page(Lpn(2), Ppn(5)), None);
        assert_eq!(table.physical(Lpn(2)), Some(Ppn(5)));
        assert_eq!(table.logical(Ppn(5)), Some(Lpn(2)));
        assert_eq!(table.allocate_page(Lpn(2), Ppn(0)), Some(Ppn(5)), "an overwrite frees the old page");
        assert_eq!(table.logical(Ppn(5)), None);
        assert_eq!(table.check(), 1);
        assert_eq!(table.release(Lpn(2)), Some(Ppn(0)));
        assert_eq!(table.release(Lpn(2)), None);
        assert_eq!(table.check(), 0);
    }

    #[test]
    #[should_panic(expected = "still belongs to Lpn(1)")]
    fn a_live_page_is_not_given_away() {
        let mut table = PageTable::new(4, 6);
        table.allocate_page(Lpn(1), Ppn(3));
        table.allocate_page(Lpn(2), Ppn(3));
    }
}
