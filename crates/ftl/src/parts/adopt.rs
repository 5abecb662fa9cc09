//! Superblocks as a start from flash finds them.
//!
//! The journal tells where the newest version of every page is. A logical superblock that lies in one
//! superblock, or in one with every page in place and a log, goes on as it was. What a loss of power left in
//! the middle of a remap or merge lies in more. Of those, one whose newest pages are all copies of others
//! that are still there is thrown away (it is dead, and erased when its space is needed); if that does not
//! do, everything is copied to an erased superblock. A cut in the middle of that leaves a superblock that can
//! be thrown away, so however often it happens no space is used up. A superblock with a bad block never goes
//! on: what its other blocks still hold is copied.

use crate::error::FtlBuildError;
use crate::parts::base::Base;
use crate::parts::superblocks::{NONE, Superblocks};
use nandscape_core::journal::prefer;
use nandscape_core::{
    Cause, FlashDevice, FlashError, FlashResult, FtlError, FtlResult, Info, Issue, Lpn, Ppn, SimTime,
};

/// Where a logical superblock lies; `NONE` for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its pages here are in place.
    pub(crate) data: u32,
    /// Pages here are anywhere.
    pub(crate) log: u32,
}

const NOWHERE: Place = Place { data: NONE, log: NONE };

/// Why a start leaves the device read-only.
const STRANDED: &str = "too few superblocks are left to put together what a loss of power left";

/// [`nandscape_core::Oob::stream`] of a log superblock.
pub(crate) const LOG: u16 = 1;

/// Superblocks of one logical superblock, with the places that the journal gave.
struct Adoption<'a, D> {
    pool: &'a mut Superblocks,
    base: &'a mut Base<D>,
    /// Superblock and page in it of the newest version, by logical page.
    newest: Vec<(u32, u32)>,
    logs: u32,
}

/// Marks what is live and gives where each logical superblock lies, with at most `logs` logs.
pub(crate) fn adopt<D: FlashDevice>(
    pool: &mut Superblocks,
    base: &mut Base<D>,
    info: &'static Info,
    logs: u32,
) -> Result<Vec<Place>, FtlBuildError> {
    let logical = pool.logical;
    let mut places = vec![NOWHERE; logical as usize];
    let is_used = |block| base.device.write_pointer(block) > 0;
    let used: Vec<u32> =
        (0..pool.layout.superblocks()).filter(|s| pool.layout.blocks(*s).any(is_used)).collect();
    if used.is_empty() {
        return Ok(places);
    }
    let mut newest = vec![(NONE, 0); base.logical_pages as usize];
    base.each_newest(info, |lpn, page| newest[lpn.index()] = pool.layout.locate(page))?;
    for (superblock, index) in newest.iter().filter(|(superblock, _)| *superblock != NONE) {
        pool.set_live(*superblock, *index);
        base.stats.live_pages += 1;
    }
    for superblock in used {
        pool.take_over(superblock);
    }
    let mut adoption = Adoption { pool, base, newest, logs };
    for logical in 0..logical {
        let place = adoption.resolve(logical);
        places[logical as usize] = place.map_err(|error| FtlBuildError::start_failed(info.name, &error))?;
    }
    Ok(places)
}

