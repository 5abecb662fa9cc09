//! From block to slot: open addressing over slot numbers, 5 bytes for each slot.

use super::slots::Slots;
use crate::hash::mix;
use crate::key::BlockKey;

const EMPTY: u32 = u32::MAX;

/// Which slot holds a block. The keys themselves lie in [`Slots`], so that nothing is kept twice.
pub(super) struct Index {
    table: Vec<u32>,
}

impl Index {
    /// An empty index for up to `slots` blocks; a quarter more places keep probes short.
    pub(super) fn new(slots: u32) -> Self {
        let places = slots as usize + slots as usize / 4 + 1;
        Self { table: vec![EMPTY; places] }
    }

    fn home(&self, key: BlockKey) -> usize {
        let places = self.table.len() as u128;
        ((u128::from(mix(key.0)) * places) >> 64) as usize
    }

    const fn next(&self, place: usize) -> usize {
        if place + 1 == self.table.len() { 0 } else { place + 1 }
    }

    /// Where the key is, or the empty place at which its search ends.
    fn place(&self, key: BlockKey, slots: &Slots) -> usize {
        let mut place = self.home(key);
        while self.table[place] != EMPTY && slots.key(self.table[place]) != key {
            place = self.next(place);
        }
        place
    }

    pub(super) fn find(&self, key: BlockKey, slots: &Slots) -> Option<u32> {
        let slot = self.table[self.place(key, slots)];
        (slot != EMPTY).then_some(slot)
    }

    /// A key will be looked for soon.
    #[inline]
    pub(super) fn prepare(&self, key: BlockKey) {
        std::hint::black_box(self.table[self.home(key)]);
    }

    /// `key`, which is not in the index, is in `slot`. The slot's record may say so already or not yet.
    pub(super) fn insert(&mut self, key: BlockKey, slot: u32) {
        let mut place = self.home(key);
        while self.table[place] != EMPTY {
            place = self.next(place);
        }
        self.table[place] = slot;
    }

    /// `key`, which is in the index, now lies in `slot`; the old slot's record still names it.
    pub(super) fn replace(&mut self, key: BlockKey, slot: u32, slots: &Slots) {
        let place = self.place(key, slots);
        assert_ne!(self.table[place], EMPTY, "{key:?} is not in the index");
        self.table[place] = slot;
    }

    /// Takes `key` out; its slot's record still names it. What lies behind moves up, so no marks stay behind.
    pub(super) fn remove(&mut self, key: BlockKey, slots: &Slots) {
        let mut hole = self.place(key, slots);
        assert_ne!(self.table[hole], EMPTY, "{key:?} is not in the index");
        let mut place = hole;
        loop {
            place = self.next(place);
            if self.table[place] == EMPTY {
                break;
            }
            let home = self.home(slots.key(self.table[place]));
            let stays =
                if hole <= place { hole < home && home <= place } else { hole < home || home <= place };
            if !stays {
                self.table[hole] = self.table[place];
                hole = place;
            }
        }
        self.table[hole] = EMPTY;
    }

    /// Blocks in the index. For checks.
    pub(super) fn count(&self) -> usize {
        self.table.iter().filter(|slot| **slot != EMPTY).count()
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.table.len() * size_of::<u32>()) as u64
    }
}
