//! What a medium in memory keeps of its pages where it stores data: bytes, OOB and checksums.

use crate::checksum::{self, Units};
use nandscape_core::{FlashError, Geometry, OutOfBand, Ppn};
use nandscape_memory::{Arena, Chunk, prefetch};

/// Bytes are kept in chunks of so many at most, none larger than a block.
const CHUNK_BYTES: u64 = 256 << 10;
/// Chunks that became free are kept for the next programs up to this many bytes, since the system takes long
/// to give memory.
const SPARE_BYTES: u64 = 64 << 20;
/// Bytes of a page that are loaded ahead.
const PREFETCH_BYTES: usize = 1 << 10;

/// Why a read is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decay {
    /// Program or erase cut short.
    Torn,
    /// A checksum of the data does not match.
    Checksum,
    /// The checksum of the OOB does not match.
    Oob,
}

/// Bytes, OOB and checksums of every page. A chunk is taken with the first program into it and given back
/// when its block is erased.
#[derive(Clone, Debug)]
pub(crate) struct Payload<O> {
    units: Units,
    page_bytes: usize,
    pages_per_block: u32,
    pages_per_chunk: u32,
    chunks_per_block: u32,
    /// Of each block in order; `NONE` where nothing was programmed.
    chunks: Vec<Chunk>,
    arena: Arena,
    pages: Vec<Page<O>>,
    /// Of each unit of each page.
    sums: Vec<u32>,
}

/// What is kept of a page beside its bytes. Meaningful where the page is programmed.
#[derive(Clone, Copy, Debug)]
struct Page<O> {
    oob: O,
    oob_sum: u32,
    holds: Holds,
}

/// What can be read of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Nothing, its OOB included.
    Nothing,
    /// Zeroes: it was programmed without bytes.
    Zeroes,
    Bytes,
}

nandscape_core::no_state!(impl [O] Payload<O>: "a device that stores data");

