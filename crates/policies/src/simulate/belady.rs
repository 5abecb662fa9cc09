//! The best that any policy could do.

use super::{Counts, Request};
use crate::hash::KeyMap;
use nandscape_core::Info;
use std::collections::BinaryHeap;

/// What the registry says of it. It is not among the policies of a running cache, since it must know the
/// future.
pub const BELADY: Info = Info {
    name: "belady",
    summary: "the block that is asked for latest in the future leaves: the best there can be, in simulations only",
    source: "Belady 1966 (MIN)",
    params: &[],
};

/// Not asked for again.
const NEVER: u64 = u64::MAX;

/// For each request of a stream, when its block is read or written next. The same for caches of any size.
#[derive(Clone, Debug)]
pub struct NextUses(Vec<u64>);

impl NextUses {
    /// Looks through the stream from its end. A block that is trimmed before counts as not asked for again.
    /// Memory: 8 B a request, and some 32 B for each different block.
    pub fn of(requests: &[Request]) -> Self {
        let mut seen = KeyMap::default();
        let mut next = vec![NEVER; requests.len()];
        for (at, request) in requests.iter().enumerate().rev() {
            let here = if request.is_trim() { NEVER } else { at as u64 };
            next[at] = seen.insert(request.key().0, here).unwrap_or(NEVER);
        }
        Self(next)
    }

    /// The best that a cache of so many slots could do with the stream that this was made of.
    pub fn belady(&self, requests: &[Request], slots: u32) -> Counts {
        let mut counts = Counts::default();
        // Next use of each cached block, and the same by the latest; entries of the heap that are not current
        // any more are passed over.
        let mut cached = KeyMap::default();
        let mut latest: BinaryHeap<(u64, u64)> = BinaryHeap::new();
        for (request, &next) in requests.iter().zip(&self.0) {
            let key = request.key().0;
            if request.is_trim() {
                counts.trimmed += u64::from(cached.remove(&key).is_some());
                continue;
            }
            let is_hit = cached.contains_key(&key);
            counts.accesses.count(*request, is_hit);
            if !is_hit && cached.len() == slots as usize {
                while let Some((next, key)) = latest.pop() {
                    if cached.get(&key) == Some(&next) {
                        cached.remove(&key);
                        counts.evictions += 1;
                        break;
                    }
                }
            }
            cached.insert(key, next);
            latest.push((next, key));
            if latest.len() > 4 * slots as usize + 1024 {
                latest.retain(|(next, key)| cached.get(key) == Some(next));
            }
        }
        counts.used = cached.len() as u64;
        counts
    }
}
