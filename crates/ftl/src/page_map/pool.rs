//! Erased blocks of one lane (a die, or a plane with static allocation).

use nandscape_core::{Archive, State, StateResult};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Erased blocks, numbered inside their domain. Memory is reserved once: no later allocation.
#[derive(Debug)]
pub(super) enum Pool {
    /// In the order in which they were erased.
    Queue(VecDeque<u32>),
    /// The fewest erases first, then the lowest number.
    Sorted(BinaryHeap<Reverse<(u32, u32)>>),
}

impl State for Pool {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        match self {
            Self::Queue(queue) => queue.state(archive),
            Self::Sorted(heap) => heap.state(archive),
        }
    }
}

impl Pool {
    pub fn new(sorted: bool, capacity: usize) -> Self {
        if sorted {
            Self::Sorted(BinaryHeap::with_capacity(capacity))
        } else {
            Self::Queue(VecDeque::with_capacity(capacity))
        }
    }

    pub fn put(&mut self, block: u32, erase_count: u32) {
        match self {
            Self::Queue(queue) => queue.push_back(block),
            Self::Sorted(heap) => heap.push(Reverse((erase_count, block))),
        }
    }

    pub fn take(&mut self) -> Option<u32> {
        match self {
            Self::Queue(queue) => queue.pop_front(),
            Self::Sorted(heap) => heap.pop().map(|Reverse((_, block))| block),
        }
    }

    /// The most erased block, for data that will stay. Linear in the pool.
    pub fn take_most_worn(&mut self) -> Option<u32> {
        match self {
            Self::Queue(queue) => queue.pop_back(),
            Self::Sorted(heap) => {
                let worn = heap.iter().map(|Reverse(key)| *key).max()?;
                heap.retain(|Reverse(key)| *key != worn);
                Some(worn.1)
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Queue(queue) => queue.is_empty(),
            Self::Sorted(heap) => heap.is_empty(),
        }
    }

    pub fn contents(&self) -> Vec<u32> {
        match self {
            Self::Queue(queue) => queue.iter().copied().collect(),
            Self::Sorted(heap) => heap.iter().map(|Reverse((_, block))| *block).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_pool_gives_the_least_and_the_most_worn() {
        let mut pool = Pool::new(true, 4);
        for (block, count) in [(0, 5), (1, 2), (2, 9), (3, 2)] {
            pool.put(block, count);
        }
        assert_eq!(pool.take_most_worn(), Some(2));
        assert_eq!((pool.take(), pool.take(), pool.take(), pool.take()), (Some(1), Some(3), Some(0), None));
    }

    #[test]
    fn a_queue_gives_blocks_in_the_order_of_their_erases() {
        let mut pool = Pool::new(false, 3);
        for block in [7, 3, 5] {
            pool.put(block, 0);
        }
        assert_eq!((pool.take(), pool.take_most_worn(), pool.take()), (Some(7), Some(5), Some(3)));
        assert!(pool.is_empty());
    }
}
