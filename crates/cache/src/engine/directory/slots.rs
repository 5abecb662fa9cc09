//! What is in each slot, 7 bytes where a block has up to 8 sub-blocks and 9 otherwise, and which slots are
//! free.

use super::spaces::{SPACE, Spaces};
use crate::metadata::{Entry, Table};
use nandscape_memory::prefetch;
use nandscape_policies::BlockKey;
use nandscape_policies::hash::KeyMap;

const NONE: u32 = u32::MAX;

/// Bits for slots.
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn new(count: u32) -> Self {
        Self(vec![0; count.div_ceil(64) as usize])
    }

    pub fn has(&self, index: u32) -> bool {
        self.0[index as usize / 64] >> (index % 64) & 1 == 1
    }

    pub fn set(&mut self, index: u32) {
        debug_assert!(index / 64 < self.0.len() as u32, "slot {index} of {} words", self.0.len());
        self.0[index as usize / 64] |= 1 << (index % 64);
    }

    pub fn clear(&mut self, index: u32) {
        debug_assert!(index / 64 < self.0.len() as u32, "slot {index} of {} words", self.0.len());
        self.0[index as usize / 64] &= !(1 << (index % 64));
    }

    /// Whether none of the 64 around an index, from a multiple of 64 on, is set.
    pub fn is_free_word(&self, index: u32) -> bool {
        self.0[index as usize / 64] == 0
    }

    /// Becomes what others are.
    pub fn copy(&mut self, others: &Self) {
        self.0.copy_from_slice(&others.0);
    }

    pub fn clear_all(&mut self) {
        self.0.fill(0);
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.0.len() * size_of::<u64>()) as u64
    }
}

/// A few slots.
pub struct Pins(KeyMap);

impl Pins {
    pub fn none() -> Self {
        Self(KeyMap::default())
    }

    #[inline]
    pub fn has(&self, slot: u32) -> bool {
        !self.0.is_empty() && self.0.contains_key(&u64::from(slot))
    }

    pub fn set(&mut self, slot: u32) {
        self.0.insert(slot.into(), 0);
    }

    #[inline]
    pub fn clear(&mut self, slot: u32) {
        if !self.0.is_empty() {
            self.0.remove(&u64::from(slot));
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.0.allocation_size() as u64
    }
}

/// Bytes of a record: five of the key, and one or two each for the sub-blocks that are valid and that are
/// dirty. In a free slot the key is the next free one.
const KEY_BYTES: usize = 5;
const SPACE_BITS: u32 = 8 * KEY_BYTES as u32;
const NARROW: usize = KEY_BYTES + 2;
const WIDE: usize = KEY_BYTES + 4;

/// The slots of all sets, with a list of free ones for each set.
pub struct Slots {
    /// Records, one behind the other, and a byte more, so that each can be read as eight bytes.
    records: Vec<u8>,
    record_bytes: usize,
    count: u32,
    spaces: Spaces,
    free: Vec<u32>,
    ways: u32,
    pub used: u32,
    pub dirty: u32,
    /// Dirty sub-blocks of all slots.
    pub dirty_subs: u64,
}

impl Slots {
    /// `sets` times `ways` free slots, for blocks of so many sub-blocks; those with low numbers are taken
    /// first.
    pub fn new(sets: u32, ways: u32, subs: u32) -> Self {
        let record_bytes = if subs <= 8 { NARROW } else { WIDE };
        let count = sets * ways;
        let mut slots = Self {
            records: vec![0; count as usize * record_bytes + 1],
            record_bytes,
            count,
            spaces: Spaces::default(),
            free: vec![NONE; sets as usize],
            ways,
            used: 0,
            dirty: 0,
            dirty_subs: 0,
        };
        slots.list_free(&Bits::new(sets * ways));
        slots
    }

    #[inline]
    pub const fn count(&self) -> u32 {
        self.count
    }

    pub const fn set_of(&self, slot: u32) -> u32 {
        if self.free.len() == 1 { 0 } else { slot / self.ways }
    }

    /// First slot of a set.
    pub const fn base(&self, set: u32) -> u32 {
        set * self.ways
    }

    /// Room for the keys of a volume with so many blocks. `None` if there is not as much.
    pub fn assign(&mut self, volume: u16, blocks: u64) -> Option<()> {
        self.spaces.assign(volume, blocks)
    }

    /// No slot has a block of this volume any more.
    pub fn release(&mut self, volume: u16) {
        self.spaces.release(volume);
    }

    /// The first eight bytes of a record.
    #[inline]
    fn word(&self, slot: u32) -> u64 {
        let at = slot as usize * self.record_bytes;
        u64::from_le_bytes(self.records[at..at + 8].try_into().expect("eight bytes"))
    }

    /// A slot's record will be looked at soon. The slot may be none.
    #[inline]
    pub fn prepare(&self, slot: u32) {
        if let Some(record) = self.records.get(slot as usize * self.record_bytes) {
            prefetch(record);
        }
    }

