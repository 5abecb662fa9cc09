//! Ranges of blocks with a value each, apart from one another.

use std::collections::BTreeMap;

/// `block -> value` for ranges that do not overlap.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<V> {
    /// First block of a range to one past its last, and the value.
    map: BTreeMap<u64, (u64, V)>,
}

impl<V> Default for Ranges<V> {
    fn default() -> Self {
        Self { map: BTreeMap::new() }
    }
}

impl<V: Copy + PartialEq> Ranges<V> {
    /// The value of a block.
    pub(crate) fn get(&self, block: u64) -> Option<V> {
        self.map
            .range(..=block)
            .next_back()
            .filter(|(_, (end, _))| block < *end)
            .map(|(_, (_, value))| *value)
    }

    /// The ranges that lie wholly or partly in `from..end`, cut to it.
    pub(crate) fn within(&self, from: u64, end: u64) -> impl Iterator<Item = (u64, u64, V)> {
        let before = self.map.range(..from).next_back();
        before
            .into_iter()
            .chain(self.map.range(from..end.max(from)))
            .map(move |(&start, &(stop, value))| (start.max(from), stop.min(end), value))
            .filter(|(start, stop, _)| start < stop)
    }

    /// Gives the value to those blocks of `from..end` that have none; how many there were.
    pub(crate) fn fill(&mut self, from: u64, end: u64, value: V) -> u64 {
        let mut gaps = Vec::new();
        let mut next = from;
        for (start, stop, _) in self.within(from, end) {
            if next < start {
                gaps.push((next, start));
            }
            next = stop;
        }
        if next < end {
            gaps.push((next, end));
        }
        let mut filled = 0;
        for (start, stop) in gaps {
            filled += stop - start;
            self.insert(start, stop, value);
        }
        filled
    }

    /// Gives the value to all blocks of `from..end`.
    pub(crate) fn set(&mut self, from: u64, end: u64, value: V) {
        if from < end {
            self.remove(from, end, |_| true);
            self.insert(from, end, value);
        }
    }

    /// Takes the value from those blocks of `from..end` whose value is to go.
    pub(crate) fn remove(&mut self, from: u64, end: u64, goes: impl Fn(V) -> bool) {
        let hit: Vec<(u64, u64, V)> = self.within(from, end).filter(|(_, _, value)| goes(*value)).collect();
        for (start, stop, value) in hit {
            let (&whole_start, &(whole_stop, _)) =
                self.map.range(..=start).next_back().expect("a range that was found");
            self.map.remove(&whole_start);
            if whole_start < start {
                self.map.insert(whole_start, (start, value));
            }
            if stop < whole_stop {
                self.map.insert(stop, (whole_stop, value));
            }
        }
    }

    /// A range known to be free; joined with its neighbours where they have the same value.
    fn insert(&mut self, mut from: u64, mut end: u64, value: V) {
        if let Some((&start, &(stop, before))) = self.map.range(..from).next_back()
            && stop == from
            && before == value
        {
            from = start;
        }
        if let Some(&(stop, after)) = self.map.get(&end)
            && after == value
        {
            self.map.remove(&end);
            end = stop;
        }
        self.map.insert(from, (end, value));
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
