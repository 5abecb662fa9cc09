//! Levels of sorted tables, and which of them are merged next.
//!
//! Keys are drawn evenly from the key space, so how many distinct ones a table or a merge has follows from
//! densities: of a part of the key space of which tables have the shares `a` and `b`, both together have
//! `1 - (1 - a)(1 - b)`.

/// A sorted table: so many distinct keys, spread evenly over a part of the key space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub file: u32,
    /// Part of the key space, from 0 to 1.
    pub from: f64,
    pub to: f64,
    pub keys: f64,
    /// A merge has it as input.
    is_busy: bool,
}

impl Table {
    pub const fn new(file: u32, (from, to): (f64, f64), keys: f64) -> Self {
        Self { file, from, to, keys, is_busy: false }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// Sizes that never change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Keys of the key space.
    pub keys: f64,
    pub entry_bytes: u64,
    pub table_bytes: u64,
    /// Most bytes of level 1; each level behind may have `ratio` times as many.
    pub base_bytes: u64,
    pub ratio: u64,
    /// Tables of level 0 that begin a merge.
    pub trigger: usize,
    /// Tables of a level are merged in the order of their keys, round and round; else the one that overlaps
    /// least with the level behind, for its size.
    pub in_turn: bool,
}

impl Shape {
    /// Bytes of so many entries.
    pub fn bytes(&self, keys: f64) -> u64 {
        (keys * self.entry_bytes as f64).ceil() as u64
    }

    /// The share of the keys in its part of the key space that a table has.
    fn density(&self, table: &Table) -> f64 {
        (table.keys / (self.keys * (table.to - table.from))).min(1.0)
    }
}

/// Tables of a level that move to the next one.
#[derive(Debug)]
pub(super) struct Merge {
    /// The level that gets the outputs.
    pub level: usize,
    /// Files of all inputs with their bytes.
    pub inputs: Vec<(u32, u64)>,
    pub outputs: Vec<Table>,
    /// Nothing overlaps: the table is only noted in another level.
    pub is_move: bool,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub shape: Shape,
    /// Level 0 in the order of age, the others in the order of keys.
    levels: Vec<Vec<Table>>,
    /// Where in the key space the last merge of a level ended.
    cursors: Vec<f64>,
}

impl Tree {
    pub fn new(shape: Shape) -> Self {
        Self { shape, levels: vec![Vec::new(); 2], cursors: vec![0.0; 2] }
    }

    pub fn levels(&self) -> &[Vec<Table>] {
        &self.levels
    }

    /// A table of the memory was written.
    pub fn flushed(&mut self, table: Table) {
        self.levels[0].push(table);
    }

    /// How full a level is: 1 or more begins a merge. Tables of merges under way do not count.
    fn score(&self, level: usize) -> f64 {
        let idle = self.levels[level].iter().filter(|table| !table.is_busy);
        if level == 0 {
            return idle.count() as f64 / self.shape.trigger as f64;
        }
        let bytes: f64 = idle.map(|table| table.keys * self.shape.entry_bytes as f64).sum();
        let most = (1..level).fold(self.shape.base_bytes as f64, |most, _| most * self.shape.ratio as f64);
        bytes / most
    }

    /// The next merge, of the fullest level that has one. `file` gives numbers of new files.
    pub fn pick(&mut self, file: &mut impl FnMut() -> u32) -> Option<Merge> {
        let mut scores: Vec<(f64, usize)> = (0..self.levels.len())
            .map(|level| (self.score(level), level))
            .filter(|(score, _)| *score >= 1.0)
            .collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        scores.into_iter().find_map(|(_, level)| self.pick_from(level, file))
    }

