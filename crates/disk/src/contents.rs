//! Bytes in memory, in pages that come into being when they are first written.

use nandscape_core::{Allocation, Extent};
use nandscape_memory::{Arena, Chunk as Room, prefetch};

/// Bytes of a page of memory.
pub(crate) const PAGE: u64 = 4096;
/// Pages of a chunk: one word of the bitmap each.
const CHUNK_PAGES: u64 = 64;
/// Pages that became free are kept for the next ones up to this many bytes.
const SPARE_BYTES: usize = 64 << 20;
/// Bytes of a page that are loaded ahead.
const PREFETCH_BYTES: usize = 1 << 10;

/// What a store in memory remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: counters and time only. Everything counts as written.
    Nothing,
    /// Which pages were written, without their bytes.
    Presence,
    /// The bytes.
    Bytes,
}

type Rooms = [Room; CHUNK_PAGES as usize];

/// What is stored, by pages. A page that is not there reads as zeroes.
#[derive(Debug)]
pub(crate) struct Contents {
    keep: Keep,
    /// Of each chunk, the pages that are there.
    present: Vec<u64>,
    /// Of each chunk, where the bytes of its pages are; empty where no bytes are kept.
    rooms: Vec<Option<Box<Rooms>>>,
    arena: Arena,
    /// Pages there are now.
    pub pages: u64,
    /// Pages that came into being since the beginning.
    pub allocations: u64,
}

impl Contents {
    pub fn new(capacity_bytes: u64, keep: Keep) -> Self {
        let chunks = usize::try_from(capacity_bytes.div_ceil(PAGE * CHUNK_PAGES))
            .expect("a table of the chunks fits memory");
        let kept = |is_kept| if is_kept { chunks } else { 0 };
        let pages = usize::try_from(capacity_bytes.div_ceil(PAGE)).unwrap_or(usize::MAX);
        let arena = Arena::new(PAGE as usize, pages, SPARE_BYTES);
        // Tables of nothing cost nothing until they are written to.
        let present = vec![0; kept(keep != Keep::Nothing)];
        let rooms = vec![None; kept(keep == Keep::Bytes)];
        Self { keep, present, rooms, arena, pages: 0, allocations: 0 }
    }

    /// Writes, or notes that it was written where `data` is `None`: bytes that nobody gave are zeroes.
    pub fn write(&mut self, extent: Extent, data: Option<&[u8]>) {
        if self.keep == Keep::Nothing {
            return;
        }
        for (page, within, done) in pieces(extent) {
            let len = within.len();
            if let Some(room) = self.make(page, len < PAGE as usize) {
                match data {
                    Some(data) => self.arena.write(room, within.start, &data[done..done + len]),
                    None => self.arena.bytes_mut(room)[within].fill(0),
                }
            }
        }
    }

    pub fn read(&self, extent: Extent, data: &mut [u8]) {
        for (page, within, done) in pieces(extent) {
            let target = &mut data[done..done + within.len()];
            match self.room(page) {
                Some(room) => target.copy_from_slice(&self.arena.bytes(room)[within]),
                None => target.fill(0),
            }
        }
    }

    /// Frees the pages that lie wholly in `extent`, and zeroes its other bytes.
    pub fn trim(&mut self, extent: Extent) {
        if self.keep == Keep::Nothing {
            return;
        }
        for (page, within, _) in pieces(extent) {
            if !self.has(page) {
                continue;
            }
            if within.len() as u64 == PAGE {
                self.free(page);
            } else if let Some(room) = self.make(page, true) {
                self.arena.bytes_mut(room)[within].fill(0);
            }
        }
    }

    /// Frees everything; gives the pages that were there.
    pub fn clear(&mut self) -> u64 {
        self.present.fill(0);
        self.rooms.fill(None);
        self.arena.clear();
        std::mem::take(&mut self.pages)
    }

    pub fn allocation(&self, extent: Extent) -> Allocation {
        if self.keep == Keep::Nothing || extent.len == 0 {
            return Allocation { is_mapped: true, bytes: extent.len };
        }
        let first = extent.offset / PAGE;
        let last = (extent.end() - 1) / PAGE;
        let is_mapped = self.has(first);
        let mut page = first + 1;
        while page <= last {
            let at = (page / CHUNK_PAGES) as usize;
            if !is_mapped && page.is_multiple_of(CHUNK_PAGES) && self.present[at] == 0 {
                page += CHUNK_PAGES;
            } else if self.has(page) == is_mapped {
                page += 1;
            } else {
                break;
            }
        }
        Allocation { is_mapped, bytes: (page * PAGE).min(extent.end()) - extent.offset }
    }