impl<D: FlashDevice> Adoption<'_, D> {
    fn lpns(&self, logical: u32) -> std::ops::Range<usize> {
        let first = (logical * self.pool.pages) as usize;
        first..first + self.pool.pages as usize
    }

    /// The superblocks that hold newest pages, each once.
    fn holders(&self, logical: u32) -> Vec<u32> {
        let mut holders: Vec<u32> =
            self.newest[self.lpns(logical)].iter().map(|(holder, _)| *holder).collect();
        holders.retain(|holder| *holder != NONE);
        holders.sort_unstable();
        holders.dedup();
        holders
    }

    fn resolve(&mut self, logical: u32) -> FtlResult<Place> {
        let mut holders = self.holders(logical);
        if holders.is_empty() {
            return Ok(NOWHERE);
        }
        if holders.len() > 1 {
            match self.throw_away(logical, &holders) {
                Err(FtlError::Flash(FlashError::ReadOnly { .. })) => {
                    self.strand(logical, &holders);
                    return Ok(NOWHERE);
                }
                thrown => {
                    if thrown? {
                        holders = self.holders(logical);
                    }
                }
            }
        }
        let is_lost =
            |holder: &u32| self.pool.layout.blocks(*holder).any(|block| self.base.device.is_bad(block));
        if !holders.iter().any(is_lost)
            && let Some(place) = self.as_it_is(logical, &holders)?
        {
            let log = u32::from(place.log != NONE);
            assert!(self.logs >= log, "superblock {logical} at {place:?} has a log, and all are used");
            self.logs -= log;
            return Ok(place);
        }
        let data = self.put_together(logical, &holders)?;
        Ok(Place { data, ..NOWHERE })
    }

    /// Whether the newest pages in a superblock are all in place.
    fn is_in_place(&self, logical: u32, holder: u32) -> bool {
        let newest = self.newest[self.lpns(logical)].iter().enumerate();
        newest.filter(|(_, (s, _))| *s == holder).all(|(index, (_, page))| *page == index as u32)
    }

    /// One past the last programmed page.
    fn next(&self, superblock: u32) -> u32 {
        next_of_log(self.pool, self.base, superblock)
    }

    /// Whether a superblock was written as a log, as any of its newest pages says.
    fn is_log(&mut self, logical: u32, holder: u32) -> FtlResult<bool> {
        let index =
            self.newest[self.lpns(logical)].iter().find(|(s, _)| *s == holder).map(|(_, index)| *index);
        let page = self.pool.page(holder, index.expect("a holder holds a page"));
        Ok(self.base.oob(page)?.is_some_and(|oob| oob.stream & LOG != 0))
    }

    /// One superblock in place, or one log, or both.
    fn as_it_is(&mut self, logical: u32, holders: &[u32]) -> FtlResult<Option<Place>> {
        let mut logs = Vec::new();
        let mut rest = Vec::new();
        for holder in holders {
            // A log that became the data superblock is full, and every page is in place.
            let is_log = self.is_log(logical, *holder)?
                && !(self.is_in_place(logical, *holder) && self.next(*holder) == self.pool.pages);
            if is_log { logs.push(*holder) } else { rest.push(*holder) }
        }
        let has_slot = self.logs > 0;
        Ok(match (rest[..].first(), logs[..].first(), holders.len()) {
            (Some(data), None, 1) if self.is_in_place(logical, *data) => {
                Some(Place { data: *data, log: NONE })
            }
            (None, Some(log), 1) if has_slot => Some(Place { data: NONE, log: *log }),
            (Some(data), Some(log), 2) if has_slot && self.is_in_place(logical, *data) => {
                Some(Place { data: *data, log: *log })
            }
            _ => None,
        })
    }

    /// Holds to the other copies wherever all pages of a superblock have one; whether there was one.
    fn throw_away(&mut self, logical: u32, holders: &[u32]) -> FtlResult<bool> {
        let range = self.lpns(logical);
        // For each holder, the page in it that is equal to the newest version of each page.
        let mut equal = vec![vec![NONE; range.len()]; holders.len()];
        let mut versions = vec![None; range.len()];
        for (index, (holder, page)) in self.newest[range.clone()].iter().enumerate() {
            if *holder != NONE {
                versions[index] = self.base.oob(self.pool.page(*holder, *page))?;
            }
        }
        for (number, holder) in holders.iter().enumerate() {
            for page in 0..self.pool.pages {
                let ppn = self.pool.page(*holder, page);
                if !self.base.device.is_programmed(ppn) {
                    continue;
                }
                let Some(oob) = self.base.oob(ppn)? else { continue };
                if !range.contains(&oob.lpn.index()) {
                    continue;
                }
                let index = oob.lpn.index() - range.start;
                if versions[index].is_some_and(|newest| Base::<D>::is_same_version(&newest, &oob)) {
                    equal[number][index] = page;
                }
            }
        }
        // What covers least goes first, so that a complete target stays.
        let mut order: Vec<usize> = (0..holders.len()).collect();
        order.sort_by_key(|number| equal[*number].iter().filter(|page| **page != NONE).count());
        let mut gone = Vec::new();
        for number in order {
            let others: Vec<usize> =
                (0..holders.len()).filter(|other| *other != number && !gone.contains(other)).collect();
            let held = range.clone().filter(|lpn| self.newest[*lpn].0 == holders[number]);
            let moves: Option<Vec<(usize, usize)>> = held
                .map(|lpn| {
                    let other = others.iter().find(|other| equal[**other][lpn - range.start] != NONE)?;
                    Some((lpn, *other))
                })
                .collect();
            let Some(moves) = moves else { continue };
            for (lpn, other) in moves {
                self.hold_to(lpn, holders[other], equal[other][lpn - range.start])?;
            }
            gone.push(number);
        }
        Ok(!gone.is_empty())
    }

    fn hold_to(&mut self, lpn: usize, superblock: u32, page: u32) -> FlashResult<()> {
        prefer(&mut self.base.device, Lpn(lpn as u32), self.pool.page(superblock, page))?;
        let (old, old_page) = std::mem::replace(&mut self.newest[lpn], (superblock, page));
        self.pool.set_live(superblock, page);
        self.pool.set_dead(old, old_page);
        Ok(())
    }

    /// Copies the newest pages to an erased superblock, in place.
    fn put_together(&mut self, logical: u32, holders: &[u32]) -> FtlResult<u32> {
        loop {
            let target = match self.pool.allocate_but(0, self.base, SimTime::ZERO) {
                Err(FtlError::Flash(FlashError::ReadOnly { .. })) => None,
                allocated => allocated?.0,
            };
            let Some(target) = target else {
                self.strand(logical, holders);
                return Ok(NONE);
            };
            match self.copy_to(logical, target) {
                Ok(()) => {
                    for holder in holders {
                        self.pool.drop_all(*holder);
                    }
                    self.pool.release_abandoned();
                    return Ok(target);
                }
                Err(FtlError::Flash(FlashError::ProgramFailed { page })) => {
                    self.pool.note_failure(self.base, page);
                    self.pool.abandon(target);
                }
                Err(FtlError::Flash(FlashError::ReadOnly { .. })) => {
                    self.pool.abandon(target);
                    self.strand(logical, holders);
                    return Ok(NONE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn copy_to(&mut self, logical: u32, target: u32) -> FtlResult<()> {
        for lpn in self.lpns(logical) {
            let (holder, page) = self.newest[lpn];
            if holder == NONE {
                continue;
            }
            let index = lpn as u32 % self.pool.pages;
            let (from, to) = (self.pool.page(holder, page), self.pool.target(target, index, 0));
            self.base.copy(from, to, Lpn(lpn as u32), Issue::new(SimTime::ZERO, Cause::Merge))?;
            self.pool.set_live(target, index);
        }
        Ok(())
    }

    /// There is no erased superblock: from now on everything is read where it lies.
    fn strand(&mut self, logical: u32, holders: &[u32]) {
        self.base.read_only = Some(STRANDED);
        for lpn in self.lpns(logical) {
            let (holder, page) = self.newest[lpn];
            if holder != NONE {
                let ppn: Ppn = self.pool.page(holder, page);
                let other = self.pool.stranded.insert(Lpn(lpn as u32), ppn);
                assert_eq!(other, None, "where {lpn} was stranded before {ppn:?}");
            }
        }
        for holder in holders {
            self.pool.drop_all(*holder);
        }
    }
}

/// One past the last programmed page of a superblock, where a log goes on.
pub(crate) fn next_of_log<D: FlashDevice>(pool: &Superblocks, base: &Base<D>, superblock: u32) -> u32 {
    let programmed = |index: &u32| base.device.is_programmed(pool.page(superblock, *index));
    (0..pool.pages).rev().find(programmed).map_or(0, |index| index + 1)
}
