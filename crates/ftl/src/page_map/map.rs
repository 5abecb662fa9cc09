//! The forward map and the sectors that hold data.

use nandscape_core::{Allocation, Extent, Lpn, Ppn, state};
use nandscape_memory::prefetch;
use std::cell::Cell;

/// Logical pages a live counter covers, so that a trim of a large unmapped range costs next to nothing.
const CHUNK: u32 = 4096;

/// Logical to physical pages, 4 B an entry, with the number of mapped pages of each chunk.
#[derive(Debug)]
pub struct Map {
    entries: Vec<Ppn>,
    live_in_chunk: Vec<u16>,
    /// Mapped pages.
    pub live: u64,
}

state!(impl [] Map { saved: live; tables: entries, live_in_chunk; });

impl Map {
    /// A map of so many pages, none of which is mapped.
    pub fn new(pages: u32) -> Self {
        Self {
            entries: vec![Ppn::NONE; pages as usize],
            live_in_chunk: vec![0; pages.div_ceil(CHUNK) as usize],
            live: 0,
        }
    }

    /// Where each page is.
    pub const fn entries(&self) -> &[Ppn] {
        self.entries.as_slice()
    }

    /// Starts to load an entry, if there is one of that number.
    #[inline]
    pub fn prefetch(&self, lpn: u64) {
        if let Some(entry) = self.entries.get(lpn as usize) {
            prefetch(entry);
        }
    }

    /// Where a page is, or [`Ppn::NONE`].
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        self.entries[lpn.index()]
    }

    /// Maps a page that was at `old` before, which is what `get` gives.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, page: Ppn, old: Ppn) {
        debug_assert!(page.is_some() && page != old, "{lpn:?} goes from {old:?} to {page:?}");
        debug_assert_eq!(self.get(lpn), old, "where {lpn:?} was before {page:?}");
        self.entries[lpn.index()] = page;
        if old == Ppn::NONE {
            self.live += 1;
            self.live_in_chunk[(lpn.0 / CHUNK) as usize] += 1;
        }
    }

    /// Redirects a page that is mapped.
    #[inline]
    pub fn redirect(&mut self, lpn: Lpn, page: Ppn) {
        let is_mapped = self.get(lpn).is_some();
        debug_assert!(is_mapped && page.is_some(), "{lpn:?} is moved to {page:?}, mapped: {is_mapped}");
        self.entries[lpn.index()] = page;
    }

    /// Unmaps a page; gives where it was.
    pub fn unset(&mut self, lpn: Lpn) -> Ppn {
        let old = std::mem::replace(&mut self.entries[lpn.index()], Ppn::NONE);
        if old != Ppn::NONE {
            let live = &mut self.live_in_chunk[(lpn.0 / CHUNK) as usize];
            assert!(*live > 0, "{lpn:?} at {old:?} is in a chunk without live pages, of {}", self.live);
            *live -= 1;
            self.live -= 1;
        }
        old
    }

    /// The first mapped page at or after `from` and before `end`.
    pub fn next_mapped(&self, from: u32, end: u32) -> Option<Lpn> {
        let mut at = from;
        while at < end {
            let chunk = at / CHUNK;
            let chunk_end = end.min((chunk + 1).saturating_mul(CHUNK));
            if self.live_in_chunk[chunk as usize] > 0 {
                let pages = &self.entries[at as usize..chunk_end as usize];
                if let Some(offset) = pages.iter().position(|page| page.is_some()) {
                    return Some(Lpn(at + offset as u32));
                }
            }
            at = chunk_end;
        }
        None
    }

    /// Whether the byte at the start of an extent lies in a mapped page, and up to where this stays so. The
    /// pages have `page_bytes` bytes and the map describes `capacity_bytes`.
    pub fn mapped_at(&self, extent: Extent, page_bytes: u32, capacity_bytes: u64) -> Allocation {
        let page = u64::from(page_bytes);
        let inside = extent.end().min(capacity_bytes);
        if inside <= extent.offset {
            return Allocation { is_mapped: false, bytes: extent.len };
        }
        let (first, end) = ((extent.offset / page) as u32, inside.div_ceil(page) as u32);
        let is_mapped = self.get(Lpn(first)).is_some();
        let change = if is_mapped {
            (first..end).find(|lpn| !self.get(Lpn(*lpn)).is_some())
        } else {
            self.next_mapped(first, end).map(|lpn| lpn.0)
        };
        let bytes = change.map_or(extent.len, |lpn| u64::from(lpn) * page - extent.offset);
        Allocation { is_mapped, bytes }
    }

    /// Memory of it.
    pub const fn bytes(&self) -> u64 {
        (self.entries.len() * size_of::<Ppn>() + self.live_in_chunk.len() * size_of::<u16>()) as u64
    }
}

