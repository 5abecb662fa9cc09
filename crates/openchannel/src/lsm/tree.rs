//! Levels of sorted tables. A key has one entry in a table; of several tables that of the younger level, and
//! in level 0 of the younger table, is the newest.

use nandscape_core::vector::SectorAddress;

/// A sorted table in a chunk.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// First sector of its chunk.
    pub chunk: SectorAddress,
    /// Parallel unit, by number.
    pub unit: u32,
    /// Its keys, ascending; at least one.
    pub keys: Vec<u32>,
}

impl Table {
    pub fn first(&self) -> u32 {
        self.keys[0]
    }

    pub fn last(&self) -> u32 {
        *self.keys.last().expect("a table has keys")
    }

    pub fn overlaps(&self, first: u32, last: u32) -> bool {
        self.first() <= last && first <= self.last()
    }

    /// The number of a key's entry.
    pub fn find(&self, key: u32) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }
}

/// What is merged into a level: tables of the level before it, and those of this one with keys in their
/// range.
#[derive(Debug)]
pub(super) struct Merge {
    pub into: usize,
    /// Numbers of tables in both levels, the newest entries first.
    pub above: Vec<usize>,
    pub below: Vec<usize>,
}

/// The levels. Tables of level 0 overlap, and the youngest comes first; those of the others are in the order
/// of their keys.
#[derive(Debug)]
pub(super) struct Tree {
    pub levels: Vec<Vec<Table>>,
    /// Tables of level 0 that begin a compaction.
    trigger: usize,
    /// Most tables of level 1, and how many times as many each next level has.
    level1: usize,
    fanout: usize,
    /// For each level, the key where the last compaction ended.
    cursors: Vec<u32>,
}

impl Tree {
    pub fn new(trigger: u32, level1: u32, fanout: u32) -> Self {
        Self {
            levels: vec![Vec::new(), Vec::new()],
            trigger: trigger as usize,
            level1: level1 as usize,
            fanout: fanout as usize,
            cursors: vec![0, 0],
        }
    }

    /// Most tables of a level from 1 on.
    pub fn most(&self, level: usize) -> usize {
        self.level1.saturating_mul(self.fanout.saturating_pow(level as u32 - 1))
    }

    fn grow(&mut self, level: usize) {
        while self.levels.len() <= level {
            self.levels.push(Vec::new());
            self.cursors.push(0);
        }
    }

    /// Sorted tables of all keys, to begin with: in the first level that has room for them.
    pub fn load(&mut self, tables: Vec<Table>) {
        let level = (1..64).find(|level| self.most(*level) >= tables.len()).expect("levels grow by factors");
        self.grow(level);
        self.levels[level] = tables;
    }

    /// The table with the newest entry of a key, and the number of the entry there.
    pub fn find(&self, key: u32) -> Option<(&Table, usize)> {
        let [young, sorted @ ..] = self.levels.as_slice() else { return None };
        let in_young = young.iter().find_map(|table| Some((table, table.find(key)?)));
        in_young.or_else(|| {
            sorted.iter().find_map(|tables| {
                let at = tables.partition_point(|table| table.last() < key);
                let table = tables.get(at)?;
                Some((table, table.find(key)?))
            })
        })
    }

    /// Tables of each parallel unit that a compaction would read together with one of these keys in a level.
    pub fn together(&self, level: usize, first: u32, last: u32, units: usize) -> Vec<u32> {
        let mut counts = vec![0; units];
        let near = self.levels.iter().skip(level).take(2).flatten();
        for table in near.filter(|table| table.overlaps(first, last)) {
            counts[table.unit as usize] += 1;
        }
        counts
    }

