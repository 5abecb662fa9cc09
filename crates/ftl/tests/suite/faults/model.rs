//! A host that knows what it wrote, and which of it lies on a damaged place.

use crate::faults::medium::Held;
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{Extent, FlashError, Ftl, FtlError, Hint, Lpn, SimTime};
use nandscape_media::MediumState as _;

pub const SECTOR: u64 = 512;

/// What the host knows of a logical page.
#[derive(Clone, Copy, Default)]
struct Page {
    /// Its data was hit since it was written, so an error is allowed.
    was_hit: bool,
    /// It gave an error, or lay on a bad place: it must not come back.
    is_lost: bool,
}

/// What a run came across, so that a test can say that it tried something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub scenarios: u64,
    pub lost: u64,
    pub healed: u64,
    pub read_only: u64,
    pub collections: u64,
    pub lost_at_end: u64,
    pub restarts: u64,
    pub checksum_errors: u64,
    pub programs_failed: u64,
    pub erases_failed: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.scenarios += other.scenarios;
        self.lost += other.lost;
        self.healed += other.healed;
        self.read_only += other.read_only;
        self.collections += other.collections;
        self.lost_at_end += other.lost_at_end;
        self.restarts += other.restarts;
        self.checksum_errors += other.checksum_errors;
        self.programs_failed += other.programs_failed;
        self.erases_failed += other.erases_failed;
    }
}

/// `Ok(false)` where the device is read-only.
fn outcome(what: &str, result: Result<(), FtlError>) -> Result<bool, String> {
    match result {
        Ok(()) => Ok(true),
        Err(FtlError::ReadOnly { .. } | FtlError::Flash(FlashError::ReadOnly { .. })) => Ok(false),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

pub struct Host {
    pub ftl: Box<dyn Ftl + Send>,
    held: Held,
    page_bytes: u64,
    /// Of each sector, 0 where there is nothing.
    versions: Vec<u64>,
    pages: Vec<Page>,
    next: u64,
    /// When the last answer came.
    pub now: SimTime,
    pub seen: Seen,
}

fn fill(data: &mut [u8], sector: u64, version: u64) {
    let word = if version == 0 { 0 } else { version << 24 | sector };
    data.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&word.to_le_bytes()));
}

impl Host {
    pub fn new(ftl: Box<dyn Ftl + Send>, held: Held) -> Self {
        let page_bytes = u64::from(ftl.device().geometry().page_bytes);
        let pages = ftl.logical_pages();
        Self {
            versions: vec![0; (pages * page_bytes / SECTOR) as usize],
            pages: vec![Page::default(); pages as usize],
            ftl,
            held,
            page_bytes,
            next: 1,
            now: SimTime::ZERO,
            seen: Seen::default(),
        }
    }

    fn per_page(&self) -> u64 {
        self.page_bytes / SECTOR
    }

    fn expected(&self, extent: Extent) -> Vec<u8> {
        let mut data = vec![0; extent.len as usize];
        for (part, sector) in data.chunks_exact_mut(SECTOR as usize).zip(extent.offset / SECTOR..) {
            fill(part, sector, self.versions[sector as usize]);
        }
        data
    }

    /// Takes over what faults hit since the last call.
    fn learn(&mut self) {
        let (hits, healed) = self.held.state().take_events();
        for lpn in hits {
            if let Some(page) = self.pages.get_mut(lpn.index()) {
                page.was_hit = true;
            }
        }
        for lpn in healed {
            if let Some(page) = self.pages.get_mut(lpn.index()) {
                page.is_lost = false;
            }
        }
        for lpn in (0..self.pages.len() as u32).map(Lpn) {
            let is_bad = self.ftl.lookup(lpn).is_some_and(|place| self.held.state().is_bad(place));
            self.pages[lpn.index()].is_lost |= is_bad;
        }
    }

    fn token(&mut self, result: Result<nandscape_core::Token, FtlError>) -> Result<(), FtlError> {
        let token = result?;
        let done = self.ftl.device().completion(token).expect("serial timing knows");
        self.now = self.now.max(done);
        Ok(())
    }

    fn extent_of(&self, lpn: usize) -> Extent {
        Extent::new(lpn as u64 * self.page_bytes, self.page_bytes)
    }

