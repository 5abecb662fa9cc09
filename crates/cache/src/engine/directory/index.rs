//! From block to slot: buckets of slot numbers, 4.3 bytes for each slot.

use super::slots::Slots;
use nandscape_memory::prefetch;
use nandscape_policies::BlockKey;
use nandscape_policies::hash::mix;

const EMPTY: u32 = u32::MAX;
/// Entries of a bucket, which is a cache line, and for how many of them there are slots.
const PLACES: u32 = 16;
const FILLED: u32 = 15;
/// Entries that are moved at most to make room for one.
const MOVES_MAX: u32 = 256;

/// Which slot holds a block. The keys themselves lie in [`Slots`], so that nothing is kept twice; an entry
/// has the slot's number and, in the bits that the number leaves, a part of the key's hash, so that few other
/// slots are looked at.
///
/// A key is in one of two buckets (cuckoo hashing, Pagh and Rodler, 2004, with buckets as in Dietzfelbinger
/// and Weidling, 2007): in the first unless that was full. Buckets of 16 that are 15/16 full stay far from
/// the load at which this fails; should keys be chosen to make it fail, entries go to a list beside.
pub struct Index {
    buckets: Vec<Bucket>,
    beside: Vec<u32>,
    /// Bits of a slot's number.
    bits: u32,
    /// Which entry of a full bucket moves next.
    turn: u32,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket([u32; PLACES as usize]);

/// Where an entry is: bucket and place in it, or place in the list beside.
#[derive(Clone, Copy)]
enum Place {
    Bucket(usize, usize),
    Beside(usize),
}

impl Index {
    /// An empty index for up to `slots` blocks.
    pub fn new(slots: u32) -> Self {
        let buckets = slots.div_ceil(FILLED) as usize;
        Self {
            buckets: vec![Bucket([EMPTY; PLACES as usize]); buckets],
            beside: Vec::new(),
            // All bits set is never a slot, so that no entry looks empty.
            bits: u32::BITS - slots.leading_zeros(),
            turn: 0,
        }
    }

    const fn slot(&self, entry: u32) -> u32 {
        entry & ((1 << self.bits) - 1)
    }

    const fn entry(&self, hash: u64, slot: u32) -> u32 {
        (hash as u32) << self.bits | slot
    }

    #[inline]
    fn first(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }

    #[inline]
    fn second(&self, hash: u64) -> usize {
        self.first(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ hash >> 32)
    }

    #[inline]
    fn search(&self, hash: u64, key: BlockKey, slots: &Slots) -> Option<Place> {
        let first = self.first(hash);
        if let Some(place) = self.search_bucket(first, hash, key, slots) {
            return Some(Place::Bucket(first, place));
        }
        let second = self.second(hash);
        if let Some(place) = self.search_bucket(second, hash, key, slots) {
            return Some(Place::Bucket(second, place));
        }
        let is_it = |entry: &u32| slots.key(*entry) == key;
        self.beside.iter().position(is_it).map(Place::Beside)
    }

    #[inline]
    fn search_bucket(&self, bucket: usize, hash: u64, key: BlockKey, slots: &Slots) -> Option<usize> {
        let mut alike = self.alike(bucket, hash);
        while alike != 0 {
            let place = alike.trailing_zeros() as usize;
            let entry = self.buckets[bucket].0[place];
            if entry != EMPTY && slots.key(self.slot(entry)) == key {
                return Some(place);
            }
            alike &= alike - 1;
        }
        None
    }

    #[inline]
    pub fn find(&self, key: BlockKey, slots: &Slots) -> Option<u32> {
        match self.search(mix(key.0), key, slots)? {
            Place::Bucket(bucket, place) => Some(self.slot(self.buckets[bucket].0[place])),
            Place::Beside(place) => Some(self.beside[place]),
        }
    }

    /// A key will be looked for soon: its first bucket comes nearer.
    #[inline]
    pub fn prepare(&self, key: BlockKey) {
        if let Some(bucket) = self.buckets.get(self.first(mix(key.0))) {
            prefetch(bucket);
        }
    }

    /// The slot where a key most likely is, going by its first bucket alone.
    #[inline]
    pub fn guess(&self, key: BlockKey) -> Option<u32> {
        let hash = mix(key.0);
        let bucket = self.first(hash);
        let alike = self.alike(bucket, hash);
        (alike != 0).then(|| self.slot(self.buckets[bucket].0[alike.trailing_zeros() as usize]))
    }

    /// The places of a bucket whose entries have the same part of the hash, as bits.
    #[inline]
    fn alike(&self, bucket: usize, hash: u64) -> u32 {
        let wanted = self.entry(hash, 0);
        let mut alike = 0;
        for (place, entry) in self.buckets[bucket].0.iter().enumerate() {
            alike |= u32::from((entry ^ wanted) >> self.bits == 0) << place;
        }
        alike
    }

