//! Free space of the volume, in blocks of 4 KiB, and where a new extent goes.

use std::collections::{BTreeMap, BTreeSet};

/// Where a run of blocks is looked for when the file's own end cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The lowest run that is long enough.
    First,
    /// The next run that is long enough behind the one found last, going round.
    Next,
    /// The first run that is long enough in the allocation group of the file's directory or behind it, going
    /// round: one of four groups, as XFS has them.
    Groups,
}

/// Free runs, by start and by length.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    runs: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    fit: Fit,
    /// Extents of so many blocks begin at a multiple of them.
    align: u64,
    /// Where the search begins.
    rotor: u64,
    blocks: u64,
    pub(crate) free: u64,
}

/// Allocation groups of XFS on a single drive.
const GROUPS: u64 = 4;

/// Runs that are looked at before the longest one is taken instead: keeps a badly fragmented volume from
/// costing a scan of all its runs for every extent.
const LOOKED_AT: usize = 4096;

impl Space {
    pub(crate) fn new(blocks: u64, fit: Fit, align: u64) -> Self {
        let (runs, by_length) = (BTreeMap::new(), BTreeSet::new());
        let mut space = Self { runs, by_length, fit, align: align.max(1), rotor: 0, blocks, free: blocks };
        if blocks > 0 {
            space.put(0, blocks);
        }
        space
    }

    fn put(&mut self, start: u64, len: u64) {
        self.runs.insert(start, len);
        self.by_length.insert((len, start));
    }

    fn drop_run(&mut self, start: u64) -> u64 {
        let len = self.runs.remove(&start).expect("the run is free");
        self.by_length.remove(&(len, start));
        len
    }

    /// Where an extent of so many blocks begins in a run that begins at `start`.
    const fn aligned(&self, start: u64, want: u64) -> u64 {
        if want < self.align { start } else { start.next_multiple_of(self.align) }
    }

    /// Takes a run of 1 to `want` blocks, from `goal` on if it is free: start and length. `None` when full.
    pub(crate) fn allocate(&mut self, goal: Option<u64>, want: u64) -> Option<(u64, u64)> {
        if let Some(goal) = goal
            && let Some((&start, &len)) = self.runs.range(..=goal).next_back()
            && goal < start + len
        {
            return Some(self.take(start, goal, want));
        }
        // A group begins inside a run.
        if self.fit == Fit::Groups
            && let Some((&start, &len)) = self.runs.range(..self.rotor).next_back()
            && self.aligned(self.rotor, want) + want <= start + len
        {
            return Some(self.take(start, self.aligned(self.rotor, want), want));
        }
        let mut runs = self.runs.range(self.rotor..).chain(self.runs.range(..self.rotor)).take(LOOKED_AT);
        let fits = |start: u64, len: u64| self.aligned(start, want) + want <= start + len;
        let found = runs.find(|&(&start, &len)| fits(start, len)).map(|(&start, _)| start);
        let start = found.or_else(|| {
            // The longest run, the lowest of equals.
            let &(longest, _) = self.by_length.last()?;
            self.by_length.range((longest, 0)..).next().map(|&(_, start)| start)
        })?;
        let at = self.aligned(start, want);
        let at = if at < start + self.runs[&start] { at } else { start };
        let taken = self.take(start, at, want);
        if self.fit == Fit::Next {
            self.rotor = taken.0 + taken.1;
        }
        Some(taken)
    }

    /// What is allocated next is for a file of this directory.
    pub(crate) const fn prefer(&mut self, directory: u64) {
        if matches!(self.fit, Fit::Groups) {
            self.rotor = directory % GROUPS * (self.blocks / GROUPS);
        }
    }

    /// Takes blocks out of the run that begins at `start`.
    fn take(&mut self, start: u64, at: u64, want: u64) -> (u64, u64) {
        let len = self.drop_run(start);
        let got = want.min(start + len - at);
        if at > start {
            self.put(start, at - start);
        }
        if at + got < start + len {
            self.put(at + got, start + len - at - got);
        }
        self.free -= got;
        (at, got)
    }

