//! `PM_GCL`: page map, greedy lazy collection [thesis 3.2.1].
//!
//! Every write takes the next page of an active block, walking round the units from a rotor that collection
//! shares. Before a request that touches more pages than are free, full blocks are collected, fewest live
//! pages first; old versions of the pages about to be overwritten still count as live. A victim is read into
//! memory, erased, and only then rewritten.
//!
//! Invariants: `live[b]` is the number of mapped pages of block `b`; a block is in exactly one of empty
//! queue, active, full queue or retired; `free_pages` counts the pages of empty blocks and the rest of the
//! active ones.

use crate::error::{BuildResult, FtlBuildError};
use crate::page_log::{Collection, PageLog};
use crate::parts::base::{Base, RMW, Target, UNMAPPED_READ};
use crate::parts::candidates::Candidates;
use crate::parts::order::{GC_ORDER, Order, RESERVE, UNSAFE_ORDER};
use crate::parts::page_table::PageTable;
use crate::parts::ring_set::RingSet;
use nandscape_core::{
    Barrier, BlockId, Cause, Cost, Deferral, Extent, FlashDevice, Ftl, FtlError, FtlStats, Hint, Info, Logs,
    Lpn, Mapping, Params, Ppn, SimTime, Token, UnitId,
};
use std::collections::VecDeque;

/// What the registry says.
pub static INFO: Info = Info {
    name: "pm-gcl",
    summary: "page map, greedy lazy collection of full blocks",
    source: "[thesis 3.2.1] (PM_GCL)",
    params: &[GC_ORDER, UNSAFE_ORDER, RESERVE, RMW, UNMAPPED_READ],
};

const FULL: &str = "no block with an invalid page";

/// Space of one unit.
struct Unit {
    /// Erased blocks, first in first out.
    empty: VecDeque<u32>,
    active: Option<u32>,
    /// Next page of the active block.
    next_page: u32,
}

/// The strategy over a device.
pub struct PmGcl<D> {
    base: Base<D>,
    table: PageTable,
    units: Vec<Unit>,
    /// Units with an active or an empty block.
    open: RingSet,
    /// Full blocks by live pages; the full queues are the order in it.
    full: Candidates,
    /// Blocks filled so far: positions in the full queues.
    filled: u64,
    /// Live pages of each block.
    live: Vec<u32>,
    /// The thesis's `next_ch_lun_i`.
    rotor: u32,
    free_pages: u64,
    /// Pages of the victim that wait in memory.
    moves: Vec<(Lpn, Token)>,
}

/// Builds the strategy for the registry.
pub fn build<D: FlashDevice + Send + 'static>(mut device: D, params: &Params) -> BuildResult {
    match Order::of(&mut device, params)? {
        Order::EraseFirst => Ok(Box::new(PmGcl::new(device, params)?)),
        Order::CopyFirst => Ok(Box::new(PageLog::new(device, &INFO, params, Collection::Blocks)?)),
    }
}

impl<D: FlashDevice> PmGcl<D> {
    /// The strategy over a wholly erased device.
    pub fn new(device: D, params: &Params) -> Result<Self, FtlBuildError> {
        let slots = device.geometry().pages_per_block as usize;
        let base = Base::new(device, &INFO, params, slots)?;
        let geometry = base.geometry;
        let mut open = RingSet::new(geometry.units());
        let mut units = Vec::with_capacity(geometry.units() as usize);
        for unit in 0..geometry.units() {
            let mut empty = VecDeque::with_capacity(geometry.blocks_per_unit() as usize);
            let all = (0..geometry.blocks_per_unit()).map(|block| geometry.block(UnitId(unit), block));
            empty.extend(all.filter(|block| !base.device.is_bad(*block)).map(|block| block.0));
            if !empty.is_empty() {
                open.insert(unit);
            }
            units.push(Unit { empty, active: None, next_page: 0 });
        }
        Ok(Self {
            table: PageTable::new(base.logical_pages as u32, geometry.pages()),
            units,
            open,
            full: Candidates::new(geometry.units(), geometry.blocks_per_unit()),
            filled: 0,
            live: vec![0; geometry.blocks() as usize],
            rotor: 0,
            free_pages: base.logical_pages,
            moves: Vec::with_capacity(slots),
            base,
        })
    }

    fn next_unit(&self, unit: u32) -> u32 {
        if unit + 1 == self.base.geometry.units() { 0 } else { unit + 1 }
    }

    /// The page that the next allocation gets. There is one whenever `free_pages` is not 0.
    fn next_page(&self) -> Ppn {
        let unit = self.open.first_from(self.rotor).expect("a unit with room, since pages are free");
        let space = &self.units[unit as usize];
        match space.active {
            Some(block) => self.base.geometry.page(BlockId(block), space.next_page),
            None => self.base.geometry.page(BlockId(space.empty[0]), 0),
        }
    }