    /// `key`, which is not in the index, is in `slot`, whose record says so.
    pub fn insert(&mut self, key: BlockKey, slot: u32, slots: &Slots) {
        let hash = mix(key.0);
        let mut entry = self.entry(hash, slot);
        assert_eq!(self.slot(entry), slot, "the slot of {key:?} in {} bits", self.bits);
        debug_assert_eq!(self.find(key, slots), None, "the slot of {key:?} before {slot}");
        let (first, mut bucket) = (self.first(hash), self.second(hash));
        if self.put(first, entry) {
            return;
        }
        for _ in 0..MOVES_MAX {
            if self.put(bucket, entry) {
                return;
            }
            // One that is there goes to its other bucket.
            let place = (self.turn % PLACES) as usize;
            self.turn = self.turn.wrapping_add(1);
            entry = std::mem::replace(&mut self.buckets[bucket].0[place], entry);
            let hash = mix(slots.key(self.slot(entry)).0);
            bucket = self.first(hash) + self.second(hash) - bucket;
        }
        self.beside.push(self.slot(entry));
    }

    fn put(&mut self, bucket: usize, entry: u32) -> bool {
        assert_ne!(entry, EMPTY, "an entry of bucket {bucket}");
        let place = self.buckets[bucket].0.iter_mut().find(|place| **place == EMPTY);
        place.map(|place| *place = entry).is_some()
    }

    fn known(&self, key: BlockKey, slots: &Slots) -> Place {
        let place = self.search(mix(key.0), key, slots);
        place.unwrap_or_else(|| panic!("{key:?} is not in the index"))
    }

    /// `key`, which is in the index, now lies in `slot`; the old slot's record still names it.
    pub fn replace(&mut self, key: BlockKey, slot: u32, slots: &Slots) {
        debug_assert_eq!(slots.key(slot), key, "the block of slot {slot}, which it goes to");
        match self.known(key, slots) {
            Place::Bucket(bucket, place) => {
                self.buckets[bucket].0[place] = self.entry(mix(key.0), slot);
            }
            Place::Beside(place) => self.beside[place] = slot,
        }
    }

    /// Takes `key` out; its slot's record still names it.
    pub fn remove(&mut self, key: BlockKey, slots: &Slots) {
        match self.known(key, slots) {
            Place::Bucket(bucket, place) => self.buckets[bucket].0[place] = EMPTY,
            Place::Beside(place) => {
                self.beside.swap_remove(place);
            }
        }
        debug_assert_eq!(self.find(key, slots), None, "the slot of {key:?}, which was taken out");
    }

    /// Blocks in the index. For checks.
    pub fn count(&self) -> usize {
        let entries = self.buckets.iter().flat_map(|bucket| &bucket.0);
        entries.filter(|entry| **entry != EMPTY).count() + self.beside.len()
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.buckets.len() * size_of::<Bucket>() + self.beside.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};
    use std::collections::BTreeMap;

    fn full(count: u32) -> (Slots, Index) {
        let mut slots = Slots::new(1, count, 8);
        slots.assign(0, 1 << 32).expect("there is room");
        (slots, Index::new(count))
    }

    #[test]
    fn a_full_index_finds_every_block_and_no_other_while_blocks_come_and_go() {
        for count in [1, 15, 16, 17, 31, 100, 5000] {
            let (mut slots, mut index) = full(count);
            let mut rng = seeded(u64::from(count));
            let mut model = BTreeMap::new();
            for _ in 0..20_000 {
                let block = below(&mut rng, u64::from(count) * 3);
                let key = BlockKey::new(0, block);
                assert_eq!(index.find(key, &slots), model.get(&block).copied(), "{count}: {block}");
                if let Some(slot) = model.remove(&block) {
                    index.remove(key, &slots);
                    slots.give(slot);
                } else if let Some(slot) = slots.take(0) {
                    slots.set_key(slot, key);
                    index.insert(key, slot, &slots);
                    model.insert(block, slot);
                }
            }
            assert_eq!(index.count(), model.len());
            assert!(index.beside.is_empty(), "{count}");
        }
    }

    #[test]
    fn blocks_whose_hashes_are_alike_are_found_beside() {
        let (mut slots, mut index) = full(300);
        // All have the same two buckets, which have room for 32.
        let hash = |block| mix(BlockKey::new(0, block).0);
        let mut blocks = (0..1 << 20_u64).filter(|block| index.first(hash(*block)) == 3);
        let second = index.second(hash(blocks.next().expect("one in twenty is there")));
        let alike: Vec<u64> = blocks.filter(|block| index.second(hash(*block)) == second).take(40).collect();
        for block in alike.iter().copied() {
            let slot = slots.take(0).expect("they are few");
            slots.set_key(slot, BlockKey::new(0, block));
            index.insert(BlockKey::new(0, block), slot, &slots);
        }
        assert_eq!((index.count(), index.beside.len()), (40, 8));
        for block in alike {
            let key = BlockKey::new(0, block);
            let slot = index.find(key, &slots).expect("it is there");
            assert_eq!(slots.key(slot), key);
            index.remove(key, &slots);
            assert_eq!(index.find(key, &slots), None);
        }
    }
}
