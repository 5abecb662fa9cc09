//! `SBM_GCL`: superblock map, collection of superblocks without live pages [thesis 3.2.3].
//!
//! A logical superblock lies in one physical superblock, every page at its own offset. A request that touches
//! a page already programmed remaps the superblock once: the request's pages and copies of the other live
//! ones go to a new superblock. Without a free or collectable superblock it is read, erased and rewritten in
//! place.
//!
//! Where copies come first the superblock that was left is erased only when its space is needed, which is
//! always after the copies, and nothing is rewritten in place.
//!
//! Invariant: a mapped superblock has at least one live page; pages are live only in mapped superblocks.

use crate::error::{BuildResult, FtlBuildError};
use crate::parts::adopt::adopt;
use crate::parts::background::{BACKGROUND_GC, BACKGROUND_WATERMARK};
use crate::parts::base::{Base, RMW, Target, UNMAPPED_READ};
use crate::parts::layer::{Layer, Strategy};
use crate::parts::order::{GC_ORDER, Order, UNSAFE_ORDER};
use crate::parts::superblocks::{BN, MODEL_ENTRY_BYTES, NONE, PN, RESERVE, Superblocks};
use nandscape_core::{
    Cause, Cost, Extent, FlashDevice, FlashError, FtlError, FtlResult, Info, Issue, Lpn, Params, Ppn,
    SimTime, Token, addr::PageSpan, keys, state,
};

keys! { PARAMS:
    PN; BN;
    FULL: String = choice(&["gc-first", "in-place"]) or "gc-first",
        "a remap that finds no erased superblock: collect one first, or rewrite in place at once";
    GC_ORDER; UNSAFE_ORDER; RESERVE; BACKGROUND_GC; BACKGROUND_WATERMARK; RMW; UNMAPPED_READ;
}

/// What the registry says.
pub static INFO: Info = Info {
    name: "sbm-gcl",
    summary: "superblock map, remap on overwrite, collection without copies",
    source: "[thesis 3.2.3] (SBM_GCL)",
    params: PARAMS,
};

const NO_ROOM: &str = "no superblock to map";

/// A page of an in-place rewrite, waiting in memory.
struct Waiting {
    index: u32,
    cause: Cause,
    read: Token,
}

/// The part of a request that falls into one logical superblock.
struct Part<'a> {
    logical: u32,
    /// First and last page in the superblock.
    first: u32,
    last: u32,
    data: Option<&'a [u8]>,
    at: SimTime,
}

/// The strategy over a device.
struct SbmGcl<D> {
    base: Base<D>,
    pool: Superblocks,
    /// Logical to physical superblock.
    map: Vec<u32>,
    collects_first: bool,
    waiting: Vec<Waiting>,
}

state!(impl [D: FlashDevice] SbmGcl<D> { saved: base, pool; tables: map; fixed: collects_first, waiting; });

/// Builds the strategy for the registry.
pub fn build<D: FlashDevice + Send + 'static>(device: D, params: &Params) -> BuildResult {
    Ok(Box::new(Layer(SbmGcl::new(device, params)?)))
}

impl<D: FlashDevice> SbmGcl<D> {
    /// The strategy over a device with any program order: erased, or with data that its journal knows.
    fn new(device: D, params: &Params) -> Result<Self, FtlBuildError> {
        let mut base = Base::new(device, &INFO, params, 0)?;
        let collects_first = params.get(FULL) == "gc-first";
        if base.order == Order::CopyFirst && !collects_first {
            let expected = "gc-first under gc_order = copy-first, which never rewrites in place";
            return Err(params.error(FULL, expected).into());
        }
        let mut pool = Superblocks::new(&mut base, &INFO, params, 0)?;
        base.set_slots(pool.pages as usize);
        let places = adopt(&mut pool, &mut base, &INFO, 0)?;
        Ok(Self {
            map: places.iter().map(|place| place.data).collect(),
            collects_first,
            waiting: Vec::with_capacity(pool.pages as usize),
            pool,
            base,
        })
    }

