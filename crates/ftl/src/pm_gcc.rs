//! `PM_GCC`: page map, whole-device collection of a contiguous region [thesis 3.2.2].
//!
//! Pages are given out in the interleaved order (unit, then page, then block), as in a log-structured file
//! system. When a request touches more pages than are left, the tail is abandoned and everything written is
//! collected: row by row (one block of every unit) the live pages are read into memory, the row is erased,
//! and they are rewritten from the beginning. A row of memory is what that takes.
//!
//! Invariants: `frontier` names a usable page whenever `left` is not 0; nothing at or after it is programmed.

use crate::error::{BuildResult, FtlBuildError};
use crate::page_log::{Collection, PageLog};
use crate::parts::base::{Base, RMW, Target, UNMAPPED_READ};
use crate::parts::order::{GC_ORDER, Order, RESERVE, UNSAFE_ORDER};
use crate::parts::page_table::PageTable;
use nandscape_core::{
    Barrier, BlockId, Cause, Cost, Deferral, Extent, FlashDevice, Ftl, FtlError, FtlStats, Geometry, Hint,
    Info, Logs, Lpn, Mapping, Params, Ppn, SimTime, Token, UnitId,
};

/// What the registry says.
pub static INFO: Info = Info {
    name: "pm-gcc",
    summary: "page map, one log over the whole device, collected as a whole",
    source: "[thesis 3.2.2] (PM_GCC)",
    params: &[GC_ORDER, UNSAFE_ORDER, RESERVE, RMW, UNMAPPED_READ],
};

const FULL: &str = "nothing is left after a whole-device collection";

/// A place in the interleaved order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    row: u32,
    page: u32,
    unit: u32,
}

impl Place {
    const START: Self = Self { row: 0, page: 0, unit: 0 };

    const fn block(self, geometry: &Geometry) -> BlockId {
        geometry.block(UnitId(self.unit), self.row)
    }

    const fn next(self, geometry: &Geometry) -> Self {
        if self.unit + 1 < geometry.units() {
            Self { unit: self.unit + 1, ..self }
        } else if self.page + 1 < geometry.pages_per_block {
            Self { unit: 0, page: self.page + 1, ..self }
        } else {
            Self { unit: 0, page: 0, row: self.row + 1 }
        }
    }
}

/// A live page that waits in memory for its rewriting.
struct Move {
    slot: usize,
    lpn: Lpn,
    block: BlockId,
    read: Token,
}

/// The strategy over a device.
pub struct PmGcc<D> {
    base: Base<D>,
    table: PageTable,
    /// Blocks that can be written: neither bad nor worn out.
    usable: Vec<bool>,
    usable_blocks: u64,
    /// The thesis's `used_end_ppg`; `used_begin_ppg` is always the beginning.
    frontier: Place,
    /// Usable pages from the frontier to the end.
    left: u64,
    moves: Vec<Move>,
}

/// Builds the strategy for the registry.
pub fn build<D: FlashDevice + Send + 'static>(mut device: D, params: &Params) -> BuildResult {
    match Order::of(&mut device, params)? {
        Order::EraseFirst => Ok(Box::new(PmGcc::new(device, params)?)),
        Order::CopyFirst => Ok(Box::new(PageLog::new(device, &INFO, params, Collection::Everything)?)),
    }
}

impl<D: FlashDevice> PmGcc<D> {
    /// The strategy over a wholly erased device.
    pub fn new(device: D, params: &Params) -> Result<Self, FtlBuildError> {
        let row = (device.geometry().units() * device.geometry().pages_per_block) as usize;
        let base = Base::new(device, &INFO, params, row)?;
        let geometry = base.geometry;
        let mut ftl = Self {
            table: PageTable::new(base.logical_pages as u32, geometry.pages()),
            usable: (0..geometry.blocks()).map(|block| !base.device.is_bad(BlockId(block))).collect(),
            usable_blocks: base.good_blocks,
            frontier: Place::START,
            left: base.logical_pages,
            moves: Vec::with_capacity(row),
            base,
        };
        ftl.skip_unusable();
        Ok(ftl)
    }

