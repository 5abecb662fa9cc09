//! Names of blocks that have left, as fingerprints.

use super::table::Table;
use crate::hash::mix;
use crate::key::BlockKey;

/// Bits of a fingerprint, and fingerprints of a bucket.
const BITS: u32 = 11;
const PER_BUCKET: u32 = 11;

/// The names that came last, about so many as asked for, in 1.5 bytes each.
///
/// A hash selects a bucket of eleven fingerprints of eleven bits, in the order in which they came: the oldest
/// leaves when another comes. So every name stays for as long as a queue of all of them would keep it on
/// average, give or take a third, and a name that is not there seems to be with probability 11 / 2047.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The youngest in the lowest bits; 0 where there is none.
    pub(crate) buckets: Table<u128>,
    mask: u128,
}

impl Names {
    pub(crate) fn new(max: u32) -> Self {
        let buckets = max.div_ceil(PER_BUCKET);
        let each = if buckets == 0 { 0 } else { max.div_ceil(buckets) };
        Self { buckets: Table::of(0, buckets), mask: (1 << (each * BITS)) - 1 }
    }

    #[inline]
    fn place(&self, key: BlockKey) -> (usize, u128) {
        let hash = mix(key.0);
        let bucket = (u128::from(hash) * self.buckets.len() as u128) >> 64;
        // The upper bits have chosen the bucket.
        (bucket as usize, u128::from(hash & ((1 << BITS) - 1)).max(1))
    }

    /// Where a fingerprint stands, in bits.
    #[inline]
    fn find(bucket: u128, fingerprint: u128) -> Option<u32> {
        let lowest = (1 << BITS) - 1;
        (0..PER_BUCKET).map(|at| at * BITS).find(|shift| bucket >> shift & lowest == fingerprint)
    }

    /// Adds a name; one that is there already stays where it is.
    pub(crate) fn push(&mut self, key: BlockKey) {
        if self.buckets.is_empty() {
            return;
        }
        let (bucket, fingerprint) = self.place(key);
        let names = &mut self.buckets[bucket];
        if Self::find(*names, fingerprint).is_none() {
            *names = (*names << BITS | fingerprint) & self.mask;
        }
    }

    /// Takes a name out. Returns whether it was there.
    pub(crate) fn take(&mut self, key: BlockKey) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let (bucket, fingerprint) = self.place(key);
        let names = &mut self.buckets[bucket];
        let Some(shift) = Self::find(*names, fingerprint) else { return false };
        let younger = *names & ((1 << shift) - 1);
        *names = *names >> BITS >> shift << shift | younger;
        true
    }
}