    /// What is to be merged next; nothing where every level has room.
    pub fn next_merge(&mut self) -> Option<Merge> {
        let (level, above) = if self.levels[0].len() >= self.trigger {
            (0, (0..self.levels[0].len()).collect::<Vec<_>>())
        } else {
            let level = (1..self.levels.len()).find(|level| self.levels[*level].len() > self.most(*level))?;
            let tables = &self.levels[level];
            let next = tables.partition_point(|table| table.first() < self.cursors[level]) % tables.len();
            self.cursors[level] = tables[next].last().wrapping_add(1);
            (level, vec![next])
        };
        let first = above.iter().map(|table| self.levels[level][*table].first()).min()?;
        let last = above.iter().map(|table| self.levels[level][*table].last()).max()?;
        self.grow(level + 1);
        let below = &self.levels[level + 1];
        let below = (0..below.len()).filter(|table| below[*table].overlaps(first, last)).collect();
        Some(Merge { into: level + 1, above, below })
    }

    /// The tables of a merge, the newest entries first.
    pub fn inputs(&self, merge: &Merge) -> impl Iterator<Item = &Table> {
        let above = merge.above.iter().map(|table| &self.levels[merge.into - 1][*table]);
        above.chain(merge.below.iter().map(|table| &self.levels[merge.into][*table]))
    }

    /// The keys of a merge, one entry each, cut into tables of so many.
    pub fn merged(&self, merge: &Merge, entries: usize) -> Vec<Vec<u32>> {
        let mut keys: Vec<u32> = self.inputs(merge).flat_map(|table| table.keys.iter().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.chunks(entries).map(<[u32]>::to_vec).collect()
    }

    /// Replaces the tables of a merge, which nobody else changed: so many younger ones came before those of
    /// level 0.
    pub fn replace(&mut self, merge: &Merge, flushed: usize, tables: Vec<Table>) {
        // Level 0 has grown at its front since.
        let shift = if merge.into == 1 { flushed } else { 0 };
        for table in merge.above.iter().rev() {
            self.levels[merge.into - 1].remove(table + shift);
        }
        for table in merge.below.iter().rev() {
            self.levels[merge.into].remove(*table);
        }
        let level = &mut self.levels[merge.into];
        level.extend(tables);
        level.sort_unstable_by_key(Table::first);
        let is_sorted = level.is_sorted_by(|a, b| a.last() < b.first());
        assert!(is_sorted, "tables of level {} overlap", merge.into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(unit: u32, keys: &[u32]) -> Table {
        Table { chunk: SectorAddress { chunk: unit, ..SectorAddress::default() }, unit, keys: keys.to_vec() }
    }

    fn units(tree: &Tree, keys: std::ops::Range<u32>) -> Vec<u32> {
        keys.map(|key| tree.find(key).map_or(99, |(table, _)| table.unit)).collect()
    }

    #[test]
    fn the_youngest_entry_is_found_before_and_after_merges_with_tables_that_come_meanwhile() {
        let mut tree = Tree::new(2, 1, 2);
        tree.load(vec![table(0, &[0, 1, 2, 3]), table(1, &[4, 5, 6, 7])]);
        assert_eq!(tree.levels.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 2]);
        tree.levels[0] = vec![table(3, &[1, 5]), table(2, &[1, 6])];
        assert_eq!(units(&tree, 0..8), [0, 3, 0, 0, 1, 3, 2, 1]);
        assert_eq!(tree.together(1, 3, 4, 4), [1, 1, 0, 0]);
        let merge = tree.next_merge().unwrap();
        assert_eq!((merge.into, &merge.above[..], &merge.below[..]), (1, &[0, 1][..], &[][..]));
        assert_eq!(tree.merged(&merge, 2), [vec![1, 5], vec![6]]);
        tree.levels[0].insert(0, table(4, &[6, 7]));
        tree.replace(&merge, 1, vec![table(5, &[1, 5]), table(6, &[6])]);
        assert_eq!(units(&tree, 0..8), [0, 5, 0, 0, 1, 5, 4, 4]);
        // Level 1 has one table too many.
        let merge = tree.next_merge().unwrap();
        assert_eq!((merge.into, &merge.above[..], &merge.below[..]), (2, &[0][..], &[0, 1][..]));
        tree.replace(&merge, 0, vec![table(7, &[0, 1, 2, 3]), table(8, &[4, 5, 6, 7])]);
        assert_eq!(units(&tree, 0..8), [7, 7, 7, 7, 8, 8, 4, 4]);
        assert!(tree.next_merge().is_none());
    }
}
