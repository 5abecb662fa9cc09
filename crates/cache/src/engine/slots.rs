//! What is in each slot, 10 bytes, and which slots are free.

use crate::key::BlockKey;
use crate::metadata::{Entry, Table};

const NONE: u32 = u32::MAX;

/// Bits for slots.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(count: u32) -> Self {
        Self(vec![0; count.div_ceil(64) as usize])
    }

    pub(super) fn has(&self, index: u32) -> bool {
        self.0[index as usize / 64] >> (index % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, index: u32) {
        self.0[index as usize / 64] |= 1 << (index % 64);
    }

    pub(super) fn clear(&mut self, index: u32) {
        self.0[index as usize / 64] &= !(1 << (index % 64));
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.0.len() * size_of::<u64>()) as u64
    }
}

/// A key needs 48 bits: 12 of the volume, 36 of the block. In a free slot they hold the next free one.
#[derive(Clone, Copy)]
struct Record {
    key: [u16; 3],
    valid: u16,
    dirty: u16,
}

/// Volumes that one cache can have.
pub(super) const VOLUMES_MAX: u64 = 1 << 12;
/// Blocks that a volume can have.
pub(super) const BLOCKS_MAX: u64 = 1 << 36;

const fn packed(value: u64) -> [u16; 3] {
    [value as u16, (value >> 16) as u16, (value >> 32) as u16]
}

const fn unpacked(key: [u16; 3]) -> u64 {
    key[0] as u64 | (key[1] as u64) << 16 | (key[2] as u64) << 32
}

/// The slots of all sets, with a list of free ones for each set.
pub(super) struct Slots {
    records: Vec<Record>,
    free: Vec<u32>,
    ways: u32,
    used: u32,
    dirty: u32,
}

impl Slots {
    /// `sets` times `ways` free slots; those with low numbers are taken first.
    pub(super) fn new(sets: u32, ways: u32) -> Self {
        let free = Record { key: [0; 3], valid: 0, dirty: 0 };
        let mut slots = Self {
            records: vec![free; (sets * ways) as usize],
            free: vec![NONE; sets as usize],
            ways,
            used: 0,
            dirty: 0,
        };
        slots.list_free(&Bits::new(sets * ways));
        slots
    }

    pub(super) const fn count(&self) -> u32 {
        self.records.len() as u32
    }

    pub(super) const fn used(&self) -> u32 {
        self.used
    }

    pub(super) const fn dirty(&self) -> u32 {
        self.dirty
    }

    pub(super) const fn set_of(&self, slot: u32) -> u32 {
        if self.free.len() == 1 { 0 } else { slot / self.ways }
    }

    /// First slot of a set.
    pub(super) const fn base(&self, set: u32) -> u32 {
        set * self.ways
    }

    pub(super) fn key(&self, slot: u32) -> BlockKey {
        let key = unpacked(self.records[slot as usize].key);
        BlockKey::new((key >> 36) as u16, key & (BLOCKS_MAX - 1))
    }

    pub(super) fn set_key(&mut self, slot: u32, key: BlockKey) {
        self.records[slot as usize].key = packed(u64::from(key.volume()) << 36 | key.block());
    }

    pub(super) fn valid(&self, slot: u32) -> u16 {
        self.records[slot as usize].valid
    }

    pub(super) fn dirty_bits(&self, slot: u32) -> u16 {
        self.records[slot as usize].dirty
    }

    pub(super) fn entry(&self, slot: u32) -> Entry {
        Entry { key: self.key(slot), valid: self.valid(slot), dirty: self.dirty_bits(slot) }
    }

    pub(super) fn set_bits(&mut self, slot: u32, valid: u16, dirty: u16) {
        debug_assert_eq!(dirty & !valid, 0, "what is dirty is valid");
        let record = &mut self.records[slot as usize];
        self.dirty += u32::from(dirty != 0);
        self.dirty -= u32::from(record.dirty != 0);
        (record.valid, record.dirty) = (valid, dirty);
    }

    /// Takes a free slot of a set, with nothing valid in it.
    pub(super) fn take(&mut self, set: u32) -> Option<u32> {
        let slot = self.free[set as usize];
        if slot == NONE {
            return None;
        }
        self.free[set as usize] = unpacked(self.records[slot as usize].key) as u32;
        self.used += 1;
        Some(slot)
    }

    /// Makes the lists of free slots anew: all that are not in `taken`.
    pub(super) fn list_free(&mut self, taken: &Bits) {
        self.free.fill(NONE);
        self.used = self.count();
        for slot in (0..self.count()).rev().filter(|slot| !taken.has(*slot)) {
            self.give(slot);
        }
    }

    /// Gives back a slot.
    pub(super) fn give(&mut self, slot: u32) {
        let set = self.set_of(slot) as usize;
        self.set_bits(slot, 0, 0);
        self.records[slot as usize].key = packed(u64::from(self.free[set]));
        self.free[set] = slot;
        self.used -= 1;
    }

    /// Takes a free slot out of use; `false` if it is not free.
    pub(super) fn withdraw(&mut self, slot: u32) -> bool {
        let set = self.set_of(slot) as usize;
        let next = |slots: &Self, slot: u32| unpacked(slots.records[slot as usize].key) as u32;
        let (mut before, mut free) = (NONE, self.free[set]);
        while free != NONE && free != slot {
            (before, free) = (free, next(self, free));
        }
        if free == NONE {
            return false;
        }
        let behind = next(self, slot);
        match before {
            NONE => self.free[set] = behind,
            before => self.records[before as usize].key = packed(u64::from(behind)),
        }
        self.used += 1;
        true
    }

    pub(super) fn free_count(&self) -> u32 {
        let mut count = 0;
        for head in &self.free {
            let mut slot = *head;
            while slot != NONE {
                count += 1;
                slot = unpacked(self.records[slot as usize].key) as u32;
            }
        }
        count
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.records.len() * size_of::<Record>() + self.free.len() * size_of::<u32>()) as u64
    }
}

impl Table for Slots {
    // Metadata may have slots that fill no set.
    fn entry(&self, slot: u32) -> Option<Entry> {
        (slot < self.count() && self.valid(slot) != 0).then(|| Self::entry(self, slot))
    }
}
