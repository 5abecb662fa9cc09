//! Ranges of blocks with a value each, which do not overlap.

use rangemap::RangeMap;
use std::ops::Range;

/// `block -> value` for ranges that do not overlap. Neighbours with the same value are one.
#[derive(Clone, Debug)]
pub struct Ranges<V>(RangeMap<u64, V>);

impl<V> Default for Ranges<V> {
    fn default() -> Self {
        Self(RangeMap::new())
    }
}

impl<V: Copy + PartialEq> Ranges<V> {
    /// The value of a block.
    pub fn get(&self, block: u64) -> Option<V> {
        self.0.get(&block).copied()
    }

    /// The ranges that lie wholly or partly in `from..end`, cut to it.
    pub fn within(&self, from: u64, end: u64) -> impl Iterator<Item = (u64, u64, V)> {
        let cut =
            move |(range, value): (&Range<u64>, &V)| (range.start.max(from), range.end.min(end), *value);
        self.0.overlapping(from..end).map(cut).filter(|(start, stop, _)| start < stop)
    }

    /// Gives the value to those blocks of `from..end` that have none; how many there were.
    pub fn fill(&mut self, from: u64, end: u64, value: V) -> u64 {
        let gaps: Vec<Range<u64>> = self.0.gaps(&(from..end.max(from))).collect();
        let filled = gaps.iter().map(|gap| gap.end - gap.start).sum();
        self.0.extend(gaps.into_iter().map(|gap| (gap, value)));
        filled
    }

    /// Gives the value to all blocks of `from..end`.
    pub fn set(&mut self, from: u64, end: u64, value: V) {
        if from < end {
            self.0.insert(from..end, value);
        }
    }

    /// Takes the value from those blocks of `from..end` whose value is to go.
    pub fn remove(&mut self, from: u64, end: u64, goes: impl Fn(V) -> bool) {
        let hit: Vec<(u64, u64, V)> = self.within(from, end).filter(|(_, _, value)| goes(*value)).collect();
        for (start, stop, _) in hit {
            self.0.remove(start..stop);
        }
    }

    /// Takes the first range that lies wholly or partly in `from..end`, cut to it.
    pub fn take(&mut self, from: u64, end: u64) -> Option<(u64, u64)> {
        let (start, stop, _) = self.within(from, end).next()?;
        self.0.remove(start..stop);
        Some((start, stop))
    }

    /// Whether no block has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{below, seeded};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_agree_with_a_flat_array(steps in prop::collection::vec((0_u8..3, 0_u64..64, 0_u64..20, 0_u8..3), 1..60)) {
            let mut flat = [None; 100];
            let mut ranges = Ranges::default();
            for (step, from, len, value) in steps {
                let end = from + len;
                let blocks = from as usize..end as usize;
                match step {
                    0 => {
                        let free = blocks.clone().filter(|b| flat[*b].is_none()).count() as u64;
                        for b in blocks {
                            flat[b] = flat[b].or(Some(value));
                        }
                        prop_assert_eq!(ranges.fill(from, end, value), free);
                    }
                    1 => {
                        flat[blocks].fill(Some(value));
                        ranges.set(from, end, value);
                    }
                    _ => {
                        for b in blocks {
                            flat[b] = flat[b].filter(|v| *v != value);
                        }
                        ranges.remove(from, end, |v| v == value);
                    }
                }
                for (b, expected) in flat.iter().enumerate() {
                    prop_assert_eq!(ranges.get(b as u64), *expected, "block {}", b);
                }
                let mut seen = [None; 100];
                for (start, stop, v) in ranges.within(3, 70) {
                    prop_assert!(start >= 3 && stop <= 70);
                    seen[start as usize..stop as usize].fill(Some(v));
                }
                prop_assert_eq!(&seen[3..70], &flat[3..70]);
            }
        }
    }

    #[test]
    fn ranges_agree_with_a_plain_set() {
        let (mut rng, mut ranges) = (seeded(6), Ranges::default());
        let mut model = [false; 200];
        for _ in 0..5000 {
            let from = below(&mut rng, 200);
            let end = (from + 1 + below(&mut rng, 20)).min(200);
            let part = &mut model[from as usize..end as usize];
            if below(&mut rng, 2) == 0 {
                let new = part.iter().filter(|set| !**set).count() as u64;
                part.fill(true);
                assert_eq!(ranges.fill(from, end, ()), new);
            } else {
                let first = part.iter().position(|set| *set);
                let taken = ranges.take(from, end);
                assert_eq!(taken.map(|(start, _)| start), first.map(|at| from + at as u64));
                if let Some((start, stop)) = taken {
                    let run = &mut model[start as usize..stop as usize];
                    assert!(run.iter().all(|set| *set));
                    run.fill(false);
                    assert!(stop == end || !model[stop as usize]);
                }
            }
            assert_eq!(ranges.is_empty(), model.iter().all(|set| !set));
        }
    }
}
