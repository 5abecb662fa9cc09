//! Steps that begin or end at a time that is known.

use nandscape_core::SimTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Steps in the order of their time, and of coming where that is the same.
#[derive(Default)]
pub struct Agenda {
    /// Time, order of coming, index.
    pub queue: BinaryHeap<Reverse<(SimTime, u64, u32)>>,
    order: u64,
    /// The latest time that anything is known to begin or end.
    pub last: SimTime,
}

impl Agenda {
    pub fn push(&mut self, at: SimTime, index: u32) {
        self.last = self.last.max(at);
        self.queue.push(Reverse((at, self.order, index)));
        self.order += 1;
    }

    /// When the first one is due.
    pub fn next(&self) -> Option<SimTime> {
        self.queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// The first step that is due at `now`, and its time.
    pub fn pop_due(&mut self, now: SimTime) -> Option<(SimTime, u32)> {
        let Reverse((at, _, index)) = self.queue.peek().copied().filter(|Reverse((at, ..))| *at <= now)?;
        self.queue.pop();
        Some((at, index))
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.queue.capacity() * size_of::<Reverse<(SimTime, u64, u32)>>()) as u64
    }
}