    fn pick_from(&mut self, level: usize, file: &mut impl FnMut() -> u32) -> Option<Merge> {
        if level + 1 == self.levels.len() {
            self.levels.push(Vec::new());
            self.cursors.push(0.0);
        }
        let upper: Vec<usize> = if level == 0 {
            // Tables of level 0 overlap, so a merge takes all of them.
            let all = &self.levels[0];
            all.iter().all(|table| !table.is_busy).then(|| (0..all.len()).collect())?
        } else {
            vec![if self.shape.in_turn { self.next_of(level)? } else { self.least_of(level)? }]
        };
        let lower: Vec<usize> = (0..self.levels[level + 1].len())
            .filter(|index| {
                let table = &self.levels[level + 1][*index];
                upper.iter().any(|upper| self.levels[level][*upper].overlaps(table))
            })
            .collect();
        if lower.iter().any(|index| self.levels[level + 1][*index].is_busy) {
            return None;
        }
        let mut tables = Vec::new();
        for (level, indexes) in [(level, &upper), (level + 1, &lower)] {
            for index in indexes {
                let table = &mut self.levels[level][*index];
                table.is_busy = true;
                tables.push(*table);
            }
        }
        let inputs = tables.iter().map(|table| (table.file, self.shape.bytes(table.keys))).collect();
        let is_move = tables.len() == 1;
        let outputs = if is_move {
            vec![Table { is_busy: false, ..tables[0] }]
        } else {
            merged(&self.shape, &tables, file)
        };
        Some(Merge { level: level + 1, inputs, outputs, is_move })
    }

    /// The first idle table behind the last merge whose neighbours below are idle as well.
    fn next_of(&mut self, level: usize) -> Option<usize> {
        let (tables, below) = (&self.levels[level], &self.levels[level + 1]);
        let is_free = |table: &Table| {
            !table.is_busy && !below.iter().any(|other| other.is_busy && other.overlaps(table))
        };
        let cursor = self.cursors[level];
        let behind =
            (0..tables.len()).find(|index| tables[*index].from >= cursor && is_free(&tables[*index]));
        let next = behind.or_else(|| (0..tables.len()).find(|index| is_free(&tables[*index])))?;
        self.cursors[level] = tables[next].to;
        Some(next)
    }

    /// The idle table with the fewest keys of the level behind in its part of the key space, for each key of
    /// its own, whose neighbours there are idle.
    fn least_of(&self, level: usize) -> Option<usize> {
        let below = &self.levels[level + 1];
        let cost = |table: &Table| {
            let first = below.partition_point(|other| other.to <= table.from);
            let overlapping = below[first..].iter().take_while(|other| other.from < table.to);
            let mut keys = 0.0;
            for other in overlapping {
                if other.is_busy {
                    return None;
                }
                keys += other.keys;
            }
            Some(keys / table.keys)
        };
        let idle = self.levels[level].iter().enumerate().filter(|(_, table)| !table.is_busy);
        let costs = idle.filter_map(|(index, table)| Some((cost(table)?, index)));
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, index)| index)
    }

    /// A merge is complete.
    pub fn finish(&mut self, merge: &Merge) {
        for level in [merge.level - 1, merge.level] {
            self.levels[level].retain(|table| !merge.inputs.iter().any(|(file, _)| *file == table.file));
        }
        let level = &mut self.levels[merge.level];
        level.extend(&merge.outputs);
        level.sort_by(|a, b| a.from.total_cmp(&b.from));
        debug_assert!(level.is_sorted_by(|a, b| a.to <= b.from + 1e-9), "tables of a level overlap");
    }

    /// The file that has the newest entry of a key, and which byte of it; `draw` gives numbers from 0 to 1.
    pub fn find(&self, key: f64, draw: &mut impl FnMut() -> f64) -> Option<(u32, u64)> {
        let newest_first = self.levels[0].iter().rev().chain(self.levels[1..].iter().flatten());
        let mut covering = newest_first.filter(|table| table.from <= key && key < table.to);
        let table = covering.find(|table| draw() < self.shape.density(table))?;
        let bytes = self.shape.bytes(table.keys);
        let at = (key - table.from) / (table.to - table.from) * bytes as f64;
        Some((table.file, (at as u64).min(bytes.saturating_sub(1))))
    }
}

