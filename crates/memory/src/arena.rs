//! Memory for the bytes of pages: chunks of one size out of large slabs, which the system is asked to back
//! with huge pages. Pages of a file lie scattered over dies, and a TLB miss for each costs as much as half of
//! its copy (`tests/bench-peers`).

use crate::streamed::{copy_past_caches, is_in_batch, prefetch_bytes, wait_for_copies};
use memmap2::MmapMut;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of a slab at most, unless one chunk is larger.
const SLAB_BYTES: usize = 32 << 20;
/// Where slabs begin: at a multiple of this, or of the largest power of two in a smaller slab.
const ALIGN_BYTES: usize = 2 << 20;

/// A chunk of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk(u32);

impl Chunk {
    /// No chunk.
    pub const NONE: Self = Self(u32::MAX);
}

/// Chunks of one size, zeroed when their slab is new and with whatever they held before when they are used
/// again.
#[derive(Debug)]
pub struct Arena {
    chunk_bytes: usize,
    chunks_per_slab: u32,
    /// Free chunks beyond which a slab that is wholly free is given up.
    most_spare: usize,
    slabs: Vec<Slab>,
    free: Vec<Chunk>,
    /// The last bytes may still be on their way to memory, written in a [`crate::Batch`]. Whoever looks at
    /// bytes waits for them first; another thread cannot, before the batch ends.
    is_copying: AtomicBool,
}

impl Clone for Arena {
    fn clone(&self) -> Self {
        self.settle();
        Self {
            slabs: self.slabs.clone(),
            free: self.free.clone(),
            is_copying: AtomicBool::new(false),
            ..*self
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.settle();
    }
}

#[derive(Clone, Debug, Default)]
struct Slab {
    /// Empty where the slab was given up.
    bytes: Room,
    /// Where the first chunk begins.
    start: usize,
    used: u32,
}

/// Zeroed memory that costs nothing until it is touched.
#[derive(Debug)]
enum Room {
    /// Too small for huge pages.
    Small(Box<[u8]>),
    /// Backed by huge pages where the system has some.
    Large(MmapMut),
}

impl Room {
    fn new(bytes: usize) -> Self {
        if bytes < 2 * ALIGN_BYTES {
            return Self::Small(vec![0; bytes].into_boxed_slice());
        }
        let Ok(room) = MmapMut::map_anon(bytes) else {
            // What an allocation that fails does.
            std::alloc::handle_alloc_error(
                std::alloc::Layout::array::<u8>(bytes).expect("a slab has a size"),
            );
        };
        // Where this is refused the room is as good, and slower.
        #[cfg(target_os = "linux")]
        let _ = room.advise(memmap2::Advice::HugePage);
        Self::Large(room)
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::Small(Box::default())
    }
}

impl Clone for Room {
    fn clone(&self) -> Self {
        match self {
            Self::Small(bytes) => Self::Small(bytes.clone()),
            Self::Large(bytes) => {
                let mut copy = Self::new(bytes.len());
                copy.copy_from_slice(bytes);
                copy
            }
        }
    }
}

impl Deref for Room {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(bytes) => bytes,
        }
    }
}

impl DerefMut for Room {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(bytes) => bytes,
        }
    }
}

impl Arena {
    /// An arena of at most so many chunks, which keeps up to `spare_bytes` of free ones.
    pub fn new(chunk_bytes: usize, chunks: usize, spare_bytes: usize) -> Self {
        let chunks_per_slab = (SLAB_BYTES / chunk_bytes).clamp(1, chunks.max(1)) as u32;
        Self {
            chunk_bytes,
            chunks_per_slab,
            most_spare: spare_bytes / chunk_bytes,
            slabs: Vec::new(),
            free: Vec::new(),
            is_copying: AtomicBool::new(false),
        }
    }

    /// Waits until all bytes are in memory.
    #[inline]
    fn settle(&self) {
        if self.is_copying.load(Relaxed) {
            wait_for_copies();
            self.is_copying.store(false, Relaxed);
        }
    }

    fn place(&self, chunk: Chunk) -> (usize, usize) {
        (
            (chunk.0 / self.chunks_per_slab) as usize,
            (chunk.0 % self.chunks_per_slab) as usize * self.chunk_bytes,
        )
    }