    fn skip_unusable(&mut self) {
        let geometry = &self.base.geometry;
        while self.left > 0 && !self.usable[self.frontier.block(geometry).index()] {
            self.frontier = self.frontier.next(geometry);
        }
    }

    /// The page that the next allocation gets, if `left` is not 0.
    fn next_page(&self) -> Ppn {
        assert!(self.left > 0, "a page asked of a device with none left");
        self.base.geometry.page(self.frontier.block(&self.base.geometry), self.frontier.page)
    }

    /// Takes the page that [`Self::next_page`] gave, after it was programmed, and maps `lpn` to it.
    fn allocate_page(&mut self, lpn: Lpn, page: Ppn) {
        self.left -= 1;
        self.frontier = self.frontier.next(&self.base.geometry);
        self.skip_unusable();
        if self.table.allocate_page(lpn, page).is_none() {
            self.base.stats.live_pages += 1;
        }
        self.base.stats.map_updates += 1;
        self.base.stats.map_update_bytes += PageTable::MODEL_ENTRY_BYTES;
    }

    fn make_room(&mut self, needed: u64, at: SimTime) -> Result<Token, FtlError> {
        if needed <= self.left {
            return Ok(Token::NONE);
        }
        let collected = self.collect(at);
        if collected.is_err() {
            // Half done: rows beyond the frontier still hold data, so nothing may be written before a
            // complete collection.
            self.frontier = Place { row: self.base.geometry.blocks_per_unit(), page: 0, unit: 0 };
            self.left = 0;
        }
        let done = collected?;
        if needed > self.left { Err(self.base.full(FULL, needed, self.left)) } else { Ok(done) }
    }

    fn collect(&mut self, at: SimTime) -> Result<Token, FtlError> {
        let geometry = self.base.geometry;
        let rows = geometry.blocks_per_unit().min(self.frontier.row + 1);
        self.base.stats.gc_runs += 1;
        self.frontier = Place::START;
        self.left = self.usable_blocks * u64::from(geometry.pages_per_block);
        self.skip_unusable();
        let mut done = Token::NONE;
        for row in 0..rows {
            let reads = self.read_row(row, at)?;
            let erases = self.erase_row(row, at, reads)?;
            let writes = self.rewrite(at)?;
            let both = self.base.device.join(erases, writes);
            done = self.base.device.join(done, both);
        }
        Ok(done)
    }

    /// Reads the live pages of a row into memory, in the interleaved order.
    fn read_row(&mut self, row: u32, at: SimTime) -> Result<Token, FtlError> {
        let geometry = self.base.geometry;
        self.moves.clear();
        let mut reads = Token::NONE;
        for index in 0..geometry.pages_per_block {
            for unit in 0..geometry.units() {
                let block = geometry.block(UnitId(unit), row);
                let page = geometry.page(block, index);
                let Some(lpn) = self.table.logical(page).filter(|_| self.usable[block.index()]) else {
                    continue;
                };
                let slot = self.moves.len();
                let read = self.base.read_slot(slot, page, Cause::Gc, at)?;
                reads = self.base.device.join(reads, read);
                self.moves.push(Move { slot, lpn, block, read });
            }
        }
        Ok(reads)
    }

    /// Erases the blocks of a row that hold a written page. A block that cannot be erased any more keeps its
    /// live pages and is never written again.
    fn erase_row(&mut self, row: u32, at: SimTime, reads: Token) -> Result<Token, FtlError> {
        let geometry = self.base.geometry;
        let mut done = reads;
        for unit in 0..geometry.units() {
            let block = geometry.block(UnitId(unit), row);
            if !self.usable[block.index()] || self.base.device.write_pointer(block) == 0 {
                continue;
            }
            if let Some(erased) = self.base.erase(block, Cause::Gc, at, reads)? {
                done = self.base.device.join(done, erased);
            } else {
                self.usable[block.index()] = false;
                self.usable_blocks -= 1;
                // The frontier has not passed this row, so all its pages were counted.
                self.left -= u64::from(geometry.pages_per_block);
                self.skip_unusable();
                self.moves.retain(|kept| kept.block != block);
            }
        }
        Ok(done)
    }

