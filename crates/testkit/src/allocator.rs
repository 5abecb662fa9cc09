//! An allocator that counts what each thread holds by itself: what others do meanwhile does not count.
//!
//! A test program that measures memory makes it its own: `#[global_allocator] static ALLOCATOR: Counting =
//! Counting;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// That of the system, with numbers beside.
#[derive(Debug)]
pub struct Counting;

// SAFETY: everything is the system allocator's; only numbers are kept beside.
#[expect(unsafe_code, reason = "an allocator has no safe form")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.get() + layout.size().cast_signed();
        HELD.set(held);
        MOST.set(MOST.get().max(held));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Bytes that this thread holds; less than none where it gave back what others took.
pub fn held() -> isize {
    HELD.get()
}

/// The most that it held since [`start`].
pub fn most() -> isize {
    MOST.get()
}

/// Begins to look for the most; what it holds now.
pub fn start() -> isize {
    MOST.set(HELD.get());
    HELD.get()
}
