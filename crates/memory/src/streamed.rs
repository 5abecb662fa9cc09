//! Bytes on their way between memory and the caches: copies past them, loads ahead of time.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static BATCHES: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, what this thread writes to an [`crate::Arena`] may still be on its way to memory when the
/// next command runs. When it is dropped, all of it is there.
#[derive(Debug)]
pub struct Batch {
    /// The fence must be this thread's.
    _stays: PhantomData<*const ()>,
}

impl Batch {
    /// Commands from now on are one batch.
    ///
    /// # Safety
    ///
    /// No arena that this thread writes to gets to another thread before this is dropped.
    #[expect(unsafe_code, reason = "where arenas go is not this crate's to know")]
    pub unsafe fn begin() -> Self {
        BATCHES.set(BATCHES.get() + 1);
        Self { _stays: PhantomData }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        wait_for_copies();
        BATCHES.set(BATCHES.get() - 1);
    }
}

#[inline]
pub(crate) fn is_in_batch() -> bool {
    BATCHES.get() > 0
}

/// Copies a page without waiting until it is in memory: gives whether [`wait_for_copies`] must be called
/// before anything else is done with the target. The target is written to memory without being loaded first
/// and takes no room in the caches, which the page would leave before it is read again: measured at twice the
/// rate of an ordinary copy to scattered pages.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "stores past the caches have no safe form; measured by tests/bench-peers")]
#[expect(clippy::cast_ptr_alignment, reason = "the target is aligned, the load needs no alignment")]
pub(crate) fn copy_past_caches(target: &mut [u8], source: &[u8]) -> bool {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    assert_eq!(target.len(), source.len(), "a copy of equal length");
    if !target.as_ptr().addr().is_multiple_of(LINE) || !target.len().is_multiple_of(LINE) {
        target.copy_from_slice(source);
        return false;
    }
    for (to, from) in target.chunks_exact_mut(LINE).zip(source.chunks_exact(LINE)) {
        let (to, from) = (to.as_mut_ptr().cast::<__m128i>(), from.as_ptr().cast::<__m128i>());
        for part in 0..LINE / size_of::<__m128i>() {
            // SAFETY: both are 64 bytes long, the target begins at a multiple of 64, the load needs no
            // alignment.
            unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
        }
    }
    true
}

/// Waits until what was copied past the caches can be read, written and handed to others. Costs little once
/// the copies have had time.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a fence has no safe form")]
#[inline]
pub(crate) fn wait_for_copies() {
    // SAFETY: every x86-64 processor has it.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Starts to load bytes into the caches.
#[inline]
pub fn prefetch_bytes(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        prefetch(&line[0]);
    }
}

/// Starts to load the line where a value begins into the caches.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "prefetching has no safe form; measured by tests/bench-peers")]
#[inline]
pub fn prefetch<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program can see and faults on no address; this one is of a
    // live value.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
}

/// Starts to load the line where a value begins into the caches.
#[cfg(not(target_arch = "x86_64"))]
pub const fn prefetch<T>(_value: &T) {}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn copy_past_caches(target: &mut [u8], source: &[u8]) -> bool {
    target.copy_from_slice(source);
    false
}

/// Nothing was copied past anything.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const fn wait_for_copies() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_whatever_the_alignment_and_length() {
        let source: Vec<u8> = (0..1024_u32).map(|byte| (byte * 7 + byte / 256) as u8).collect();
        for shift in [0, 1, 16, 63] {
            for len in [0, 1, 63, 64, 65, 512, 700] {
                let mut target = vec![0xAA; 1024];
                let start = target.as_ptr().align_offset(64) + shift;
                let is_past = copy_past_caches(&mut target[start..start + len], &source[3..3 + len]);
                assert!(!is_past || (shift == 0 && len % 64 == 0));
                wait_for_copies();
                assert_eq!(target[start..start + len], source[3..3 + len], "shift {shift}, length {len}");
                assert!(target[..start].iter().chain(&target[start + len..]).all(|byte| *byte == 0xAA));
            }
        }
    }
}
