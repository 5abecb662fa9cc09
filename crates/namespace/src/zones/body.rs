//! What zones hold, and on which blocks: the pages of the flash below a [`ZoneTable`](super::ZoneTable).
//!
//! A zone gets a block of its dies when its write pointer reaches the first page there. Pages are programmed
//! in the order of their numbers as soon as all of their logical blocks are there; what fills no page yet is
//! *held* in the controller. Invariants:
//! * the pages below `programmed` are on flash, those from it on are held or not written;
//! * a block is bound to one zone, free in the pool, of the metadata log, or bad;
//! * an erase, and the first program of a block, come after the records that were logged before them; so does
//!   padding;
//! * on a device whose controller loses what it has, the log tells of held pages after all pages of zones
//!   that were programmed before, and everything comes after what the start did.
#![expect(clippy::inline_always, reason = "measured: the path of every page")]

use super::held::Content;
use super::metadata::Log;
use super::pool::Pool;
use super::sabotage::Sabotage;
use super::stripes::{Spot, Striping};
use super::tag::{ZoneOob, ZoneTag};
use nandscape_core::zone::ZoneError;
use nandscape_core::{
    Barrier, BlockId, Cause, FlashDevice, FlashError, FtlError, Issue, Lpn, NamespaceError, Ppn, SimTime,
    Splitter, Token, Way,
};

/// Why pages of a zone could not be programmed or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A die of the zone has no block left.
    NoBlock,
    Flash(FlashError),
}

impl From<FlashError> for Fault {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

/// What a host is told of a failure of the flash below a zone.
impl From<Fault> for NamespaceError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoBlock => ZoneError::ReadOnly.into(),
            Fault::Flash(error) => FtlError::from(error).into(),
        }
    }
}

pub(super) type Done<T = Token> = Result<T, Fault>;

/// How zones treat the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice by itself")]
pub struct FlashRules {
    /// A reset erases the blocks that hold data of the host; else they are erased when they are used again.
    pub erases_at_reset: bool,
    /// A reset of an open or closed zone first fills up the last stripe over all dies.
    pub completes_stripe: bool,
    /// A finish programs the rest of the zone.
    pub pads: bool,
    /// A loss of power loses what the controller has: records are programmed before what they allow, and a
    /// flush logs what is held.
    pub is_volatile: bool,
}

pub(super) struct Body<D, O> {
    pub device: D,
    pub striping: Striping,
    pub pool: Pool,
    pub log: Log,
    pub rules: FlashRules,
    /// By zone, slot and die: the block, or none.
    pub(super) bound: Vec<BlockId>,
    pub(super) contents: Vec<Content>,
    /// Zones that hold something, and some that no longer do.
    pub(super) held_zones: Vec<u32>,
    /// Pages of a zone whose blocks are all there.
    pub zone_pages: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    /// Logical block.
    pub block_bytes: u32,
    /// Bytes of a zone by pages, and logical blocks.
    pub by_page: Splitter,
    pub blocks_by_page: Splitter,
    pub stores_data: bool,
    /// Completes with every program of a page of a zone, on a device whose controller loses what it has.
    pub programs: Token,
    /// Completes with what a start did to the flash; every program comes after it.
    pub started: Token,
    /// Blocks that are out of use, and how many of them the log has.
    pub retired: Vec<BlockId>,
    pub retired_logged: usize,
    /// Number of the next binding.
    pub next_seq: u64,
    pub sabotage: Sabotage,
    /// Of the pages of the last stripe; here so that none is allocated anew.
    pub(super) oobs: Vec<O>,
}

