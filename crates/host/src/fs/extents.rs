//! Where the blocks of one file are, and which of them are dirty.

use std::collections::BTreeMap;

/// A piece of a range of file blocks: all mapped in one run, or all not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Blocks.
    pub(crate) len: u64,
    /// First block on the volume, if mapped.
    pub(crate) disk: Option<u64>,
}

/// File block -> run on the volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    runs: BTreeMap<u64, (u64, u64)>,
}

impl Extents {
    /// The piece that begins at a block, not past `end`.
    pub(crate) fn piece(&self, block: u64, end: u64) -> Piece {
        if let Some((&start, &(disk, len))) = self.runs.range(..=block).next_back()
            && block < start + len
        {
            return Piece { len: (start + len).min(end) - block, disk: Some(disk + block - start) };
        }
        let next = self.runs.range(block..).next().map_or(end, |(&start, _)| start.min(end));
        Piece { len: next - block, disk: None }
    }

    /// The block on the volume behind the one that holds the block before: where the file would best go on.
    pub(crate) fn goal(&self, block: u64) -> Option<u64> {
        let before = block.checked_sub(1)?;
        self.piece(before, block).disk.map(|disk| disk + 1)
    }

    /// Maps a run that was not mapped.
    pub(crate) fn insert(&mut self, block: u64, disk: u64, len: u64) {
        if let Some((_, (before_disk, before_len))) =
            self.runs.range_mut(..block).next_back().filter(|(start, (_, len))| **start + *len == block)
            && *before_disk + *before_len == disk
        {
            *before_len += len;
            return;
        }
        self.runs.insert(block, (disk, len));
    }

    /// Unmaps a range and hands out the runs that were mapped there.
    pub(crate) fn remove(&mut self, from: u64, end: u64, mut freed: impl FnMut(u64, u64)) {
        if let Some((&start, &(disk, len))) = self.runs.range(..from).next_back()
            && from < start + len
        {
            self.runs.insert(start, (disk, from - start));
            self.runs.insert(from, (disk + from - start, start + len - from));
        }
        while let Some((&start, &(disk, len))) = self.runs.range(from..).next()
            && start < end
        {
            self.runs.remove(&start);
            let cut = len.min(end - start);
            freed(disk, cut);
            if cut < len {
                self.runs.insert(start + cut, (disk + cut, len - cut));
            }
        }
    }
}

/// A set of blocks, as ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds a range; gives how many blocks are new.
    pub(crate) fn insert(&mut self, from: u64, end: u64) -> u64 {
        let (mut start, mut stop, mut known) = (from, end, 0);
        if let Some((&before, &before_end)) = self.ranges.range(..=from).next_back()
            && before_end >= from
        {
            if before_end >= end {
                return 0;
            }
            start = before;
        }
        while let Some((&other, &other_end)) = self.ranges.range(start..).next()
            && other <= stop
        {
            self.ranges.remove(&other);
            known += other_end - other;
            stop = stop.max(other_end);
        }
        self.ranges.insert(start, stop);
        stop - start - known
    }

    /// Takes the first range that lies in `from..end`, cut to it.
    pub(crate) fn take(&mut self, from: u64, end: u64) -> Option<(u64, u64)> {
        let before = self.ranges.range(..=from).next_back().filter(|(_, stop)| **stop > from);
        let (&start, &stop) = before.or_else(|| self.ranges.range(from..).next())?;
        let (cut, cut_end) = (start.max(from), stop.min(end));
        if cut >= cut_end {
            return None;
        }
        self.ranges.remove(&start);
        if start < cut {
            self.ranges.insert(start, cut);
        }
        if cut_end < stop {
            self.ranges.insert(cut_end, stop);
        }
        Some((cut, cut_end))
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn extents_agree_with_a_plain_array() {
        let (mut rng, mut extents) = (seeded(5), Extents::default());
        let mut model = [None; 300];
        let mut next_disk = 1000;
        for _ in 0..3000 {
            let from = below(&mut rng, 300);
            let end = (from + 1 + below(&mut rng, 30)).min(300);
            if below(&mut rng, 3) > 0 {
                let mut block = from;
                while block < end {
                    let piece = extents.piece(block, end);
                    if piece.disk.is_none() {
                        extents.insert(block, next_disk, piece.len);
                        for at in block..block + piece.len {
                            model[at as usize] = Some(next_disk + at - block);
                        }
                        next_disk += piece.len + below(&mut rng, 2);
                    }
                    block += piece.len;
                }
            } else {
                let mut freed = Vec::new();
                extents.remove(from, end, |disk, len| freed.extend(disk..disk + len));
                let want: Vec<_> =
                    model[from as usize..end as usize].iter_mut().filter_map(Option::take).collect();
                assert_eq!(freed, want);
            }
            for (block, disk) in model.iter().enumerate() {
                assert_eq!(extents.piece(block as u64, 300).disk, *disk);
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
                assert_eq!(ranges.insert(from, end), new);
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
