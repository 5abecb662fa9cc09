//! From key to slot, for a number of slots that never changes.

use super::super::hash::{bits_for, mix};

const EMPTY: u64 = u64::MAX;

/// An open table of `tag << 32 | slot`, half full at most: 16 to 32 bytes a slot. The tag is the upper half
/// of the key's hash, of which the topmost bits are the entry's home; the caller knows the keys of slots and
/// says whether an entry with the right tag is the right one.
#[derive(Clone, Debug)]
pub(super) struct Index {
    table: Vec<u64>,
    shift: u32,
}

impl Index {
    pub(super) fn new(slots: u32) -> Self {
        let bits = bits_for(slots as usize).min(32);
        Self { table: vec![EMPTY; 1 << bits], shift: 32 - bits }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        (u64::from(tag) >> self.shift) as usize
    }

    #[inline]
    fn tag(key: u64) -> u32 {
        (mix(key) >> 32) as u32
    }

    #[inline]
    pub(super) fn find(&self, key: u64, keys: &[u64]) -> Option<u32> {
        let tag = Self::tag(key);
        let mask = self.table.len() - 1;
        let mut at = self.home(tag);
        loop {
            let entry = self.table[at & mask];
            if entry == EMPTY {
                return None;
            }
            let slot = entry as u32;
            if (entry >> 32) as u32 == tag && keys[slot as usize] == key {
                return Some(slot);
            }
            at += 1;
        }
    }

    /// Adds a key that is not there.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, slot: u32) {
        let tag = Self::tag(key);
        let mask = self.table.len() - 1;
        let mut at = self.home(tag);
        while self.table[at & mask] != EMPTY {
            at += 1;
        }
        self.table[at & mask] = u64::from(tag) << 32 | u64::from(slot);
    }

    /// Takes out a key that is there.
    #[inline]
    pub(super) fn remove(&mut self, key: u64, slot: u32) {
        let tag = Self::tag(key);
        let mask = self.table.len() - 1;
        let entry = u64::from(tag) << 32 | u64::from(slot);
        let mut hole = self.home(tag);
        while self.table[hole & mask] != entry {
            hole += 1;
        }
        hole &= mask;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let moved = self.table[at];
            if moved == EMPTY {
                break;
            }
            // It may fill the hole if its home does not lie behind the hole.
            let home = self.home((moved >> 32) as u32);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.table[hole] = moved;
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.table.capacity() * size_of::<u64>()) as u64
    }
}