impl<O: ZoneOob, D: FlashDevice<O>> Body<D, O> {
    /// Zones without any block, over a device whose free blocks are in the pool. The first `conventional` of
    /// them never get any.
    pub fn new(
        device: D,
        striping: Striping,
        pool: Pool,
        rules: FlashRules,
        (conventional, zones): (u32, u32),
        zone_pages: u32,
    ) -> Self {
        let geometry = *device.geometry();
        let stores_data = device.capabilities().stores_data;
        let mut this = Self {
            device,
            striping,
            pool,
            log: Log::default(),
            rules,
            bound: vec![BlockId::NONE; zones as usize * striping.blocks() as usize],
            contents: vec![Content::empty(striping.blocks_per_die); zones as usize],
            held_zones: Vec::new(),
            zone_pages,
            pages_per_block: geometry.pages_per_block,
            page_bytes: geometry.page_bytes,
            block_bytes: geometry.sector_bytes,
            by_page: Splitter::new(geometry.page_bytes.into()),
            blocks_by_page: Splitter::new((geometry.page_bytes / geometry.sector_bytes).into()),
            stores_data,
            programs: Token::NONE,
            started: Token::NONE,
            retired: Vec::new(),
            retired_logged: 0,
            next_seq: 1,
            sabotage: Sabotage::None,
            oobs: Vec::new(),
        };
        for zone in conventional..zones {
            for die in 0..striping.dies() {
                this.pool.owe(striping.unit(zone, die), striping.blocks_per_die);
            }
        }
        this
    }

    /// Pages of a zone that has so many blocks in each die.
    pub fn pages_of(&self, slots: u32) -> u32 {
        let pages = u64::from(slots) * u64::from(self.striping.dies()) * u64::from(self.pages_per_block);
        pages.min(u64::from(self.zone_pages)) as u32
    }

    /// Pages that so many logical blocks of a zone touch.
    pub fn pages_for(&self, blocks: u64) -> u32 {
        (blocks * u64::from(self.block_bytes)).div_ceil(u64::from(self.page_bytes)) as u32
    }

    /// Logical blocks of so many pages.
    pub fn blocks_of(&self, pages: u32) -> u64 {
        u64::from(pages) * u64::from(self.page_bytes / self.block_bytes)
    }

    pub(super) fn place(&self, zone: u32, spot: Spot) -> usize {
        zone as usize * self.striping.blocks() as usize
            + (spot.slot * self.striping.dies() + spot.die) as usize
    }

    pub fn block_at(&self, zone: u32, spot: Spot) -> BlockId {
        self.bound[self.place(zone, spot)]
    }

    /// Binds a block that is free nowhere.
    pub fn bind(&mut self, zone: u32, spot: Spot, block: BlockId) {
        let place = self.place(zone, spot);
        if self.bound[place] == BlockId::NONE && block != BlockId::NONE {
            self.pool.settle(self.striping.unit(zone, spot.die), 1);
        }
        self.bound[place] = block;
        self.contents[zone as usize].next = Ppn::NONE;
    }

    /// The flash page of a page of a zone.
    #[inline]
    pub fn flash_page(&self, zone: u32, index: u32) -> Option<Ppn> {
        let spot = self.striping.spot(index);
        let block = self.block_at(zone, spot);
        (block != BlockId::NONE).then(|| Ppn(block.0 * self.pages_per_block + spot.page))
    }

    /// The number of a page among those of all zones.
    pub fn page_number(&self, zone: u32, index: u32) -> Lpn {
        Lpn(zone * self.zone_pages + index)
    }

    /// An erased block of a die.
    pub fn take_block(&mut self, unit: u32, cause: Cause, at: SimTime) -> Done<BlockId> {
        loop {
            let taken = self.pool.take(unit).ok_or(Fault::NoBlock)?;
            if !taken.needs_erase {
                return Ok(taken.block);
            }
            let issue = Issue::new(at, cause).after(self.log.done);
            match self.device.erase(taken.block, issue) {
                Ok(_) => return Ok(taken.block),
                Err(error) => self.retire(taken.block, error)?,
            }
        }
    }

    /// Comes after a token, and after everything that was programmed so far, on a device whose buffer loses
    /// programs.
    pub fn ordered(&mut self, done: Token, at: SimTime) -> Done {
        let ordered = self.device.barrier(Barrier::Order, at)?;
        Ok(self.device.join(done, ordered))
    }

