//! A sparse flat table over device addresses: memory follows what is touched, not the highest address.

const LEAF: usize = 1024;
/// Most entries, so that a wild address cannot claim memory. At 1 MiB an entry this is 1 PiB.
const MOST: u64 = 1 << 30;

/// `index -> T`, unset entries being `T::default()`. An index of 2^30 or more is not kept.
#[derive(Clone, Debug, Default)]
pub struct Table<T> {
    leaves: Vec<Option<Box<[T]>>>,
    used: usize,
}

impl<T: Copy + Default> Table<T> {
    /// The entry, if its neighbourhood was ever written.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&T> {
        let leaf = self.leaves.get((index / LEAF as u64) as usize)?.as_ref()?;
        Some(&leaf[(index % LEAF as u64) as usize])
    }

    /// The entry, made if need be; `None` beyond the range that is kept.
    #[inline]
    pub fn entry(&mut self, index: u64) -> Option<&mut T> {
        if index >= MOST {
            return None;
        }
        let leaf = (index / LEAF as u64) as usize;
        if leaf >= self.leaves.len() {
            self.leaves.resize_with(leaf + 1, || None);
        }
        let used = &mut self.used;
        let leaf = self.leaves[leaf].get_or_insert_with(|| {
            *used += 1;
            vec![T::default(); LEAF].into_boxed_slice()
        });
        Some(&mut leaf[(index % LEAF as u64) as usize])
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.leaves.capacity() * size_of::<Option<Box<[T]>>>() + self.used * LEAF * size_of::<T>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_is_touched_and_wild_indices_are_refused() {
        let mut table: Table<u32> = Table::default();
        assert_eq!(table.get(5), None);
        *table.entry(5).unwrap() = 7;
        *table.entry(1_000_000).unwrap() = 8;
        assert_eq!((table.get(5), table.get(6), table.get(1_000_000)), (Some(&7), Some(&0), Some(&8)));
        assert!(table.entry(u64::MAX).is_none() && table.get(u64::MAX).is_none());
        assert!(table.memory_bytes() < 100_000, "{}", table.memory_bytes());
    }
}
