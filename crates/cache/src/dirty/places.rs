//! A set of blocks in the order of the disk.

use nandscape_policies::BlockKey;
use std::collections::BTreeMap;

/// Blocks of a range, and the most of which their numbers are listed: more than these are bits.
const RANGE_BITS: u32 = 16;
const LISTED_MAX: usize = 4096;
/// Fewer than these are listed again.
const LISTED_AGAIN: usize = 3072;
const WORDS: usize = 1 << (RANGE_BITS - 6);
/// Bytes of the tree for each range: key and value at the tree's usual filling of two thirds, with the inner
/// nodes.
const TREE_ENTRY_BYTES: u64 = 56;

/// Blocks as numbers of two bytes in ranges of 65,536 of them (256 MiB of blocks of 4 KiB), or as bits where
/// a range has many, as in Roaring bitmaps (Chambi et al., 2016): 2 to 2.2 bytes for each block and 56 for
/// each range, and never more than 8 KiB for a range.
#[derive(Debug, Default)]
pub struct Places {
    ranges: BTreeMap<u64, Range>,
    heap_bytes: u64,
}

/// What is there of a range; never nothing.
#[derive(Debug)]
enum Range {
    Listed(Vec<u16>),
    Bits(Box<[u64; WORDS]>, u32),
}

impl Range {
    fn has(&self, at: u16) -> bool {
        match self {
            Self::Listed(list) => list.binary_search(&at).is_ok(),
            Self::Bits(bits, _) => bits[usize::from(at >> 6)] >> (at & 63) & 1 == 1,
        }
    }

    fn insert(&mut self, at: u16) -> bool {
        match self {
            Self::Listed(list) => {
                let Err(place) = list.binary_search(&at) else { return false };
                if list.len() == LISTED_MAX {
                    *self = Self::bits(list);
                    return self.insert(at);
                }
                if list.len() == list.capacity() {
                    // A sixteenth to spare, and not as much again.
                    list.reserve_exact((list.len() / 16).max(4));
                }
                list.insert(place, at);
                true
            }
            Self::Bits(bits, count) => {
                let (word, bit) = (&mut bits[usize::from(at >> 6)], 1 << (at & 63));
                let is_new = *word & bit == 0;
                *word |= bit;
                *count += u32::from(is_new);
                is_new
            }
        }
    }

    fn remove(&mut self, at: u16) -> bool {
        match self {
            Self::Listed(list) => {
                let Ok(place) = list.binary_search(&at) else { return false };
                list.remove(place);
                if list.capacity() > 2 * list.len() + 8 {
                    list.shrink_to(list.len() + list.len() / 16 + 4);
                }
                true
            }
            Self::Bits(bits, count) => {
                let (word, bit) = (&mut bits[usize::from(at >> 6)], 1 << (at & 63));
                let was_there = *word & bit != 0;
                *word &= !bit;
                *count -= u32::from(was_there);
                if (*count as usize) < LISTED_AGAIN {
                    *self = Self::Listed(self.iter_from(0).collect());
                }
                was_there
            }
        }
    }

    fn bits(list: &[u16]) -> Self {
        let mut bits = Box::new([0; WORDS]);
        for at in list {
            bits[usize::from(at >> 6)] |= 1 << (at & 63);
        }
        Self::Bits(bits, list.len() as u32)
    }

