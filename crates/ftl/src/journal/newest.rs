//! Where the newest data of each logical page is, and how many such pages each block holds.

use super::format::{entry_of, page_of};
use nandscape_core::{Divider, Geometry, Lpn, Ppn};

#[derive(Debug)]
pub(super) struct Newest {
    /// See [`entry_of`]. Zeroed at first, so that the operating system gives memory only for what is used.
    entries: Vec<u32>,
    in_block: Vec<u32>,
    pages_per_block: Divider,
    /// One past the highest logical page that ever held something.
    pub end: u32,
    pub live: u64,
}

impl Newest {
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            entries: vec![0; geometry.pages() as usize],
            in_block: vec![0; geometry.blocks() as usize],
            pages_per_block: Divider::new(geometry.pages_per_block),
            end: 0,
            live: 0,
        }
    }

    /// Whether a logical page can be told from a mark.
    #[inline]
    pub fn has(&self, lpn: Lpn) -> bool {
        lpn.index() < self.entries.len()
    }

    #[inline]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries.get(lpn.index()).copied().and_then(page_of)
    }

    #[inline]
    pub fn set(&mut self, lpn: Lpn, page: Ppn) {
        assert!(page != Ppn::NONE, "{lpn:?} holds something, and that is nowhere");
        let old = std::mem::replace(&mut self.entries[lpn.index()], entry_of(page));
        match page_of(old) {
            Some(old) => self.leave(old),
            None => self.live += 1,
        }
        self.in_block[self.pages_per_block.quotient(page.0) as usize] += 1;
        self.end = self.end.max(lpn.0 + 1);
    }

    #[inline]
    fn leave(&mut self, page: Ppn) {
        let (block, blocks) = (self.pages_per_block.quotient(page.0) as usize, self.in_block.len());
        assert!(block < blocks, "{page:?} is in block {block} of {blocks}");
        let count = &mut self.in_block[block];
        // Below 0 only after an erase that was allowed although it lost data.
        *count = count.saturating_sub(1);
    }

    /// Forgets a page; whether there was something to forget.
    pub fn unset(&mut self, lpn: Lpn) -> bool {
        let Some(old) = page_of(std::mem::take(&mut self.entries[lpn.index()])) else { return false };
        self.leave(old);
        assert!(self.live > 0, "{lpn:?} held something at {old:?}, and no page does");
        self.live -= 1;
        true
    }

    /// Forgets a range; gives the first and one past the last page that held something.
    pub fn unset_range(&mut self, first: u32, count: u32) -> Option<(u32, u32)> {
        let end = first.saturating_add(count).min(self.end);
        let mut found = None;
        for lpn in first..end {
            if self.entries[lpn as usize] != 0 {
                self.unset(Lpn(lpn));
                found = Some((found.map_or(lpn, |(first, _)| first), lpn + 1));
            }
        }
        found
    }

    /// Forgets every page of a block. Slow: looks at the whole map.
    pub fn leave_block(&mut self, block: u32) {
        if self.in_block[block as usize] == 0 {
            return;
        }
        for lpn in 0..self.end {
            let page = page_of(self.entries[lpn as usize]);
            if page.is_some_and(|page| self.pages_per_block.quotient(page.0) == block) {
                self.unset(Lpn(lpn));
            }
        }
    }

    /// Logical pages that hold something, per block.
    #[inline]
    pub fn in_block(&self, block: u32) -> u32 {
        self.in_block[block as usize]
    }

    /// The entries of a range as they are written down.
    pub fn slice(&self, first: u32, count: u32) -> &[u32] {
        let end = (first + count).min(self.entries.len() as u32);
        &self.entries[first as usize..end as usize]
    }
}