    /// A block could not be erased: it is bad from now on. Other errors are passed on.
    pub(super) fn retire(&mut self, block: BlockId, error: FlashError) -> Done<()> {
        match error {
            FlashError::EraseFailed { .. } | FlashError::WornOut { .. } => {
                self.device.mark_bad(block);
                Ok(())
            }
            FlashError::BadBlock { .. } => Ok(()),
            error => Err(error.into()),
        }
    }

    /// Programs the next page of a zone. `transfer` bytes come from the host, `held` are in the controller. A
    /// block that it binds has a number that a reset has made void, if one is given.
    #[inline(always)]
    pub fn program_next(
        &mut self,
        zone: u32,
        void: Option<u64>,
        (transfer, held): (u32, u32),
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Done {
        let Content { programmed: index, next: mut page, .. } = self.contents[zone as usize];
        let mut issue = Issue { held, ..issue };
        if self.started != Token::NONE && self.sabotage != Sabotage::ProgramBeforeStart {
            issue.after = self.device.join(issue.after, self.started);
        }
        if page == Ppn::NONE {
            (page, issue.after) = self.place_next(zone, index, issue)?;
        }
        let mut next = self.next_page(zone, index + 1);
        let seq = void.unwrap_or(self.next_seq);
        let tag = ZoneTag { page: self.page_number(zone, index), copied: 0, seq };
        let done = match self.device.program(page, O::of(tag), transfer, data, issue) {
            Ok(done) => done,
            Err(FlashError::ProgramFailed { .. }) if void.is_some() => issue.after,
            Err(FlashError::ProgramFailed { .. }) => {
                next = Ppn::NONE;
                self.program_elsewhere(zone, index, (transfer, data), issue)?
            }
            Err(error) => return Err(error.into()),
        };
        if self.rules.is_volatile {
            self.programs = self.device.join(self.programs, done);
        }
        let content = &mut self.contents[zone as usize];
        (content.programmed, content.next) = (index + 1, next);
        if issue.cause != Cause::Finish {
            content.host_pages = index + 1;
        }
        Ok(done)
    }

    /// The flash page of a page of a zone whose block is bound; none for the first page of a block.
    #[inline(always)]
    fn next_page(&self, zone: u32, index: u32) -> Ppn {
        let spot = self.striping.spot(index);
        if spot.page == 0 || index >= self.zone_pages {
            return Ppn::NONE;
        }
        let block = self.block_at(zone, spot);
        if block == BlockId::NONE { Ppn::NONE } else { Ppn(block.0 * self.pages_per_block + spot.page) }
    }

    /// Looks up the flash page of the next page of a zone, or takes a block for it; gives what its program
    /// comes after.
    #[inline(never)]
    fn place_next(&mut self, zone: u32, index: u32, issue: Issue) -> Done<(Ppn, Token)> {
        assert!(index < self.zone_pages, "page {index} of zone {zone} with {} pages", self.zone_pages);
        let spot = self.striping.spot(index);
        let mut block = self.block_at(zone, spot);
        let mut after = issue.after;
        if spot.page == 0 || block == BlockId::NONE {
            block = self.take_block(self.striping.unit(zone, spot.die), issue.cause, issue.at)?;
            self.bind(zone, spot, block);
            self.next_seq += 1;
            after = self.device.join(after, self.log.done);
        }
        Ok((Ppn(block.0 * self.pages_per_block + spot.page), after))
    }

    /// Programs what a random write area leaves behind, or what is held of a zone that `ends`, up to a page
    /// of the zone. Pages that the host did not fill count as padding.
    pub fn commit(&mut self, zone: u32, end: u32, ends: bool, issue: Issue) -> Done {
        // Without its record, a page that the end of its zone filled up would be data.
        let waits = ends && self.sabotage != Sabotage::PadWithoutRecord;
        let record = if waits { self.log.done } else { Token::NONE };
        let after = self.device.join(issue.after, record);
        let mut done = Token::NONE;
        while self.programmed(zone) < end {
            let is_held = self.held(zone).and_then(|held| held.get(0)).is_some_and(|page| page.present != 0);
            let issue = if is_held && !ends { issue } else { issue.by_device(Cause::Finish) };
            let programmed = self.program_held(zone, 0, issue.after(after))?;
            done = self.device.join(done, programmed);
        }
        Ok(done)
    }

    /// Programs pages without data of the host, up to a page of the zone. Each stripe over all dies waits for
    /// the second one before, so that the host's writes come in between while no die runs dry. If the zone
    /// `is_reset`, the pages do not count as written since.
    pub fn pad(&mut self, zone: u32, end: u32, is_reset: bool, issue: Issue) -> Done {
        let zeroes = self.stores_data.then(|| vec![0; self.page_bytes as usize]);
        let row = self.striping.row_pages();
        let void = is_reset.then(|| self.log.reset_seqs[zone as usize] - 1);
        // Without the record of what ends the zone, padding would be data.
        let is_ordered = self.sabotage != Sabotage::PadWithoutRecord;
        let after = if is_ordered { self.device.join(issue.after, self.log.done) } else { issue.after };
        let (mut before, mut last, mut done) = (after, after, after);
        while self.programmed(zone) < end {
            if self.programmed(zone).is_multiple_of(row) {
                (before, last) = (last, done);
            }
            let issue = Issue::new(issue.at, Cause::Finish).after(before);
            let pages = (0, self.page_bytes);
            let programmed = self.program_next(zone, void, pages, zeroes.as_deref(), issue)?;
            done = self.device.join(done, programmed);
        }
        Ok(done)
    }

    /// Reads bytes of a zone, at least one, `from` counted in it, into `data`. Padding is not read.
    #[inline(always)]
    pub fn read(
        &mut self,
        zone: u32,
        (from, len): (u64, u64),
        mut data: Option<&mut [u8]>,
        issue: Issue,
    ) -> Done {
        let (first, mut within) = self.by_page.split(from);
        let last = self.by_page.quotient(from + len - 1);
        if last >= u64::from(self.contents[zone as usize].host_pages) {
            return self.read_parts(zone, (from, len), data, issue);
        }
        let mut done = Token::NONE;
        let mut passed = 0;
        for index in first as u32..=last as u32 {
            let part = (u64::from(self.page_bytes) - within).min(len - passed);
            let out = data.as_deref_mut().map(|data| &mut data[passed as usize..][..part as usize]);
            let read = self.read_page(zone, index, (within as u32, part as u32), out, issue)?;
            done = self.device.join(done, read);
            (within, passed) = (0, passed + part);
        }
        Ok(done)
    }

    /// Reads bytes of a page of a zone that is on flash.
    #[inline(always)]
    fn read_page(
        &mut self,
        zone: u32,
        index: u32,
        (within, len): (u32, u32),
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> Done {
        let page = self.flash_page(zone, index).expect("programmed pages are bound");
        let read = match data {
            Some(data) if len < self.page_bytes => self.device.read_part(page, within, data, issue),
            data => self.device.read(page, len, data, issue),
        }?;
        Ok(read.done)
    }

    /// The same for bytes some of which are not on flash.
    #[inline(never)]
    fn read_parts(
        &mut self,
        zone: u32,
        (from, len): (u64, u64),
        mut data: Option<&mut [u8]>,
        issue: Issue,
    ) -> Done {
        let mut done = Token::NONE;
        let mut passed = 0;
        let (mut byte, end) = (from, from + len);
        while byte < end {
            let (index, within) = self.by_page.split(byte);
            let (index, within) = (index as u32, within as u32);
            let part = u64::from(self.page_bytes - within).min(end - byte) as u32;
            let start = (byte - from) as usize;
            let mut out = data.as_deref_mut().map(|data| &mut data[start..start + part as usize]);
            byte += u64::from(part);
            if index < self.contents[zone as usize].host_pages {
                let read = self.read_page(zone, index, (within, part), out, issue)?;
                done = self.device.join(done, read);
                continue;
            }
            passed += part;
            if let Some(out) = &mut out {
                out.fill(0);
                let ahead = index.wrapping_sub(self.programmed(zone));
                let held = self.held(zone).and_then(|held| held.get(ahead));
                if let Some(bytes) = held.and_then(|page| page.data.as_deref()) {
                    out.copy_from_slice(&bytes[within as usize..][..part as usize]);
                }
            }
        }
        if passed > 0 {
            let sent = self.device.pass(Way::Out, passed, issue.at, issue.after);
            done = self.device.join(done, sent);
        }
        Ok(done)
    }

    /// Takes the blocks of a zone away. Those with data of the host are erased now if resets do that.
    pub fn release(&mut self, zone: u32, issue: Issue) -> Done {
        self.drop_held(zone);
        let is_ordered = self.sabotage != Sabotage::EraseBeforeRecord;
        let mut done = if is_ordered { self.device.join(self.log.done, issue.after) } else { issue.after };
        let issue = issue.after(done);
        let content = &mut self.contents[zone as usize];
        (content.programmed, content.next) = (0, Ppn::NONE);
        let host_pages = std::mem::take(&mut content.host_pages);
        for slot in 0..self.striping.blocks_per_die {
            for die in 0..self.striping.dies() {
                let spot = Spot { die, slot, page: 0 };
                let place = self.place(zone, spot);
                let block = std::mem::replace(&mut self.bound[place], BlockId::NONE);
                if block == BlockId::NONE {
                    continue;
                }
                let unit = self.striping.unit(zone, die);
                self.pool.owe(unit, 1);
                let pages = self.striping.pages_below(spot, host_pages);
                if pages == 0 || !self.rules.erases_at_reset {
                    self.pool.give(unit, block, true);
                    continue;
                }
                match self.device.erase(block, Issue { held: pages, ..issue }) {
                    Ok(erased) => {
                        done = self.device.join(done, erased);
                        self.pool.give(unit, block, false);
                    }
                    Err(error) => self.retire(block, error)?,
                }
            }
        }
        Ok(done)
    }

    /// An empty zone gives up blocks of each die for those that have failed there; gives what it has left.
    pub fn shrink_for_failures(&mut self, zone: u32) -> u32 {
        let units = (0..self.striping.dies()).map(|die| self.striping.unit(zone, die));
        let missing = units.map(|unit| -self.pool.spare(unit)).max().unwrap_or(0);
        let slots = self.slots(zone);
        if missing > 0 {
            self.shrink(zone, slots - u32::try_from(missing).map_or(slots, |missing| missing.min(slots)));
        }
        self.slots(zone)
    }

    /// Bytes of the table of blocks.
    pub fn table_bytes(&self) -> u64 {
        (self.bound.len() * size_of::<BlockId>() + self.contents.len() * 3 * size_of::<u32>()) as u64
    }

    /// Checks who has which block; panics with the values.
    pub fn check_invariants(&self) {
        let mut owner = vec![0u32; self.device.geometry().blocks() as usize];
        let bound = self.bound.iter().filter(|block| **block != BlockId::NONE).copied();
        for block in bound.chain(self.pool.all()).chain(self.log.blocks()).chain(self.retired.iter().copied())
        {
            owner[block.index()] += 1;
        }
        for block in (0..self.device.geometry().blocks()).map(BlockId) {
            let owners = owner[block.index()];
            let expected = if self.device.is_bad(block) { 0..=1 } else { 1..=1 };
            assert!(expected.contains(&owners), "block {block:?} has {owners} owners");
        }
        for zone in 0..self.zones() {
            for index in 0..self.programmed(zone) {
                let page = self.flash_page(zone, index);
                assert!(page.is_some_and(|page| self.device.is_programmed(page)), "page {index} of {zone}");
            }
        }
    }
}