    fn iter_from(&self, from: u16) -> impl Iterator<Item = u16> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let found = self.next(next?)?;
            next = found.checked_add(1);
            Some(found)
        })
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Listed(list) => list.is_empty(),
            Self::Bits(_, count) => *count == 0,
        }
    }

    fn next(&self, from: u16) -> Option<u16> {
        match self {
            Self::Listed(list) => list.get(list.partition_point(|at| *at < from)).copied(),
            Self::Bits(bits, _) => {
                let first = usize::from(from >> 6);
                let mut word = bits[first] & u64::MAX << (from & 63);
                let mut index = first;
                while word == 0 {
                    index += 1;
                    word = *bits.get(index)?;
                }
                Some((index as u16) << 6 | word.trailing_zeros() as u16)
            }
        }
    }

    /// How many are there in a row from `from` on, `most` at most.
    fn row_up(&self, from: u16, most: u64) -> u64 {
        let mut length = 0;
        match self {
            Self::Listed(list) => {
                let place = list.partition_point(|at| *at < from);
                let row = list[place..].iter().zip(u32::from(from)..);
                length = row.take_while(|(at, meant)| u32::from(**at) == *meant).count() as u64;
            }
            Self::Bits(bits, _) => {
                let mut at = u32::from(from);
                while at < 1 << RANGE_BITS && length < most {
                    let ones = (bits[(at >> 6) as usize] >> (at & 63)).trailing_ones();
                    length += u64::from(ones);
                    if ones < 64 - (at & 63) {
                        break;
                    }
                    at += ones;
                }
            }
        }
        length.min(most)
    }

    /// How many are there in a row up to `last`, `most` at most.
    fn row_down(&self, last: u16, most: u64) -> u64 {
        let mut length = 0;
        match self {
            Self::Listed(list) => {
                let end = list.partition_point(|at| *at <= last);
                let row = list[..end].iter().rev().zip((0..=u32::from(last)).rev());
                length = row.take_while(|(at, meant)| u32::from(**at) == *meant).count() as u64;
            }
            Self::Bits(bits, _) => {
                // The one that is looked at next.
                let mut at = Some(last);
                while let Some(place) = at.filter(|_| length < most) {
                    let ones = (bits[usize::from(place >> 6)] << (63 - (place & 63))).leading_ones() as u16;
                    length += u64::from(ones);
                    if ones <= place & 63 {
                        break;
                    }
                    at = place.checked_sub(ones);
                }
            }
        }
        length.min(most)
    }

    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Listed(list) => (list.capacity() * size_of::<u16>()) as u64,
            Self::Bits(..) => size_of::<[u64; WORDS]>() as u64,
        }
    }
}

impl Places {
    const fn split(key: BlockKey) -> (u64, u16) {
        (key.0 >> RANGE_BITS, key.0 as u16)
    }

    /// Adds a block; `false` if it was there.
    pub fn insert(&mut self, key: BlockKey) -> bool {
        let (range, at) = Self::split(key);
        let range = self.ranges.entry(range).or_insert(Range::Listed(Vec::new()));
        self.heap_bytes -= range.heap_bytes();
        let is_new = range.insert(at);
        self.heap_bytes += range.heap_bytes();
        is_new
    }

    /// Takes a block out; `false` if it was not there.
    pub fn remove(&mut self, key: BlockKey) -> bool {
        let (number, at) = Self::split(key);
        let Some(range) = self.ranges.get_mut(&number) else { return false };
        self.heap_bytes -= range.heap_bytes();
        let was_there = range.remove(at);
        self.heap_bytes += range.heap_bytes();
        if range.is_empty() {
            self.heap_bytes -= range.heap_bytes();
            self.ranges.remove(&number);
        }
        was_there
    }

    pub fn has(&self, key: BlockKey) -> bool {
        let (range, at) = Self::split(key);
        self.ranges.get(&range).is_some_and(|range| range.has(at))
    }

    /// The first block at `from` or behind.
    pub fn next(&self, from: BlockKey) -> Option<BlockKey> {
        let (number, at) = Self::split(from);
        self.ranges.range(number..).find_map(|(found, range)| {
            let at = range.next(if *found == number { at } else { 0 })?;
            Some(BlockKey(found << RANGE_BITS | u64::from(at)))
        })
    }

    /// Blocks in a row from `key` on, `room` at most, all of the same volume.
    pub fn row_up(&self, key: BlockKey, room: u64) -> u64 {
        let room = room.min((1 << BlockKey::BLOCK_BITS) - key.block());
        let mut length = 0;
        while length < room {
            let (number, at) = Self::split(BlockKey(key.0 + length));
            let Some(range) = self.ranges.get(&number) else { break };
            let row = range.row_up(at, room - length);
            length += row;
            if u64::from(at) + row < 1 << RANGE_BITS {
                break;
            }
        }
        length
    }

    /// Blocks in a row right before `key`, `room` at most, all of the same volume.
    pub fn row_down(&self, key: BlockKey, room: u64) -> u64 {
        let room = room.min(key.block());
        let mut length = 0;
        while length < room {
            let (number, at) = Self::split(BlockKey(key.0 - length - 1));
            let Some(range) = self.ranges.get(&number) else { break };
            let row = range.row_down(at, room - length);
            length += row;
            if row <= u64::from(at) {
                break;
            }
        }
        length
    }

    /// Memory held, in bytes; of the tree an estimate from above.
    pub fn memory_bytes(&self) -> u64 {
        self.ranges.len() as u64 * TREE_ENTRY_BYTES + self.heap_bytes
    }
}
