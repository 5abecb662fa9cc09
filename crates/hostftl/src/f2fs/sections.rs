//! Sections of the main area: which blocks are in use, by whom, and which sections are free.

use super::config::{LOGS_MAX, Layout};

/// No block, no section, no node.
pub(super) const NONE: u32 = u32::MAX;
/// Slot of an owner: the block is the node itself.
pub(super) const NODE: u32 = u32::MAX;
/// Most sections that a search for a victim looks at.
const SEARCH: usize = 4096;

/// Whose block it is: a pointer of a node, or ([`NODE`]) the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub node: u32,
    pub slot: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// A log writes to it.
    Open,
    /// Written by a log before.
    Used,
    /// Being cleaned.
    Victim,
    /// Nothing in it is valid, but the last checkpoint says otherwise.
    Prefree,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub state: State,
    /// Log that wrote it first.
    pub log: u8,
    pub is_touched: bool,
    pub valid: u32,
    /// When it was written last, in blocks written.
    pub written: u64,
    /// Place in the list of its log.
    listed: u32,
}

/// A log that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pub section: u32,
    /// Block of the section that is written next.
    pub next: u32,
    /// It fills holes.
    pub in_holes: bool,
}

/// What a victim is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The fewest valid blocks.
    Cleaning,
    /// Age against valid blocks.
    Background,
    /// Most holes.
    Holes,
}

pub(super) struct Sections {
    /// Bits of blocks, section by section in whole words.
    valid: Vec<u64>,
    /// Those of the last checkpoint.
    kept: Vec<u64>,
    words: usize,
    blocks: u32,
    pub owners: Vec<Owner>,
    pub infos: Vec<Info>,
    /// Blocks of sections that are valid or were at the last checkpoint: what cannot be written. By itself,
    /// since thousands are looked at for a section with holes.
    taken: Vec<u32>,
    pub logs: [Log; LOGS_MAX],
    /// Used sections by log, and where the last search in each ended.
    listed: [Vec<u32>; LOGS_MAX],
    searched: [usize; LOGS_MAX],
    pub free: u32,
    next_free: u32,
    /// Sections that the next checkpoint frees.
    pub prefree: Vec<u32>,
    /// Sections that changed since the last checkpoint.
    pub touched: Vec<u32>,
    /// Valid blocks of all.
    pub live: u64,
    /// Blocks written.
    pub now: u64,
}

impl Sections {
    pub fn new(layout: &Layout) -> Self {
        let (sections, blocks) = (layout.sections, layout.section_blocks);
        let words = (blocks as usize).div_ceil(64);
        let info = Info { state: State::Free, log: 0, is_touched: false, valid: 0, written: 0, listed: 0 };
        Self {
            valid: vec![0; words * sections as usize],
            kept: vec![0; words * sections as usize],
            words,
            blocks,
            owners: vec![Owner { node: NONE, slot: 0 }; sections as usize * blocks as usize],
            infos: vec![info; sections as usize],
            taken: vec![0; sections as usize],
            logs: [Log { section: NONE, next: 0, in_holes: false }; LOGS_MAX],
            listed: Default::default(),
            searched: [0; LOGS_MAX],
            free: sections,
            next_free: 0,
            prefree: Vec::new(),
            touched: Vec::new(),
            live: 0,
            now: 0,
        }
    }

    /// Word and bit of a block.
    #[inline]
    const fn bit(&self, place: u32) -> (usize, u64) {
        let (section, index) = (place / self.blocks, place % self.blocks);
        (section as usize * self.words + index as usize / 64, 1 << (index % 64))
    }

    pub fn is_valid(&self, place: u32) -> bool {
        let (word, bit) = self.bit(place);
        self.valid[word] & bit != 0
    }

    fn touch(&mut self, section: u32) {
        let info = &mut self.infos[section as usize];
        if !info.is_touched {
            info.is_touched = true;
            self.touched.push(section);
        }
    }

