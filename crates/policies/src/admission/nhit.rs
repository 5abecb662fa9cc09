//! Only what is asked for often enough.

use super::{Admission, Ask, Bypass, Entry, Room};
use crate::hash::mix;
use crate::key::BlockKey;
use nandscape_core::{Info, Op, keys};

keys! { PARAMS:
    HITS: u32 = int(1, 15) or "3", "the request for a block at which it is cached";
    HITS_FROM: f64 = share() or "80%", "share of slots in use below which everything is cached";
    HITS_BLOCKS: u64 = int(0, 1 << 32) or "0",
        "blocks that are counted at a time, 4 bytes each; 0: as many as the cache has slots";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "n-hit",
        summary: "a block is cached when it is asked for so many times, once the cache is nearly full",
        source: "Open-CAS's promotion policy of that name",
        params: PARAMS,
    },
    build: |setup| {
        let blocks = match setup.params.get(HITS_BLOCKS) {
            0 => u64::from(setup.slots),
            blocks => blocks,
        };
        let from = setup.params.get(HITS_FROM) as f32;
        Ok(Box::new(NHit { hits: setup.params.get(HITS), from, seen: Seen::new(blocks), refused: 0 }))
    },
};

#[derive(Debug)]
struct NHit {
    hits: u32,
    from: f32,
    seen: Seen,
    refused: u64,
}

impl Admission for NHit {
    fn request(&mut self, _: &Ask) -> Result<(), Bypass> {
        Ok(())
    }

    fn block(&mut self, key: BlockKey, _: Op, room: Room) -> Result<(), Bypass> {
        // Below the trigger nothing is counted either.
        if room.fill() < self.from || self.seen.count(key, self.hits) {
            return Ok(());
        }
        self.refused += 1;
        Err(Bypass::TooFewHits)
    }

    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        out.extend([("hits_too_few", self.refused), ("hits_forgotten", self.seen.forgotten)]);
    }

    fn memory_bytes(&self) -> u64 {
        self.seen.groups.len() as u64 * size_of::<[u32; WAYS]>() as u64
    }
}

/// Blocks that share a place; within it the one not asked for longest makes room.
const WAYS: usize = 8;
const COUNT_BITS: u32 = 4;

/// Counts of the blocks seen lately, in a fixed table: 28 bits to tell blocks of a group apart, 4 bits of
/// count. Two blocks are taken for one with a chance below 2^-25. An entry of 0 is empty.
#[derive(Debug)]
struct Seen {
    groups: Vec<[u32; WAYS]>,
    forgotten: u64,
}

impl Seen {
    fn new(blocks: u64) -> Self {
        let groups = blocks.div_ceil(WAYS as u64).max(1) as usize;
        Self { groups: vec![[0; WAYS]; groups], forgotten: 0 }
    }

    /// Counts a request; whether it is the one of number `hits`, after which the block is no longer counted.
    fn count(&mut self, key: BlockKey, hits: u32) -> bool {
        let hash = mix(key.0);
        let group = ((u128::from(hash) * self.groups.len() as u128) >> 64) as usize;
        let group = &mut self.groups[group];
        let tag = (hash as u32) >> COUNT_BITS;
        let at = group.iter().position(|entry| *entry != 0 && *entry >> COUNT_BITS == tag);
        let count = at.map_or(0, |at| group[at] & ((1 << COUNT_BITS) - 1)) + 1;
        if count >= hits {
            if let Some(at) = at {
                group.copy_within(at + 1.., at);
                group[WAYS - 1] = 0;
            }
            return true;
        }
        let last = at.unwrap_or(WAYS - 1);
        self.forgotten += u64::from(at.is_none() && group[last] != 0);
        group.copy_within(..last, 1);
        group[0] = tag << COUNT_BITS | count;
        false
    }
}