/// Tables of the usual size with the distinct keys of others.
fn merged(shape: &Shape, tables: &[Table], file: &mut impl FnMut() -> u32) -> Vec<Table> {
    let mut bounds: Vec<f64> = tables.iter().flat_map(|table| [table.from, table.to]).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let most = shape.table_bytes as f64 / shape.entry_bytes as f64;
    let mut outputs = Vec::new();
    let (mut start, mut keys) = (bounds[0], 0.0);
    for part in bounds.windows(2) {
        let (mut from, to) = (part[0], part[1]);
        let absent: f64 = tables
            .iter()
            .filter(|table| table.from <= from && to <= table.to)
            .map(|table| 1.0 - shape.density(table))
            .product();
        let density = (1.0 - absent) * shape.keys;
        while density > 0.0 && keys + density * (to - from) >= most {
            from += (most - keys) / density;
            outputs.push(Table::new(file(), (start, from), most));
            (start, keys) = (from, 0.0);
        }
        keys += density * (to - from);
    }
    let end = bounds[bounds.len() - 1];
    if keys >= 1.0 && start < end {
        outputs.push(Table::new(file(), (start, end), keys));
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        keys: 1e6,
        entry_bytes: 100,
        table_bytes: 1 << 20,
        base_bytes: 4 << 20,
        ratio: 4,
        trigger: 4,
        in_turn: true,
    };

    #[test]
    fn a_merge_keeps_each_key_once() {
        let mut next = 10;
        let mut file = || {
            next += 1;
            next
        };
        // Half of all keys, and of the first tenth another half.
        let tables = [Table::new(1, (0.0, 1.0), 5e5), Table::new(2, (0.0, 0.1), 5e4)];
        let outputs = merged(&SHAPE, &tables, &mut file);
        let keys: f64 = outputs.iter().map(|table| table.keys).sum();
        assert!((keys - (4.5e5 + 7.5e4)).abs() < 1.0, "{keys}");
        assert!(outputs.windows(2).all(|pair| (pair[0].to - pair[1].from).abs() < 1e-12));
        assert!((outputs[0].from, outputs[outputs.len() - 1].to) == (0.0, 1.0));
        // All but the last have the usual size; where keys are denser, tables are narrower.
        let full = 1_048_576.0 / 100.0;
        assert!(outputs[..outputs.len() - 1].iter().all(|table| (table.keys - full).abs() < 1e-6));
        assert!((outputs[0].to - full / 7.5e5).abs() < 1e-9, "{:?}", outputs[0]);
    }

    #[test]
    fn levels_stay_within_their_sizes_and_no_key_is_counted_twice() {
        for in_turn in [true, false] {
            levels_stay(Tree::new(Shape { in_turn, ..SHAPE }));
        }
    }

    fn levels_stay(mut tree: Tree) {
        let mut next = 0;
        let mut number = || {
            next += 1;
            next
        };
        for _ in 0..400 {
            tree.flushed(Table::new(number(), (0.0, 1.0), 1e4));
            while let Some(merge) = tree.pick(&mut number) {
                tree.finish(&merge);
            }
        }
        let bytes = |level: &Vec<Table>| level.iter().map(|table| SHAPE.bytes(table.keys)).sum::<u64>();
        let sizes: Vec<u64> = tree.levels().iter().map(bytes).collect();
        // 4 million writes to a million keys: nearly all of them are there, most of them in the last level.
        let most = [4 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20];
        assert!(sizes.iter().zip(most).all(|(size, most)| *size <= most + (1 << 20)), "{sizes:?}");
        assert!(sizes.len() == 5 && sizes[4] > 50 << 20 && sizes[4] <= 100_000_000, "{sizes:?}");
        for level in &tree.levels()[1..] {
            assert!(level.windows(2).all(|pair| pair[0].to <= pair[1].from + 1e-9));
        }
    }

    #[test]
    fn the_table_with_the_least_behind_it_is_merged_first() {
        let mut tree = Tree::new(Shape { in_turn: false, ..SHAPE });
        tree.levels = vec![
            Vec::new(),
            vec![
                Table::new(1, (0.0, 0.4), 1e4),
                Table::new(2, (0.4, 0.6), 1e4),
                Table::new(3, (0.6, 1.0), 9e3),
            ],
            vec![
                Table::new(4, (0.0, 0.3), 3e4),
                Table::new(5, (0.3, 0.5), 1e4),
                Table::new(6, (0.7, 1.0), 2e4),
            ],
        ];
        assert_eq!(tree.least_of(1), Some(1));
        tree.levels[2][1].is_busy = true;
        assert_eq!(tree.least_of(1), Some(2));
    }

    #[test]
    fn a_key_is_found_where_it_was_written_last() {
        let mut tree = Tree::new(SHAPE);
        tree.flushed(Table::new(1, (0.0, 1.0), 1e6));
        tree.flushed(Table::new(2, (0.0, 1.0), 5e5));
        assert_eq!(tree.find(0.25, &mut || 0.4), Some((2, 12_500_000)));
        assert_eq!(tree.find(0.25, &mut || 0.6), Some((1, 25_000_000)));
        let merge = tree.pick(&mut || 3);
        assert!(merge.is_none(), "two tables of four");
    }
}