    /// Takes the page that [`Self::next_page`] gave, after it was programmed, and maps `lpn` to it.
    fn allocate_page(&mut self, lpn: Lpn, page: Ppn) {
        let geometry = &self.base.geometry;
        let block = geometry.block_of(page);
        let unit = geometry.unit_of(block).0;
        let space = &mut self.units[unit as usize];
        if space.active.is_none() {
            space.active = space.empty.pop_front();
            space.next_page = 0;
        }
        debug_assert_eq!(space.active, Some(block.0));
        space.next_page += 1;
        self.free_pages -= 1;
        self.live[block.index()] += 1;
        let is_full = space.next_page == geometry.pages_per_block;
        if is_full {
            space.active = None;
            if space.empty.is_empty() {
                self.open.remove(unit);
            }
        }
        self.rotor = self.next_unit(unit);
        let old = self.table.allocate_page(lpn, page);
        self.base.stats.map_updates += 1;
        self.base.stats.map_update_bytes += PageTable::MODEL_ENTRY_BYTES;
        match old {
            Some(old) => self.invalidate(old),
            None => self.base.stats.live_pages += 1,
        }
        // Queued last: the old version may have been in this very block.
        if is_full {
            self.full.insert(block.0, self.live[block.index()], self.filled);
            self.filled += 1;
        }
    }

    #[inline]
    fn invalidate(&mut self, page: Ppn) {
        let block = self.base.geometry.block_of(page);
        let live = &mut self.live[block.index()];
        *live -= 1;
        if self.full.contains(block.0) {
            self.full.lower(block.0, *live);
        }
    }

    /// Collects full blocks until `needed` pages are free.
    fn make_room(&mut self, needed: u64, at: SimTime) -> Result<Token, FtlError> {
        let mut done = Token::NONE;
        while self.free_pages < needed {
            let victim = self.full.first_from(self.rotor);
            let Some((block, _)) = victim.filter(|(_, live)| *live < self.base.geometry.pages_per_block)
            else {
                return Err(self.base.full(FULL, needed, self.free_pages));
            };
            let collected = self.collect(BlockId(block), at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    fn collect(&mut self, block: BlockId, at: SimTime) -> Result<Token, FtlError> {
        let geometry = self.base.geometry;
        self.moves.clear();
        let mut reads = Token::NONE;
        for index in 0..geometry.pages_per_block {
            let page = geometry.page(block, index);
            let Some(lpn) = self.table.logical(page) else { continue };
            let done = self.base.read_slot(self.moves.len(), page, Cause::Gc, at)?;
            reads = self.base.device.join(reads, done);
            self.moves.push((lpn, done));
        }
        let unit = geometry.unit_of(block).0;
        let erased = self.base.erase(block, Cause::Gc, at, reads)?;
        self.full.remove(block.0);
        let Some(mut done) = erased else {
            // A block that cannot be erased any more keeps its live pages and is never written again.
            return Ok(reads);
        };
        // Only in memory now: the erased pages may be the very ones that get other data back.
        for &(lpn, _) in &self.moves {
            self.table.release(lpn);
        }
        self.base.stats.live_pages -= self.moves.len() as u64;
        self.live[block.index()] = 0;
        self.rotor = self.next_unit(unit);
        self.units[unit as usize].empty.push_back(block.0);
        self.open.insert(unit);
        self.free_pages += u64::from(geometry.pages_per_block);
        self.base.stats.gc_runs += 1;
        for slot in 0..self.moves.len() {
            let (lpn, read) = self.moves[slot];
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

impl<D: FlashDevice> Ftl for PmGcl<D> {
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
            if let Some(old) = self.table.release(lpn) {
                self.invalidate(old);
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

impl<D: FlashDevice> Mapping for PmGcl<D> {
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
            dram_bytes: self.table.dram_bytes() + 4 * self.live.len() as u64,
            // Lazy collection starts when nothing is free, so no block is withheld from it.
            ..self.base.cost(0)
        }
    }

    fn check_invariants(&self) {
        let geometry = &self.base.geometry;
        assert_eq!(self.table.check(), self.base.stats.live_pages, "mapped pages against the count");
        let mut free_pages = 0;
        for (index, unit) in self.units.iter().enumerate() {
            let mut has_room = false;
            for block in &unit.empty {
                assert_eq!(self.base.device.write_pointer(BlockId(*block)), 0, "empty block {block}");
                assert!(!self.full.contains(*block), "block {block} both empty and full");
                free_pages += u64::from(geometry.pages_per_block);
                has_room = true;
            }
            if let Some(block) = unit.active {
                assert_eq!(
                    self.base.device.write_pointer(BlockId(block)),
                    unit.next_page,
                    "active block {block}"
                );
                assert!(!self.full.contains(block), "block {block} both active and full");
                free_pages += u64::from(geometry.pages_per_block - unit.next_page);
                has_room = true;
            }
            assert_eq!(self.open.contains(index as u32), has_room, "unit {index}");
        }
        assert_eq!(free_pages, self.free_pages, "free pages");
        for block in 0..geometry.blocks() {
            let pages = (0..geometry.pages_per_block).map(|page| geometry.page(BlockId(block), page));
            let live = pages.filter(|page| self.table.logical(*page).is_some()).count();
            assert_eq!(live as u32, self.live[block as usize], "live pages of block {block}");
        }
    }
}

impl<D: FlashDevice> Logs for PmGcl<D> {}

impl<D: FlashDevice> Deferral for PmGcl<D> {}