    /// Every page: its data, or an error where and only where it is lost.
    pub fn check(&mut self) -> Result<(), String> {
        self.learn();
        for lpn in 0..self.pages.len() {
            let extent = self.extent_of(lpn);
            let mut data = vec![0xEE; extent.len as usize];
            let result = self.ftl.read(extent, Some(&mut data), self.now);
            let result = self.token(result);
            self.learn();
            let page = self.pages[lpn];
            match result {
                Ok(()) if page.is_lost => {
                    return Err(format!(
                        "page {lpn} is damaged and was read as good, at {:?}",
                        self.ftl.lookup(Lpn(lpn as u32))
                    ));
                }
                Ok(()) if data != self.expected(extent) => {
                    let word = u64::from_le_bytes(data[..8].try_into().expect("eight bytes"));
                    return Err(format!(
                        "page {lpn} reads as version {} of sector {}, and holds {:?}",
                        word >> 24,
                        word & 0xFF_FFFF,
                        &self.versions[lpn * self.per_page() as usize..][..self.per_page() as usize]
                    ));
                }
                Ok(()) => {}
                Err(FtlError::Flash(FlashError::Uncorrectable { .. })) if page.was_hit => {
                    self.seen.lost += u64::from(!page.is_lost);
                    self.pages[lpn].is_lost = true;
                }
                Err(error) => return Err(format!("page {lpn}, which nothing happened to: {error}")),
            }
        }
        let state = self.held.state();
        if let Some(page) = state.groundless().first() {
            return Err(format!("flash page {} gave an error, and nothing is wrong with it", page.0));
        }
        drop(state);
        self.counters_agree()
    }

    fn counters_agree(&self) -> Result<(), String> {
        let device = self.ftl.device();
        let (counted, refused) = (device.tally().health.checksum_errors, self.held.state().refused());
        if counted != refused {
            return Err(format!("{counted} checksum errors are counted, {refused} reads met one"));
        }
        let (above, below) = (device.counters().total(), device.tally().totals);
        if above != below {
            return Err(format!("{above:?} counted above the medium, {below:?} in it"));
        }
        Ok(())
    }

    /// A random request; `Ok(false)` where the device is read-only and says so.
    pub fn step(&mut self, rng: &mut Xoshiro256PlusPlus) -> Result<bool, String> {
        let sectors = self.versions.len() as u64;
        let count = 1 + below(rng, 6);
        let first = below(rng, sectors - count + 1);
        let extent = Extent::new(first * SECTOR, count * SECTOR);
        match below(rng, 12) {
            0 => self.trim(extent),
            1 => {
                let flushed = self.ftl.flush(self.now);
                let flushed = self.token(flushed);
                outcome("flush", flushed)
            }
            2 | 3 => self.read(extent),
            _ => self.write(extent),
        }
    }

    fn pages_of(&self, extent: Extent) -> std::ops::Range<usize> {
        (extent.offset / self.page_bytes) as usize..extent.end().div_ceil(self.page_bytes) as usize
    }

    /// Pages of which the extent covers every sector that holds something.
    fn covered_pages(&self, extent: Extent) -> Vec<usize> {
        let is_outside = |sector: &u64| !(extent.offset..extent.end()).contains(&(sector * SECTOR));
        let is_covered = |lpn: &usize| {
            let page = self.extent_of(*lpn);
            let mut outside = (page.offset / SECTOR..page.end() / SECTOR).filter(is_outside);
            outside.all(|sector| self.versions[sector as usize] == 0)
        };
        self.pages_of(extent).filter(is_covered).collect()
    }

    fn whole_pages(&self, extent: Extent) -> Vec<usize> {
        self.pages_of(extent).filter(|lpn| self.is_whole(extent, *lpn)).collect()
    }

    fn is_whole(&self, extent: Extent, lpn: usize) -> bool {
        let page = self.extent_of(lpn);
        extent.offset <= page.offset && page.end() <= extent.end()
    }

    fn read(&mut self, extent: Extent) -> Result<bool, String> {
        let mut data = vec![0xEE; extent.len as usize];
        let result = self.ftl.read(extent, Some(&mut data), self.now);
        let result = self.token(result);
        self.learn();
        let lost = self.pages_of(extent).find(|lpn| self.pages[*lpn].was_hit);
        match result {
            Ok(()) if data != self.expected(extent) => Err(format!("{extent} reads as something else")),
            Ok(()) => match self.pages_of(extent).find(|lpn| self.pages[*lpn].is_lost) {
                // A part of a page may be whole where another is not.
                Some(lpn) if self.is_whole(extent, lpn) => {
                    Err(format!("{extent} was read, page {lpn} is damaged"))
                }
                _ => Ok(true),
            },
            Err(FtlError::Flash(FlashError::Uncorrectable { .. })) if lost.is_some() => Ok(true),
            Err(error) => Err(format!("read of {extent}, where nothing happened: {error}")),
        }
    }