    /// Sets the bytes of that word that are ones in `mask`. As one store, since the load of a word that was
    /// stored in parts waits for all stores before.
    #[inline]
    fn put_word(&mut self, slot: u32, word: u64, mask: u64) {
        debug_assert_eq!(word & !mask, 0, "{word:#x} of slot {slot} is more than its place takes");
        let word = self.word(slot) & !mask | word;
        let at = slot as usize * self.record_bytes;
        self.records[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn raw_key(&self, slot: u32) -> u64 {
        self.word(slot) & (SPACE - 1)
    }

    fn put_raw_key(&mut self, slot: u32, key: u64) {
        self.put_word(slot, key, SPACE - 1);
    }

    #[inline]
    pub fn key(&self, slot: u32) -> BlockKey {
        self.spaces.key(self.raw_key(slot))
    }

    pub fn set_key(&mut self, slot: u32, key: BlockKey) {
        self.put_raw_key(slot, self.spaces.packed(key));
    }

    #[inline]
    fn bits(&self, slot: u32) -> (u16, u16) {
        self.bits_with(slot, self.word(slot))
    }

    /// The same where the word of the record is at hand.
    #[inline]
    fn bits_with(&self, slot: u32, word: u64) -> (u16, u16) {
        if self.record_bytes == NARROW {
            let [.., valid, dirty, _] = word.to_le_bytes();
            (valid.into(), dirty.into())
        } else {
            let [.., v0, v1, d0] = word.to_le_bytes();
            let d1 = self.records[slot as usize * WIDE + 8];
            (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([d0, d1]))
        }
    }

    pub fn valid(&self, slot: u32) -> u16 {
        self.bits(slot).0
    }

    #[inline]
    pub fn dirty_bits(&self, slot: u32) -> u16 {
        self.bits(slot).1
    }

    #[inline]
    pub fn entry(&self, slot: u32) -> Entry {
        let word = self.word(slot);
        let (valid, dirty) = self.bits_with(slot, word);
        Entry { key: self.spaces.key(word & (SPACE - 1)), valid, dirty }
    }

    pub fn set_bits(&mut self, slot: u32, valid: u16, dirty: u16) {
        debug_assert_eq!(dirty & !valid, 0, "slot {slot} is dirty in {dirty:#x} and valid in {valid:#x}");
        let before = self.dirty_bits(slot);
        if dirty != before {
            self.dirty += u32::from(dirty != 0);
            self.dirty -= u32::from(before != 0);
            self.dirty_subs += u64::from(dirty.count_ones());
            self.dirty_subs -= u64::from(before.count_ones());
        }
        if self.record_bytes == NARROW {
            debug_assert!(valid < 256, "{valid:#x} has more sub-blocks than there are");
            let bits = u64::from(valid) | u64::from(dirty) << 8;
            self.put_word(slot, bits << SPACE_BITS, 0xffff << SPACE_BITS);
        } else {
            let bits = u64::from(valid) | u64::from(dirty) << 16;
            self.put_word(slot, bits << SPACE_BITS, !(SPACE - 1));
            self.records[slot as usize * WIDE + 8] = (dirty >> 8) as u8;
        }
    }

    /// Takes a free slot of a set, with nothing valid in it.
    pub fn take(&mut self, set: u32) -> Option<u32> {
        let slot = self.free[set as usize];
        if slot == NONE {
            return None;
        }
        let next = self.raw_key(slot) as u32;
        assert!(next == NONE || next < self.count, "slot {next} is free behind {slot}, of {}", self.count);
        self.free[set as usize] = next;
        self.prepare(next);
        self.used += 1;
        Some(slot)
    }

    /// The slot that [`Slots::take`] would give next.
    #[inline]
    pub fn next_free(&self, set: u32) -> Option<u32> {
        Some(self.free[set as usize]).filter(|slot| *slot != NONE)
    }

    /// Makes the lists of free slots anew: all that are not in `taken`.
    pub fn list_free(&mut self, taken: &Bits) {
        self.free.fill(NONE);
        self.used = self.count();
        for slot in (0..self.count()).rev().filter(|slot| !taken.has(*slot)) {
            self.give(slot);
        }
        debug_assert_eq!(self.used + self.free_count(), self.count, "used and free slots");
    }

    /// Gives back a slot.
    pub fn give(&mut self, slot: u32) {
        let set = self.set_of(slot) as usize;
        self.set_bits(slot, 0, 0);
        self.put_raw_key(slot, u64::from(self.free[set]));
        assert!(self.free[set] != slot && self.used > 0, "slot {slot} is given back twice");
        self.free[set] = slot;
        self.used -= 1;
    }

    /// Takes a free slot out of use; `false` if it is not free.
    pub fn withdraw(&mut self, slot: u32) -> bool {
        let set = self.set_of(slot) as usize;
        let next = |slots: &Self, slot: u32| slots.raw_key(slot) as u32;
        let (mut before, mut free) = (NONE, self.free[set]);
        while free != NONE && free != slot {
            (before, free) = (free, next(self, free));
        }
        if free == NONE {
            return false;
        }
        let behind = next(self, slot);
        assert!(self.used < self.count, "slot {slot} is free, and all {} are used", self.used);
        match before {
            NONE => self.free[set] = behind,
            before => self.put_raw_key(before, u64::from(behind)),
        }
        self.used += 1;
        true
    }

    pub fn free_count(&self) -> u32 {
        let mut count = 0;
        for head in &self.free {
            let mut slot = *head;
            while slot != NONE {
                count += 1;
                slot = self.raw_key(slot) as u32;
            }
        }
        count
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.records.len() + self.free.len() * size_of::<u32>()) as u64 + self.spaces.memory_bytes()
    }
}

impl Table for Slots {
    // Metadata may have slots that fill no set.
    #[inline]
    fn entry(&self, slot: u32) -> Option<Entry> {
        if slot >= self.count() {
            return None;
        }
        let entry = Self::entry(self, slot);
        (entry.valid != 0).then_some(entry)
    }
}