impl<O: OutOfBand> Payload<O> {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let units = Units::new(geometry);
        let page_bytes = u64::from(geometry.page_bytes);
        let pages_per_chunk = ((CHUNK_BYTES / page_bytes) as u32).clamp(1, geometry.pages_per_block);
        let chunks_per_block = geometry.pages_per_block.div_ceil(pages_per_chunk);
        let chunk_bytes = u64::from(pages_per_chunk) * page_bytes;
        let chunks = geometry.blocks() as usize * chunks_per_block as usize;
        let pages = geometry.pages() as usize;
        Self {
            units,
            page_bytes: page_bytes as usize,
            pages_per_block: geometry.pages_per_block,
            pages_per_chunk,
            chunks_per_block,
            chunks: vec![Chunk::NONE; chunks],
            arena: Arena::new(chunk_bytes as usize, chunks, SPARE_BYTES as usize),
            pages: vec![Page { oob: O::TORN, oob_sum: 0, holds: Holds::Nothing }; pages],
            sums: vec![0; pages * units.count as usize],
        }
    }

    /// The chunk of a page and its first byte there.
    #[inline]
    fn place(&self, page: Ppn) -> (usize, usize) {
        let (block, index) = (page.0 / self.pages_per_block, page.0 % self.pages_per_block);
        let chunk = block * self.chunks_per_block + index / self.pages_per_chunk;
        (chunk as usize, (index % self.pages_per_chunk) as usize * self.page_bytes)
    }

    pub(crate) fn program(&mut self, page: Ppn, oob: O, data: Option<&[u8]>) {
        let oob_sum = checksum::oob_sum(page, &oob);
        let holds = if data.is_some() { Holds::Bytes } else { Holds::Zeroes };
        self.pages[page.index()] = Page { oob, oob_sum, holds };
        let Some(data) = data else { return };
        assert_eq!(data.len(), self.page_bytes, "a page is programmed whole");
        let first = page.index() * self.units.count as usize;
        for (unit, sum) in self.sums[first..][..self.units.count as usize].iter_mut().enumerate() {
            *sum = checksum::sum(&data[self.units.range(unit as u32)]);
        }
        let (chunk, at) = self.place(page);
        let chunk = &mut self.chunks[chunk];
        if *chunk == Chunk::NONE {
            *chunk = self.arena.take();
        }
        self.arena.write(*chunk, at, data);
    }

    /// Reads the OOB, and bytes from `start` on, which lie inside the page.
    pub(crate) fn read(&self, page: Ppn, start: u32, data: Option<&mut [u8]>) -> Result<O, Decay> {
        let kept = &self.pages[page.index()];
        if kept.holds == Holds::Nothing {
            return Err(Decay::Torn);
        }
        if kept.oob_sum != checksum::oob_sum(page, &kept.oob) {
            return Err(Decay::Oob);
        }
        let Some(data) = data else { return Ok(kept.oob) };
        let (chunk, at) = self.place(page);
        if kept.holds == Holds::Zeroes {
            data.fill(0);
            return Ok(kept.oob);
        }
        let whole = &self.arena.bytes(self.chunks[chunk])[at..at + self.page_bytes];
        let sums = &self.sums[page.index() * self.units.count as usize..];
        let len = data.len() as u32;
        // Bytes are far away: a copy gets them faster than a checksum does, which then finds the copy near.
        data.copy_from_slice(&whole[start as usize..][..data.len()]);
        for unit in self.units.covering(start, len) {
            let range = self.units.range(unit);
            let copied = range.start.checked_sub(start as usize).map(|at| at..at + range.len());
            let bytes = copied.and_then(|copied| data.get(copied)).unwrap_or(&whole[range]);
            if checksum::sum(bytes) != sums[unit as usize] {
                return Err(Decay::Checksum);
            }
        }
        Ok(kept.oob)
    }

    /// Starts to load the first bytes of a page, which is likely to lie far from the last; the processor by
    /// itself follows from there.
    pub(crate) fn prefetch(&self, page: Ppn) {
        if let Some(kept) = self.pages.get(page.index()) {
            prefetch(kept);
            prefetch(&self.sums[page.index() * self.units.count as usize]);
        }
        let (chunk, at) = self.place(page);
        if let Some(chunk) = self.chunks.get(chunk).filter(|chunk| **chunk != Chunk::NONE) {
            self.arena.prefetch(*chunk, at..at + self.page_bytes.min(PREFETCH_BYTES));
        }
    }

    /// A programmed page that cannot be read.
    pub(crate) fn tear(&mut self, page: Ppn) {
        self.pages[page.index()].holds = Holds::Nothing;
    }

    /// Gives up the bytes of a block.
    pub(crate) fn erase(&mut self, block: u32) {
        let first = block as usize * self.chunks_per_block as usize;
        for chunk in &mut self.chunks[first..][..self.chunks_per_block as usize] {
            if *chunk != Chunk::NONE {
                self.arena.give(std::mem::replace(chunk, Chunk::NONE));
            }
        }
    }

    pub(crate) fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        let (chunk, at) = self.place(page);
        let kept = &mut self.pages[page.index()];
        if byte < self.page_bytes {
            // A block whose erase was cut short has given its chunks back.
            let is_kept = kept.holds == Holds::Bytes && self.chunks[chunk] != Chunk::NONE;
            if is_kept {
                self.arena.bytes_mut(self.chunks[chunk])[at + byte] ^= mask;
            }
            return is_kept;
        }
        let mut bytes = [0; checksum::MOST_OOB];
        let bytes = &mut bytes[..O::BYTES];
        kept.oob.encode(bytes);
        let Some(byte) = bytes.get_mut(byte - self.page_bytes) else { return false };
        *byte ^= mask;
        kept.oob = O::decode(bytes);
        true
    }
}

pub(crate) const fn refusal(page: Ppn, decay: Decay) -> FlashError {
    match decay {
        Decay::Torn | Decay::Checksum => FlashError::Uncorrectable { page },
        Decay::Oob => FlashError::Damaged { page },
    }
}