    fn remap(&mut self, logical: u32, superblock: u32) {
        assert!(self.pool.live_pages(superblock) > 0, "{logical} is mapped to {superblock}, which is dead");
        self.map[logical as usize] = superblock;
        self.base.stats.map_updates += 1;
        self.base.stats.map_update_bytes += MODEL_ENTRY_BYTES;
    }

    /// Writes a part; tries elsewhere what fails to be programmed, where copies come first.
    fn write_part(
        &mut self,
        part: &Part<'_>,
        spans: &(impl Iterator<Item = PageSpan> + Clone),
    ) -> FtlResult<Token> {
        loop {
            match self.try_part(part, spans.clone()) {
                Err(FtlError::Flash(FlashError::ProgramFailed { page }))
                    if self.base.order == Order::CopyFirst =>
                {
                    self.pool.note_failure(&mut self.base, page);
                }
                result => {
                    if result.is_ok() {
                        self.pool.release_abandoned();
                    }
                    return result;
                }
            }
        }
    }

    fn try_part(&mut self, part: &Part<'_>, spans: impl Iterator<Item = PageSpan>) -> FtlResult<Token> {
        let current = self.map[part.logical as usize];
        if current == NONE {
            return self.write_unmapped(part, spans);
        }
        let is_programmed = |index| self.base.device.is_programmed(self.pool.page(current, index));
        if !(part.first..=part.last).any(is_programmed) && !self.pool.has_failed(current) {
            return self.write_pages(current, NONE, part, spans);
        }
        let (target, collected) = if self.collects_first {
            self.pool.allocate(&mut self.base, part.at)?
        } else {
            (self.pool.take_empty(), Token::NONE)
        };
        let written = match target {
            Some(target) => self.move_to(target, current, part, spans)?,
            None if self.base.order == Order::CopyFirst => return Err(self.no_room(part)),
            None => self.rewrite_in_place(current, part, spans)?,
        };
        Ok(self.base.device.join(collected, written))
    }

    fn write_unmapped(&mut self, part: &Part<'_>, spans: impl Iterator<Item = PageSpan>) -> FtlResult<Token> {
        let (target, collected) = self.pool.allocate(&mut self.base, part.at)?;
        let target = target.ok_or_else(|| self.no_room(part))?;
        let written = self.write_pages(target, NONE, part, spans);
        self.keep_or_drop(target, &written);
        let written = written?;
        self.remap(part.logical, target);
        Ok(self.base.device.join(collected, written))
    }

    fn no_room(&mut self, part: &Part<'_>) -> FtlError {
        let needed = u64::from(part.last - part.first + 1);
        self.base.no_room(NO_ROOM, needed, self.pool.free_pages())
    }

    /// As [`Superblocks::keep_or_drop`], with the count of live pages.
    fn keep_or_drop(&mut self, target: u32, written: &FtlResult<Token>) {
        if written.is_err() {
            self.lose_live(target);
        }
        self.pool.keep_or_drop(target, written);
    }

    /// The live pages of a superblock count no more.
    fn lose_live(&mut self, superblock: u32) {
        let (live, lost) = (self.base.stats.live_pages, u64::from(self.pool.live_pages(superblock)));
        assert!(lost <= live, "superblock {superblock} has {lost} of {live} live pages");
        self.base.stats.live_pages = live - lost;
    }

    /// A page of a superblock holds newest data from now on.
    fn gain_live(&mut self, superblock: u32, index: u32) {
        assert!(!self.pool.is_live(superblock, index), "page {index} of {superblock} is live already");
        self.pool.set_live(superblock, index);
        self.base.stats.live_pages += 1;
    }