    /// The bytes of a chunk that was taken.
    #[inline]
    pub fn bytes(&self, chunk: Chunk) -> &[u8] {
        self.settle();
        let (slab, at) = self.place(chunk);
        let slab = &self.slabs[slab];
        &slab.bytes[slab.start + at..][..self.chunk_bytes]
    }

    /// The bytes of a chunk that was taken.
    #[inline]
    pub fn bytes_mut(&mut self, chunk: Chunk) -> &mut [u8] {
        self.settle();
        let (slab, at) = self.place(chunk);
        let slab = &mut self.slabs[slab];
        &mut slab.bytes[slab.start + at..][..self.chunk_bytes]
    }

    /// Copies bytes to a place in a chunk, past the caches where that can be done; in a [`crate::Batch`]
    /// without waiting until they are there.
    #[inline]
    pub fn write(&mut self, chunk: Chunk, at: usize, bytes: &[u8]) {
        let is_copying = copy_past_caches(&mut self.bytes_mut(chunk)[at..at + bytes.len()], bytes);
        *self.is_copying.get_mut() = is_copying;
        if !is_in_batch() {
            self.settle();
        }
    }

    /// A chunk that nobody has.
    pub fn take(&mut self) -> Chunk {
        if self.free.is_empty() {
            self.grow();
        }
        let chunk = self.free.pop().expect("a new slab has a chunk");
        let (slab, _) = self.place(chunk);
        self.slabs[slab].used += 1;
        chunk
    }

    #[cold]
    fn grow(&mut self) {
        let index = self.slabs.iter().position(|slab| slab.bytes.is_empty()).unwrap_or(self.slabs.len());
        if index == self.slabs.len() {
            self.slabs.push(Slab::default());
        }
        let bytes = self.chunks_per_slab as usize * self.chunk_bytes;
        let align = ALIGN_BYTES.min(1 << bytes.ilog2()).max(64);
        let bytes = Room::new(bytes + align);
        let start = bytes.as_ptr().align_offset(align);
        // The offset may be unknown (`usize::MAX`) and is for speed only.
        let start = if start < align { start } else { 0 };
        self.slabs[index] = Slab { bytes, start, used: 0 };
        let first = index as u32 * self.chunks_per_slab;
        self.free.extend((first..first + self.chunks_per_slab).rev().map(Chunk));
    }

    /// Gives a chunk back.
    pub fn give(&mut self, chunk: Chunk) {
        let (slab, _) = self.place(chunk);
        self.slabs[slab].used -= 1;
        self.free.push(chunk);
        if self.slabs[slab].used == 0 && self.free.len() > self.most_spare {
            self.shed(slab);
        }
    }

    /// Starts to load bytes of a chunk that was taken.
    #[inline]
    pub fn prefetch(&self, chunk: Chunk, bytes: Range<usize>) {
        let (slab, at) = self.place(chunk);
        let slab = &self.slabs[slab];
        prefetch_bytes(&slab.bytes[slab.start + at..][bytes]);
    }

    /// Gives all memory back; nobody has a chunk any more.
    pub fn clear(&mut self) {
        self.settle();
        self.slabs.clear();
        self.free.clear();
    }