    fn has(&self, page: u64) -> bool {
        let (chunk, within) = split(page);
        self.present[chunk] >> within & 1 == 1
    }

    fn room(&self, page: u64) -> Option<Room> {
        let (chunk, within) = split(page);
        let room = self.rooms.get(chunk)?.as_ref()?[within];
        (room != Room::NONE).then_some(room)
    }

    /// Where the page of a byte is will be looked up soon.
    pub fn prefetch_place(&self, offset: u64) {
        let (chunk, within) = split(offset / PAGE);
        if let Some(Some(rooms)) = self.rooms.get(chunk) {
            prefetch(&rooms[within]);
        }
    }

    /// The page of a byte will be read soon.
    pub fn prefetch(&self, offset: u64) {
        if let Some(room) = self.room(offset / PAGE) {
            self.arena.prefetch(room, 0..PREFETCH_BYTES);
        }
    }

    /// Makes the page if need be; `zeroed` if not all of it is written next. `None` where no bytes are kept.
    fn make(&mut self, page: u64, zeroed: bool) -> Option<Room> {
        let (at, within) = split(page);
        let present = &mut self.present[at];
        let is_new = *present >> within & 1 == 0;
        if is_new {
            *present |= 1 << within;
            self.pages += 1;
            self.allocations += 1;
        }
        if self.keep != Keep::Bytes {
            return None;
        }
        let rooms = self.rooms[at].get_or_insert_with(|| Box::new([Room::NONE; CHUNK_PAGES as usize]));
        let room = &mut rooms[within];
        if is_new {
            *room = self.arena.take();
        }
        let room = *room;
        if is_new && zeroed {
            self.arena.bytes_mut(room).fill(0);
        }
        Some(room)
    }

    fn free(&mut self, page: u64) {
        let (at, within) = split(page);
        self.present[at] &= !(1 << within);
        if let Some(Some(rooms)) = self.rooms.get_mut(at) {
            self.arena.give(std::mem::replace(&mut rooms[within], Room::NONE));
            if self.present[at] == 0 {
                self.rooms[at] = None;
            }
        }
        self.pages -= 1;
    }
}

const fn split(page: u64) -> (usize, usize) {
    ((page / CHUNK_PAGES) as usize, (page % CHUNK_PAGES) as usize)
}

/// The pages of an extent: number, bytes within the page, bytes of the extent before it.
fn pieces(extent: Extent) -> impl Iterator<Item = (u64, std::ops::Range<usize>, usize)> {
    let mut at = extent.offset;
    std::iter::from_fn(move || {
        if at >= extent.end() {
            return None;
        }
        let (page, start) = (at / PAGE, at % PAGE);
        let len = (PAGE - start).min(extent.end() - at);
        let done = at - extent.offset;
        at += len;
        Some((page, start as usize..(start + len) as usize, done as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_there_from_its_first_write_to_its_trim() {
        let mut contents = Contents::new(1 << 40, Keep::Bytes);
        contents.write(Extent::new(4096 - 512, 1024), Some(&[7; 1024]));
        assert_eq!((contents.pages, contents.allocations), (2, 2));
        contents.trim(Extent::new(0, 4096));
        assert_eq!(
            (contents.pages, contents.allocations),
            (1, 2),
            "a freed page does not undo its allocation"
        );
        let mut bytes = [1; 1024];
        contents.read(Extent::new(4096 - 512, 1024), &mut bytes);
        assert_eq!((&bytes[..512], &bytes[512..]), (&[0; 512][..], &[7; 512][..]));
        contents.trim(Extent::new(4096, 512));
        contents.read(Extent::new(4096 - 512, 1024), &mut bytes);
        assert_eq!((bytes, contents.pages), ([0; 1024], 1), "part of a page is zeroed in place");
        assert_eq!((contents.clear(), contents.pages), (1, 0));
    }

    #[test]
    fn allocation_ends_where_it_changes() {
        let mut contents = Contents::new(1 << 30, Keep::Presence);
        contents.write(Extent::new(300 * 4096, 3 * 4096), None);
        let hole = contents.allocation(Extent::new(100, 1 << 29));
        assert_eq!(hole, Allocation { is_mapped: false, bytes: 300 * 4096 - 100 });
        let data = contents.allocation(Extent::new(301 * 4096 + 5, 1 << 20));
        assert_eq!(data, Allocation { is_mapped: true, bytes: 2 * 4096 - 5 });
        let tail = contents.allocation(Extent::new(303 * 4096, 100 * 4096));
        assert_eq!(tail, Allocation { is_mapped: false, bytes: 100 * 4096 });
    }
}