    /// The next free section after the last one that was taken.
    fn take_free(&mut self) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let count = self.infos.len() as u32;
        while self.infos[self.next_free as usize].state != State::Free {
            self.next_free = (self.next_free + 1) % count;
        }
        self.free -= 1;
        Some(self.next_free)
    }

    /// A log goes on in a free section.
    pub fn open_free(&mut self, log: usize) -> Option<()> {
        let section = self.take_free()?;
        let info = &mut self.infos[section as usize];
        (info.state, info.log) = (State::Open, log as u8);
        self.logs[log] = Log { section, next: 0, in_holes: false };
        Some(())
    }

    /// A log goes on in the holes of a used section, if any has one.
    pub fn open_holes(&mut self, log: usize) -> Option<()> {
        // Sections of the same log first, then those of others that hold the same kind of block.
        let half = LOGS_MAX / 2;
        let kind = log / half * half..(log / half + 1) * half;
        let section = std::iter::once(log)
            .chain(kind.filter(|other| *other != log))
            .find_map(|other| self.find(other..other + 1, Search::Holes))?;
        self.unlist(section, State::Open);
        self.logs[log] = Log { section, next: 0, in_holes: true };
        self.seek_hole(log);
        Some(())
    }

    /// Moves a log that fills holes on to the next one.
    fn seek_hole(&mut self, log: usize) {
        let Log { section, next, .. } = self.logs[log];
        let base = section as usize * self.words;
        let taken = |word: usize| self.valid[base + word] | self.kept[base + word];
        let mut at = next;
        while at < self.blocks {
            let free = !taken(at as usize / 64) >> (at % 64);
            if free != 0 {
                at += free.trailing_zeros();
                break;
            }
            at = (at / 64 + 1) * 64;
        }
        self.logs[log].next = at.min(self.blocks);
    }

    /// Blocks that a log can write next to each other, at most so many; the first of them.
    pub fn run(&self, log: usize, most: u32) -> (u32, u32) {
        let Log { section, next, in_holes } = self.logs[log];
        let mut len = most.min(self.blocks - next);
        if in_holes {
            let base = section as usize * self.words;
            let is_hole = |at: u32| {
                let word = base + at as usize / 64;
                (self.valid[word] | self.kept[word]) & (1 << (at % 64)) == 0
            };
            len = (next..next + len).take_while(|at| is_hole(*at)).count() as u32;
        }
        (section * self.blocks + next, len)
    }

    /// A log has written blocks, whose owners are set.
    pub fn written(&mut self, log: usize, blocks: u32) {
        let Log { section, next, in_holes } = self.logs[log];
        let base = section as usize * self.words;
        for at in next..next + blocks {
            self.valid[base + at as usize / 64] |= 1 << (at % 64);
        }
        self.now += u64::from(blocks);
        self.live += u64::from(blocks);
        let info = &mut self.infos[section as usize];
        info.valid += blocks;
        self.taken[section as usize] += blocks;
        info.written = self.now;
        self.touch(section);
        self.logs[log].next = next + blocks;
        if in_holes {
            self.seek_hole(log);
        }
    }

    /// Whether a log needs another section.
    pub const fn is_full(&self, log: usize) -> bool {
        self.logs[log].section == NONE || self.logs[log].next >= self.blocks
    }

    /// A log leaves its section.
    pub fn close(&mut self, log: usize) {
        let section = self.logs[log].section;
        if section != NONE {
            self.logs[log].section = NONE;
            self.settle(section);
        }
    }

    /// Where a section goes that is neither open nor a victim any more.
    pub fn settle(&mut self, section: u32) {
        let info = &mut self.infos[section as usize];
        if info.valid == 0 {
            info.state = State::Prefree;
            self.prefree.push(section);
            return;
        }
        let list = &mut self.listed[usize::from(info.log)];
        (info.state, info.listed) = (State::Used, list.len() as u32);
        list.push(section);
    }

    /// Takes a used section out of its list.
    pub fn unlist(&mut self, section: u32, state: State) {
        let info = &mut self.infos[section as usize];
        info.state = state;
        let (at, list) = (info.listed, &mut self.listed[usize::from(info.log)]);
        list.swap_remove(at as usize);
        if let Some(moved) = list.get(at as usize) {
            self.infos[*moved as usize].listed = at;
        }
    }

    /// A block is in use no more.
    #[inline]
    pub fn invalidate(&mut self, place: u32) {
        let (word, bit) = self.bit(place);
        debug_assert!(self.valid[word] & bit != 0, "block {place} was not in use");
        self.valid[word] &= !bit;
        let is_kept = self.kept[word] & bit != 0;
        let section = place / self.blocks;
        let info = &mut self.infos[section as usize];
        info.valid -= 1;
        self.taken[section as usize] -= u32::from(!is_kept);
        let is_empty = info.valid == 0 && info.state == State::Used;
        self.live -= 1;
        self.touch(section);
        if is_empty {
            self.unlist(section, State::Prefree);
            self.prefree.push(section);
        }
    }

    /// The best used section of some logs among those that the search looks at.
    pub fn find(&mut self, logs: std::ops::Range<usize>, search: Search) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        for log in logs {
            let list = &self.listed[log];
            if list.is_empty() {
                self.searched[log] = 0;
                continue;
            }
            let (from, count) = (self.searched[log] % list.len(), list.len().min(SEARCH));
            let (before, behind) = list.split_at(from);
            // Not a loop, which would ask after each section which of the two parts it is in.
            behind.iter().chain(before).take(count).for_each(|&section| {
                if let Some(cost) = self.cost(section, search)
                    && best.is_none_or(|(least, _)| cost < least)
                {
                    best = Some((cost, section));
                }
            });
            self.searched[log] = (from + count) % list.len();
        }
        best.map(|(_, section)| section)
    }

    /// What it costs to take a section; nothing is gained from one without a value.
    fn cost(&self, section: u32, search: Search) -> Option<u64> {
        let taken = self.taken[section as usize];
        if search == Search::Holes {
            return (taken < self.blocks).then_some(taken.into());
        }
        let info = &self.infos[section as usize];
        match search {
            _ if info.valid == self.blocks => None,
            Search::Background => {
                // Benefit over cost is (1 - u) * age / (1 + u), in percent of use.
                let used = u64::from(info.valid) * 100 / u64::from(self.blocks);
                let age = (self.now - info.written) * 100 / self.now.max(1);
                Some(u64::MAX - (100 - used) * age * 1000 / (100 + used))
            }
            _ => Some(info.valid.into()),
        }
    }

    /// Runs of valid blocks of a section.
    pub fn valid_runs(&self, section: u32) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let first = section * self.blocks;
        for place in first..first + self.blocks {
            if !self.is_valid(place) {
                continue;
            }
            match runs.last_mut() {
                Some((start, len)) if *start + *len == place => *len += 1,
                _ => runs.push((place, 1)),
            }
        }
        runs
    }

    /// A checkpoint is durable: what was in use before may be written again. Gives `freed` the runs of blocks
    /// that can now be written and could not before, except of sections that are free as a whole.
    pub fn checkpoint(&mut self, mut freed: impl FnMut(u32, u32)) {
        for section in std::mem::take(&mut self.touched) {
            let base = section as usize * self.words;
            let is_whole = self.infos[section as usize].state == State::Prefree;
            let mut run = (0, 0);
            for word in base..base + self.words {
                let mut gone = self.kept[word] & !self.valid[word];
                self.kept[word] = self.valid[word];
                while gone != 0 && !is_whole {
                    let place = section * self.blocks + (word - base) as u32 * 64 + gone.trailing_zeros();
                    gone &= gone - 1;
                    if run.0 + run.1 == place {
                        run.1 += 1;
                        continue;
                    }
                    if run.1 > 0 {
                        freed(run.0, run.1);
                    }
                    run = (place, 1);
                }
            }
            if run.1 > 0 {
                freed(run.0, run.1);
            }
            let info = &mut self.infos[section as usize];
            (self.taken[section as usize], info.is_touched) = (info.valid, false);
        }
    }

    /// The sections that are free from now on.
    pub fn take_prefree(&mut self) -> Vec<u32> {
        let freed = std::mem::take(&mut self.prefree);
        for &section in &freed {
            self.infos[section as usize].state = State::Free;
        }
        self.free += freed.len() as u32;
        freed
    }

    /// Blocks of sections that hold data: of those that logs write, what was written.
    pub fn used_blocks(&self) -> u64 {
        let of = |(section, info): (usize, &Info)| {
            let log = self.logs.iter().find(|log| log.section as usize == section);
            match (info.state, log) {
                (State::Free, _) => 0,
                (_, Some(log)) if !log.in_holes => u64::from(log.next),
                _ => u64::from(self.blocks),
            }
        };
        self.infos.iter().enumerate().map(of).sum()
    }

    /// Panics unless counts, lists and bits agree.
    pub fn check(&self) {
        let mut live = 0;
        for (section, info) in (0..).zip(&self.infos) {
            let words = section as usize * self.words..(section as usize + 1) * self.words;
            let ones =
                |bits: &dyn Fn(usize) -> u64| words.clone().map(|at| bits(at).count_ones()).sum::<u32>();
            assert_eq!(info.valid, ones(&|at| self.valid[at]), "valid blocks of section {section}");
            let taken = ones(&|at| self.valid[at] | self.kept[at]);
            assert_eq!(
                self.taken[section as usize], taken,
                "blocks of section {section} that cannot be written"
            );
            live += u64::from(info.valid);
            let is_open = self.logs.iter().filter(|log| log.section == section).count();
            assert_eq!(is_open, usize::from(info.state == State::Open), "logs in section {section}");
            let is_listed = self.listed[usize::from(info.log)].get(info.listed as usize) == Some(&section);
            assert!(info.state != State::Used || is_listed, "section {section} is in no list");
            assert!(info.state != State::Free || taken == 0, "free section {section} is in use");
        }
        assert_eq!(live, self.live, "valid blocks of all sections");
        let count = |state| self.infos.iter().filter(|info| info.state == state).count();
        assert_eq!(count(State::Free), self.free as usize, "free sections");
        assert_eq!(count(State::Prefree), self.prefree.len(), "sections that a checkpoint frees");
        assert_eq!(count(State::Used), self.listed.iter().map(Vec::len).sum::<usize>(), "used sections");
    }
}