    /// Programs the request's pages at their own offsets in `target`; their old versions are in `current`.
    fn write_pages(
        &mut self,
        target: u32,
        current: u32,
        part: &Part<'_>,
        spans: impl Iterator<Item = PageSpan>,
    ) -> FtlResult<Token> {
        let mut done = Token::NONE;
        for (index, span) in (part.first..=part.last).zip(spans) {
            let is_old = current != NONE && self.pool.is_live(current, index);
            let old = is_old.then(|| self.pool.page(current, index));
            let to = self.pool.target(target, index, 0);
            let written = self.base.write_span(old, to, &span, part.data, part.at)?;
            self.gain_live(target, index);
            done = self.base.device.join(done, written);
        }
        Ok(done)
    }

    /// Remaps: the request's pages and copies of the other live ones go to `target`.
    fn move_to(
        &mut self,
        target: u32,
        current: u32,
        part: &Part<'_>,
        spans: impl Iterator<Item = PageSpan>,
    ) -> FtlResult<Token> {
        let written = self.write_pages(target, current, part, spans);
        // What was written is newest from now on, also if the rest of it could not be read to be completed:
        // then the remap is finished with the old versions of the rest.
        let ends_here = self.base.order == Order::EraseFirst
            || matches!(written, Err(FtlError::Flash(FlashError::ProgramFailed { .. })));
        let moved = match &written {
            Err(error) if ends_here => Err(error.clone()),
            _ => self.copy_rest(target, current, part),
        };
        self.keep_or_drop(target, &moved);
        let moved = moved?;
        let (before, after) = (self.pool.live_pages(current), self.pool.live_pages(target));
        assert!(after >= before, "{after} of {before} pages went from {current} to {target}");
        self.lose_live(current);
        self.pool.drop_all(current);
        self.remap(part.logical, target);
        let written = written?;
        Ok(self.base.device.join(written, moved))
    }

    /// Copies the live pages of `current` that `target` does not hold yet.
    fn copy_rest(&mut self, target: u32, current: u32, part: &Part<'_>) -> FtlResult<Token> {
        let mut done = Token::NONE;
        let mut next = self.pool.next_live(current, 0);
        while let Some(index) = next {
            if !self.pool.is_live(target, index) {
                let lpn = Lpn(part.logical * self.pool.pages + index);
                let (from, to) = (self.pool.page(current, index), self.pool.target(target, index, 0));
                let copied = self.base.copy(from, to, lpn, Issue::new(part.at, Cause::Merge))?;
                self.gain_live(target, index);
                done = self.base.device.join(done, copied);
            }
            next = self.pool.next_live(current, index + 1);
        }
        Ok(done)
    }

    /// Reads what must survive, erases the superblock, and writes it back with the request's pages.
    fn rewrite_in_place(
        &mut self,
        current: u32,
        part: &Part<'_>,
        spans: impl Iterator<Item = PageSpan>,
    ) -> FtlResult<Token> {
        assert_eq!(self.base.order, Order::EraseFirst, "superblock {current} is rewritten in place");
        let reads = self.gather(current, part, spans)?;
        let mut done = reads;
        let mut erased_blocks = 0;
        let mut failure = None;
        for block in self.pool.layout.blocks(current) {
            match self.base.device.erase(block, Issue::new(part.at, Cause::Merge).after(reads)) {
                Ok(erased) => done = self.base.device.join(done, erased),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            erased_blocks += 1;
        }
        for slot in 0..self.waiting.len() {
            let Waiting { index, cause, read } = self.waiting[slot];
            if self.block_number(index) >= erased_blocks {
                // The erase failed before it reached this page: it is what it was.
                continue;
            }
            let lpn = Lpn(part.logical * self.pool.pages + index);
            let to = Target { after: read, ..Target::at(self.pool.page(current, index)) };
            let written = self.base.program_slot(slot, to, lpn, Issue::new(part.at, cause))?;
            if !self.pool.is_live(current, index) {
                self.gain_live(current, index);
            }
            done = self.base.device.join(done, written);
        }
        if let Some(error) = failure {
            return Err(error.into());
        }
        self.base.stats.in_place_rewrites += 1;
        Ok(done)
    }

    /// Collects in memory the pages that the rewritten superblock will hold.
    fn gather(
        &mut self,
        current: u32,
        part: &Part<'_>,
        spans: impl Iterator<Item = PageSpan>,
    ) -> FtlResult<Token> {
        self.waiting.clear();
        let mut reads = Token::NONE;
        let mut next = self.pool.next_live(current, 0);
        while let Some(index) = next {
            if !(part.first..=part.last).contains(&index) {
                let page = self.pool.page(current, index);
                let read =
                    self.base.read_slot(self.waiting.len(), page, Issue::new(part.at, Cause::Merge))?;
                self.waiting.push(Waiting { index, cause: Cause::Merge, read });
                reads = self.base.device.join(reads, read);
            }
            next = self.pool.next_live(current, index + 1);
        }
        for (index, span) in (part.first..=part.last).zip(spans) {
            let old = self.pool.is_live(current, index).then(|| self.pool.page(current, index));
            let read = self.base.fill_slot(self.waiting.len(), old, &span, part.data, part.at)?;
            self.waiting.push(Waiting { index, cause: Cause::Host, read });
            reads = self.base.device.join(reads, read);
        }
        let waiting = self.waiting.len();
        assert!(waiting <= self.pool.pages as usize, "{waiting} pages wait for superblock {current}");
        Ok(reads)
    }

    /// The place of a page's block in the order in which a superblock's blocks are erased.
    const fn block_number(&self, index: u32) -> u32 {
        let pn = self.pool.layout.pn();
        index / pn / self.base.geometry.pages_per_block * pn + index % pn
    }
}

impl<D: FlashDevice> Strategy for SbmGcl<D> {
    type Device = D;

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn forget_tokens(&mut self) {
        self.pool.open_gates();
    }