    /// Rewrites what waits in memory, at the frontier.
    fn rewrite(&mut self, at: SimTime) -> Result<Token, FtlError> {
        // Only in memory now: the erased pages may be the very ones that get other data back.
        for waiting in &self.moves {
            self.table.release(waiting.lpn);
        }
        self.base.stats.live_pages -= self.moves.len() as u64;
        let mut done = Token::NONE;
        for index in 0..self.moves.len() {
            let Move { slot, lpn, read, .. } = self.moves[index];
            let target = self.next_page();
            let moved = self.base.program_slot(
                slot,
                Target { after: read, ..Target::at(target) },
                lpn,
                Cause::Gc,
                at,
            )?;
            self.allocate_page(lpn, target);
            self.base.stats.gc_moved_pages += 1;
            done = self.base.device.join(done, moved);
        }
        Ok(done)
    }
}

impl<D: FlashDevice> Ftl for PmGcc<D> {
    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        let mut done = Token::NONE;
        for span in self.base.spans(extent) {
            let read = self.base.read_span(self.table.physical(span.lpn), &span, data.as_deref_mut(), at)?;
            done = self.base.device.join(done, read);
        }
        Ok(done)
    }

    fn write(
        &mut self,
        extent: Extent,
        data: Option<&[u8]>,
        _hint: Hint,
        at: SimTime,
    ) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        let mut done = self.make_room(extent.page_count(self.base.geometry.page_bytes), at)?;
        for span in self.base.spans(extent) {
            let target = self.next_page();
            let written =
                self.base.write_span(self.table.physical(span.lpn), Target::at(target), &span, data, at)?;
            self.allocate_page(span.lpn, target);
            done = self.base.device.join(done, written);
        }
        Ok(done)
    }

    fn trim(&mut self, extent: Extent, _at: SimTime) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        for lpn in self.base.whole_pages(extent) {
            if self.table.release(lpn).is_some() {
                self.base.stats.live_pages -= 1;
            }
        }
        Ok(Token::NONE)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        let mut done = Token::NONE;
        for end in self.base.ragged_ends(extent) {
            if self.table.is_allocated(self.base.lpn_of(end)) {
                let written = self.write(end, None, Hint::default(), at)?;
                done = self.base.device.join(done, written);
            }
        }
        self.trim(extent, at)?;
        Ok(done)
    }

    fn flush(&mut self, at: SimTime) -> Result<Token, FtlError> {
        Ok(self.base.device.barrier(Barrier::Durable, at)?)
    }

    fn idle(&mut self, _at: SimTime, _until: SimTime) -> Result<(), FtlError> {
        Ok(())
    }

    fn device(&self) -> &dyn FlashDevice {
        &self.base.device
    }

    fn device_mut(&mut self) -> &mut dyn FlashDevice {
        &mut self.base.device
    }
}

impl<D: FlashDevice> Mapping for PmGcc<D> {
    fn logical_pages(&self) -> u64 {
        self.base.logical_pages
    }

    fn page_bytes(&self) -> u32 {
        self.device().geometry().page_bytes
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        if lpn.index() < self.table.len() { self.table.physical(lpn) } else { None }
    }

    fn stats(&self) -> FtlStats {
        self.base.stats
    }

    fn reset_stats(&mut self) {
        self.base.reset_stats();
    }

    fn cost(&self) -> Cost {
        Cost {
            map_table_bytes: self.base.logical_pages * PageTable::MODEL_ENTRY_BYTES,
            dram_bytes: self.table.dram_bytes(),
            ..self.base.cost(0)
        }
    }

    fn check_invariants(&self) {
        let geometry = &self.base.geometry;
        assert_eq!(self.table.check(), self.base.stats.live_pages, "mapped pages against the count");
        let mut place = self.frontier;
        let mut left = 0;
        while place.row < geometry.blocks_per_unit() {
            let block = place.block(geometry);
            if self.usable[block.index()] {
                let page = geometry.page(block, place.page);
                assert!(!self.base.device.is_programmed(page), "{page:?} beyond the frontier is programmed");
                left += 1;
            }
            place = place.next(geometry);
        }
        assert_eq!(left, self.left, "pages from the frontier {:?} to the end", self.frontier);
    }
}

impl<D: FlashDevice> Logs for PmGcc<D> {}

impl<D: FlashDevice> Deferral for PmGcc<D> {}