    #[cold]
    fn shed(&mut self, slab: usize) {
        self.settle();
        let chunks_per_slab = self.chunks_per_slab;
        self.free.retain(|chunk| (chunk.0 / chunks_per_slab) as usize != slab);
        self.slabs[slab] = Slab::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_do_not_overlap_and_a_free_slab_is_given_up_and_made_again() {
        let chunk_bytes = 8 << 20;
        let mut arena = Arena::new(chunk_bytes, 100, 2 * chunk_bytes);
        let chunks: Vec<Chunk> = (0..8).map(|_| arena.take()).collect();
        assert_eq!(arena.slabs.len(), 2);
        for (number, chunk) in (1..).zip(&chunks) {
            assert_eq!(arena.bytes(*chunk).as_ptr().addr() % ALIGN_BYTES, 0);
            let bytes = arena.bytes_mut(*chunk);
            (bytes[0], bytes[chunk_bytes - 1]) = (number, number);
        }
        for (number, chunk) in (1..).zip(&chunks) {
            let bytes = arena.bytes(*chunk);
            assert_eq!((bytes[0], bytes[chunk_bytes - 1]), (number, number));
        }
        chunks[..4].iter().for_each(|chunk| arena.give(*chunk));
        assert!(arena.slabs[0].bytes.is_empty(), "more than two chunks are free");
        assert_eq!(arena.free.len(), 0);
        assert_eq!(arena.bytes(chunks[4])[0], 5, "the other slab stays");
        let again = arena.take();
        assert_eq!((arena.slabs.len(), arena.bytes(again)[0]), (2, 0), "new and zeroed");
    }

    #[test]
    fn a_copy_of_an_arena_has_bytes_of_its_own() {
        for chunk_bytes in [4096, 8 << 20] {
            let mut arena = Arena::new(chunk_bytes, 4, 0);
            let chunk = arena.take();
            arena.bytes_mut(chunk).fill(7);
            let copy = arena.clone();
            arena.bytes_mut(chunk).fill(8);
            assert!(copy.bytes(chunk).iter().all(|byte| *byte == 7), "{chunk_bytes}");
        }
    }

    #[test]
    fn what_was_written_is_there_for_reads_copies_and_other_threads() {
        let mut arena = Arena::new(4096, 1000, 0);
        let chunks: Vec<Chunk> = (0..1000).map(|_| arena.take()).collect();
        for round in 0..20_u8 {
            for (number, chunk) in (0_u8..100).cycle().zip(&chunks) {
                arena.write(*chunk, 0, &[number ^ round; 4096]);
                arena.write(*chunk, 64, &[round; 65]);
            }
            let is_right = |arena: &Arena| {
                (0_u8..100).cycle().zip(&chunks).all(|(number, chunk)| {
                    let bytes = arena.bytes(*chunk);
                    let (round, rest) = (&[round; 65], &[number ^ round; 4096]);
                    bytes[..64] == rest[..64] && bytes[64..129] == *round && bytes[129..] == rest[129..]
                })
            };
            assert!(is_right(&arena.clone()));
            assert!(is_right(&arena));
            arena.write(chunks[0], 0, &[round; 4096]);
            assert!(!arena.is_copying.load(Relaxed), "only a batch need not wait");
            arena = std::thread::spawn({
                let (first, mut arena) = (chunks[0], arena);
                move || {
                    assert_eq!(arena.bytes(first), [round; 4096]);
                    arena.write(first, 0, &[round + 1; 4096]);
                    arena
                }
            })
            .join()
            .expect("it is right there too");
            assert_eq!(arena.bytes(chunks[0]), [round + 1; 4096]);
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "the arena stays on this thread")]
    fn what_a_batch_wrote_is_there_for_it_and_for_others_after_it() {
        let mut arena = Arena::new(4096, 2, 0);
        let chunk = arena.take();
        // SAFETY: the arena goes to the other thread when the batch is over.
        let batch = unsafe { crate::Batch::begin() };
        // SAFETY: as above.
        let inner = unsafe { crate::Batch::begin() };
        arena.write(chunk, 0, &[1; 4096]);
        drop(inner);
        arena.write(chunk, 64, &[2; 64]);
        assert_eq!(arena.is_copying.load(Relaxed), cfg!(target_arch = "x86_64"), "it need not wait");
        assert_eq!(arena.bytes(chunk)[63..65], [1, 2]);
        arena.write(chunk, 0, &[3; 4096]);
        drop(batch);
        assert!(!is_in_batch());
        std::thread::spawn(move || assert_eq!(arena.bytes(chunk), [3; 4096])).join().expect("it is there");
    }

    #[test]
    fn a_small_arena_is_one_small_slab() {
        let mut arena = Arena::new(4096, 3, 0);
        let chunks = [arena.take(), arena.take(), arena.take()];
        assert_eq!(arena.slabs.len(), 1);
        assert_eq!(arena.slabs[0].bytes.len(), 3 * 4096 + 8192);
        assert!(chunks.iter().all(|chunk| arena.bytes(*chunk).len() == 4096));
    }
}