    fn find(&self, lpn: Lpn) -> Option<Ppn> {
        let (logical, index) = self.pool.split(lpn);
        let superblock = self.map[logical as usize];
        if superblock == NONE {
            return self.pool.stranded(lpn);
        }
        self.pool.is_live(superblock, index).then(|| self.pool.page(superblock, index))
    }

    fn write_pages(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> FtlResult<Token> {
        let mut spans = self.base.spans(extent);
        let mut left = extent.page_count(self.base.geometry.page_bytes) as u32;
        let mut lpn = self.base.lpn_of(extent);
        let mut done = Token::NONE;
        while left > 0 {
            let (logical, first) = self.pool.split(lpn);
            let count = left.min(self.pool.pages - first);
            let part = Part { logical, first, last: first + count - 1, data, at };
            let written = self.write_part(&part, &spans.clone().take(count as usize))?;
            spans.nth(count as usize - 1);
            done = self.base.device.join(done, written);
            lpn.0 += count;
            left -= count;
        }
        Ok(done)
    }

    fn unmap(&mut self, lpn: Lpn) {
        let (logical, index) = self.pool.split(lpn);
        let superblock = self.map[logical as usize];
        if superblock == NONE || !self.pool.is_live(superblock, index) {
            return;
        }
        self.pool.set_dead(superblock, index);
        assert!(self.base.stats.live_pages > 0, "{lpn:?} was live, and none is");
        self.base.stats.live_pages -= 1;
        if self.pool.live_pages(superblock) == 0 {
            self.map[logical as usize] = NONE;
        }
    }

    fn step_in_background(&mut self, wanted_pages: u64, at: SimTime) -> FtlResult<Option<Token>> {
        self.pool.collect_in_background(&mut self.base, wanted_pages, at)
    }

    fn costs(&self) -> Cost {
        Cost {
            map_table_bytes: self.map.len() as u64 * MODEL_ENTRY_BYTES,
            dram_bytes: 4 * self.map.len() as u64 + self.pool.dram_bytes(),
            ..self.base.cost(self.pool.reserve_blocks(&self.base))
        }
    }

    fn check(&self) {
        self.pool.check(&self.base);
        let live = self.pool.check_mapped(self.map.iter()) + self.pool.stranded.len() as u64;
        assert_eq!(live, self.base.stats.live_pages, "live pages");
    }
}