    /// Gives blocks back.
    pub(crate) fn release(&mut self, start: u64, len: u64) {
        assert!(len > 0, "a run of no blocks at {start}");
        self.free += len;
        let (mut start, mut len) = (start, len);
        if let Some((&before, &before_len)) = self.runs.range(..start).next_back() {
            assert!(before + before_len <= start, "block {start} is free already");
            if before + before_len == start {
                self.drop_run(before);
                (start, len) = (before, before_len + len);
            }
        }
        if let Some((&after, &after_len)) = self.runs.range(start..).next() {
            assert!(start + len <= after, "block {after} is free already");
            if start + len == after {
                self.drop_run(after);
                len += after_len;
            }
        }
        self.put(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_fit_takes_the_lowest_run_that_is_long_enough() {
        let mut space = Space::new(100, Fit::First, 1);
        assert_eq!(space.allocate(None, 100), Some((0, 100)));
        assert_eq!(space.allocate(None, 1), None);
        for (start, len) in [(10, 2), (20, 5), (40, 5)] {
            space.release(start, len);
        }
        assert_eq!(space.allocate(None, 4), Some((20, 4)));
        assert_eq!(space.allocate(None, 2), Some((10, 2)));
        // Nothing is long enough: the longest.
        assert_eq!(space.allocate(None, 50), Some((40, 5)));
        assert_eq!((space.allocate(None, 2), space.free), (Some((24, 1)), 0));
    }

    #[test]
    fn next_fit_goes_round() {
        let mut space = Space::new(30, Fit::Next, 1);
        assert_eq!(space.allocate(None, 10), Some((0, 10)));
        assert_eq!(space.allocate(None, 10), Some((10, 10)));
        space.release(0, 10);
        assert_eq!(space.allocate(None, 5), Some((20, 5)));
        assert_eq!(space.allocate(None, 5), Some((25, 5)));
        assert_eq!(space.allocate(None, 5), Some((0, 5)));
    }

    #[test]
    fn groups_go_round_from_that_of_the_directory() {
        let mut space = Space::new(40, Fit::Groups, 1);
        let mut of = |directory: u64, want: u64| {
            space.prefer(directory);
            space.allocate(None, want)
        };
        assert_eq!([of(1, 6), of(5, 6), of(0, 4)], [Some((10, 6)), Some((16, 6)), Some((0, 4))]);
        assert_eq!([of(3, 12), of(3, 12)], [Some((22, 12)), Some((4, 6))]);
    }

    #[test]
    fn extents_of_a_stripe_begin_at_one() {
        let mut space = Space::new(40, Fit::First, 4);
        assert_eq!(space.allocate(None, 2), Some((0, 2)));
        assert_eq!(space.allocate(None, 6), Some((4, 6)));
        assert_eq!(space.allocate(None, 2), Some((2, 2)));
        assert_eq!(space.allocate(None, 40), Some((12, 28)));
        // Nothing begins at a stripe any more.
        assert_eq!((space.allocate(None, 4), space.free), (Some((10, 2)), 0));
    }

    #[test]
    fn a_goal_is_continued_and_runs_grow_together_again() {
        let mut space = Space::new(30, Fit::First, 1);
        assert_eq!(space.allocate(Some(7), 3), Some((7, 3)));
        assert_eq!(space.allocate(Some(7), 3), Some((0, 3)));
        space.release(7, 3);
        space.release(0, 3);
        assert_eq!(space.allocate(None, 30), Some((0, 30)));
    }

    #[test]
    fn agrees_with_a_bitmap_under_random_use() {
        use nandscape_core::rng::{below, seeded};
        for (fit, align) in [(Fit::First, 1), (Fit::Next, 1), (Fit::Groups, 4), (Fit::First, 4)] {
            let (mut rng, mut space) = (seeded(3), Space::new(500, fit, align));
            let (mut used, mut held) = ([false; 500], Vec::new());
            for _ in 0..4000 {
                if below(&mut rng, 2) == 0 {
                    let goal = (below(&mut rng, 2) == 0).then(|| below(&mut rng, 500));
                    let Some((start, len)) = space.allocate(goal, 1 + below(&mut rng, 40)) else { continue };
                    for block in &mut used[start as usize..(start + len) as usize] {
                        assert!(!std::mem::replace(block, true));
                    }
                    held.push((start, len));
                } else if !held.is_empty() {
                    let (start, len) = held.swap_remove(below(&mut rng, held.len() as u64) as usize);
                    space.release(start, len);
                    used[start as usize..(start + len) as usize].fill(false);
                }
                assert_eq!(space.free, used.iter().filter(|used| !**used).count() as u64);
            }
        }
    }
}