    fn write(&mut self, extent: Extent) -> Result<bool, String> {
        let version = self.next;
        self.next += 1;
        let sectors = extent.offset / SECTOR..extent.end() / SECTOR;
        let mut data = vec![0; extent.len as usize];
        for (part, sector) in data.chunks_exact_mut(SECTOR as usize).zip(sectors.clone()) {
            fill(part, sector, version);
        }
        self.learn();
        // What is hit from now on is hit again or for the first time; what was hit before is no matter where
        // it is written anew.
        let before = self.pages.clone();
        for lpn in self.whole_pages(extent) {
            self.pages[lpn] = Page::default();
        }
        // A layer that knows which sectors hold something need not read the others.
        for lpn in self.covered_pages(extent) {
            self.pages[lpn].is_lost = false;
        }
        let result = self.ftl.write(extent, Some(&data), Hint::default(), self.now);
        let result = self.token(result);
        match result {
            Ok(()) => {
                for lpn in self.whole_pages(extent) {
                    self.seen.healed += u64::from(before[lpn].is_lost);
                }
                sectors.for_each(|sector| self.versions[sector as usize] = version);
                self.learn();
                Ok(true)
            }
            Err(error) => {
                for lpn in self.pages_of(extent) {
                    self.pages[lpn].was_hit |= before[lpn].was_hit;
                }
                self.learn();
                self.settle(extent, version)?;
                let is_damaged =
                    self.pages_of(extent).any(|lpn| self.pages[lpn].was_hit || before[lpn].was_hit);
                match error {
                    FtlError::Flash(FlashError::Uncorrectable { .. }) if is_damaged => Ok(true),
                    error => outcome("write", Err(error)),
                }
            }
        }
    }

    /// After a write that failed: each page holds its old or its new bytes.
    fn settle(&mut self, extent: Extent, version: u64) -> Result<(), String> {
        for lpn in self.pages_of(extent) {
            let page = self.extent_of(lpn);
            let mut data = vec![0xEE; page.len as usize];
            let result = self.ftl.read(page, Some(&mut data), self.now);
            if self.token(result).is_err() {
                // Told by the next check.
                continue;
            }
            let old = self.expected(page);
            let range = page.offset / SECTOR..page.end() / SECTOR;
            let written = range.filter(|sector| (extent.offset..extent.end()).contains(&(sector * SECTOR)));
            let written: Vec<usize> = written.map(|sector| sector as usize).collect();
            let before: Vec<u64> = written.iter().map(|sector| self.versions[*sector]).collect();
            for sector in &written {
                self.versions[*sector] = version;
            }
            if data == self.expected(page) {
                continue;
            }
            for (sector, old) in written.iter().zip(before) {
                self.versions[*sector] = old;
            }
            if data != old {
                return Err(format!(
                    "page {lpn} holds neither its old nor its new bytes after a failed write"
                ));
            }
        }
        Ok(())
    }

    fn trim(&mut self, extent: Extent) -> Result<bool, String> {
        self.learn();
        let result = self.ftl.trim(extent, self.now);
        let result = self.token(result);
        let is_done = outcome("trim", result)?;
        if is_done {
            for lpn in self.whole_pages(extent) {
                let sectors = self.per_page() as usize;
                self.versions[lpn * sectors..(lpn + 1) * sectors].fill(0);
                self.pages[lpn] = Page::default();
            }
        }
        Ok(is_done)
    }

    /// Writes every page; each must be whole afterwards.
    pub fn rewrite(&mut self) -> Result<bool, String> {
        for lpn in 0..self.pages.len() {
            if !self.write(self.extent_of(lpn))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn lost(&self) -> usize {
        self.pages.iter().filter(|page| page.is_lost).count()
    }

    /// Another start of the layer on the same medium.
    pub fn restart(
        &mut self,
        open: impl FnOnce(&Held) -> Result<Box<dyn Ftl + Send>, String>,
    ) -> Result<(), String> {
        self.held.reset_tally();
        self.ftl = open(&self.held)?;
        self.seen.restarts += 1;
        Ok(())
    }

    /// All that the host believes to be there, to compare runs.
    pub fn contents(&self) -> Vec<u64> {
        self.versions.clone()
    }
}