/// Pages that will be written soon. A write needs their map entries, and what these point to: a layer loads
/// the entries when it hears of the pages, and the rest some pages later.
#[derive(Debug)]
pub struct Ahead {
    recent: [Cell<u32>; Self::PAGES],
    next: Cell<usize>,
}

impl Ahead {
    /// Pages from the first step to the second; a replay knows twice as many.
    const PAGES: usize = 4;

    /// Notes a page; gives the one whose entry was asked for some pages before. It may be any number.
    #[inline]
    pub fn note(&self, lpn: u64) -> Lpn {
        let place = self.next.get() % Self::PAGES;
        self.next.set(place + 1);
        Lpn(self.recent[place].replace(lpn as u32))
    }
}

impl Default for Ahead {
    fn default() -> Self {
        Self { recent: [const { Cell::new(u32::MAX) }; Self::PAGES], next: Cell::new(0) }
    }
}

/// Which sectors of each logical page hold data: one bit a sector, in groups of 2^n bits so that a page never
/// straddles two words. Empty for devices whose page is one sector.
#[derive(Debug)]
pub(super) struct Sectors {
    words: Vec<u64>,
    /// log2 of the bits of a group.
    shift: u32,
    per_page: u32,
}

state!(impl [] Sectors { tables: words; fixed: shift, per_page; });

impl Sectors {
    pub fn new(pages: u32, sectors_per_page: u32) -> Self {
        let shift = sectors_per_page.next_power_of_two().trailing_zeros();
        let words = if sectors_per_page == 1 { 0 } else { (u64::from(pages) << shift).div_ceil(64) };
        Self { words: vec![0; words as usize], shift, per_page: sectors_per_page }
    }

    /// The mask of a whole page.
    #[inline]
    pub const fn whole(&self) -> u64 {
        u64::MAX >> (64 - self.per_page)
    }

    #[inline]
    fn place(&self, lpn: Lpn) -> (usize, u32) {
        let bit = u64::from(lpn.0) << self.shift;
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    /// The sectors of a page that hold data. A page of one sector has it exactly when it is mapped.
    #[inline]
    pub fn get(&self, lpn: Lpn, is_mapped: bool) -> u64 {
        if self.per_page == 1 {
            return u64::from(is_mapped);
        }
        let (word, shift) = self.place(lpn);
        (self.words[word] >> shift) & self.whole()
    }

    #[inline]
    pub fn set(&mut self, lpn: Lpn, mask: u64) {
        if self.per_page > 1 {
            assert!(mask <= self.whole(), "{lpn:?} of {} sectors: {mask:#x}", self.per_page);
            let (word, shift) = self.place(lpn);
            self.words[word] = self.words[word] & !(self.whole() << shift) | mask << shift;
        }
    }

    pub const fn bytes(&self) -> u64 {
        (self.words.len() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_mapped_page_is_found_across_empty_chunks() {
        let mut map = Map::new(5 * CHUNK + 7);
        assert_eq!(map.next_mapped(0, 5 * CHUNK + 7), None);
        map.set(Lpn(4 * CHUNK + 3), Ppn(1), Ppn::NONE);
        map.set(Lpn(5 * CHUNK + 6), Ppn(2), Ppn::NONE);
        assert_eq!(map.next_mapped(0, 5 * CHUNK + 7), Some(Lpn(4 * CHUNK + 3)));
        assert_eq!(map.next_mapped(4 * CHUNK + 4, 5 * CHUNK + 7), Some(Lpn(5 * CHUNK + 6)));
        assert_eq!(map.next_mapped(4 * CHUNK + 4, 5 * CHUNK + 6), None);
        assert_eq!(map.unset(Lpn(4 * CHUNK + 3)), Ppn(1));
        assert_eq!(map.unset(Lpn(4 * CHUNK + 3)), Ppn::NONE);
        assert_eq!(map.live, 1);
    }

    #[test]
    fn sector_masks_of_neighbours_do_not_touch() {
        for per_page in [1, 2, 3, 4, 8, 33, 64] {
            let mut sectors = Sectors::new(100, per_page);
            if per_page == 1 {
                assert_eq!((sectors.get(Lpn(3), true), sectors.get(Lpn(3), false)), (1, 0));
                continue;
            }
            for lpn in 0..100 {
                sectors.set(Lpn(lpn), sectors.whole());
            }
            sectors.set(Lpn(41), 2);
            assert_eq!(sectors.get(Lpn(40), true), sectors.whole());
            assert_eq!(sectors.get(Lpn(41), true), 2);
            assert_eq!(sectors.get(Lpn(42), true), sectors.whole());
        }
    }
}
