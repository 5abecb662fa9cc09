//! The page-mapped strategies of the thesis where copies come first: `PM_GCL` over single blocks, `PM_GCC`
//! over rows of one block of every unit. Which group is collected and when is theirs; how it is done without
//! ever having the only version of a page in memory is here.
//!
//! A victim's live pages are read, programmed where there is room (host pages never use up the last erased
//! group, so there is), and only then is the victim erased. A loss of power in between leaves both copies,
//! and the groups that the copies went to hold nothing else, since host pages follow the erase (see
//! [`space::Lane`]): at the next start either they or the victim can be erased at once ([`spares`]). So
//! the spare group is never used up, however often the power goes.
//!
//! Invariants: see [`space`]; `live` of a group counts the mapped pages in it.

mod check;
mod collect;
mod recover;
mod space;
mod spares;

use crate::error::FtlBuildError;
use crate::parts::base::{Base, Target};
use crate::parts::page_table::PageTable;
use nandscape_core::{
    Barrier, BlockId, Cost, Deferral, Extent, FlashDevice, FlashError, Ftl, FtlError, FtlStats, Hint, Info,
    Logs, Lpn, Mapping, Params, Ppn, SimTime, Token,
};
use space::Space;

/// What is collected when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    /// Full blocks, fewest live pages first, until a page is free.
    Blocks,
    /// Every row, once what is left does not do for the request.
    Everything,
}

const FULL: &str = "no block with an invalid page";

/// A page-mapped strategy over a device.
pub(crate) struct PageLog<D> {
    base: Base<D>,
    table: PageTable,
    space: Space,
    collection: Collection,
    /// Blocks in which a program failed and that still hold live pages.
    failed_blocks: Vec<BlockId>,
    /// Copies come after this: the erases of the start, and the last barrier.
    before_copies: Token,
    /// Groups that were filled before this are safe from a loss of power once that completes.
    safe_before: u64,
    /// It held data when it was opened.
    was_taken_over: bool,
    /// Pages of a victim that wait in memory.
    moves: Vec<(Lpn, Token)>,
}

impl<D: FlashDevice> PageLog<D> {
    /// Takes a device over, erased or with data that its journal knows.
    pub(crate) fn new(
        device: D,
        info: &'static Info,
        params: &Params,
        collection: Collection,
    ) -> Result<Self, FtlBuildError> {
        recover::open(device, info, params, collection)
    }

    /// Maps a page that was programmed.
    fn map(&mut self, lpn: Lpn, page: Ppn, group: u32) {
        // Before the group can become a candidate: the old version may be in this very group.
        let old = self.table.allocate_page(lpn, page);
        match old {
            Some(old) => self.space.lose(old),
            None => self.base.stats.live_pages += 1,
        }
        self.space.took(&self.base, group);
        self.base.stats.map_updates += 1;
        self.base.stats.map_update_bytes += PageTable::MODEL_ENTRY_BYTES;
    }

    /// Writes the pages of a request one by one, each with a page free for it.
    fn write_pages(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        self.base.check_writable()?;
        let mut done = self.make_room_for_request(extent.page_count(self.base.geometry.page_bytes), at)?;
        for span in self.base.spans(extent) {
            let written = loop {
                let Some((page, group)) = self.space.next_page() else {
                    let collected = self.make_room(1, at)?;
                    done = self.base.device.join(done, collected);
                    continue;
                };
                let target = Target { after: self.space.gate(group), ..Target::at(page) };
                let old = self.table.physical(span.lpn);
                match self.base.write_span(old, target, &span, data, at) {
                    Ok(written) => {
                        self.map(span.lpn, page, group);
                        break written;
                    }
                    Err(FtlError::Flash(FlashError::ProgramFailed { .. })) => self.fail(group, page, at)?,
                    Err(error) => return Err(error),
                }
            };
            done = self.base.device.join(done, written);
        }
        Ok(done)
    }

    /// Makes everything written so far safe from a loss of power.
    fn make_safe(&mut self, at: SimTime) -> Result<Token, FtlError> {
        let safe = self.base.device.barrier(Barrier::Durable, at)?;
        self.before_copies = self.base.both(self.before_copies, safe);
        self.safe_before = self.space.filled();
        Ok(safe)
    }

    fn drop_pages(&mut self, extent: Extent, at: SimTime) -> Result<(), FtlError> {
        let mapped = self.base.whole_pages(extent).filter(|lpn| self.table.is_allocated(*lpn));
        self.base.drop_runs(mapped.collect::<Vec<_>>().into_iter(), at)?;
        for lpn in self.base.whole_pages(extent) {
            if let Some(old) = self.table.release(lpn) {
                self.space.lose(old);
                self.base.stats.live_pages -= 1;
            }
        }
        Ok(())
    }
}

impl<D: FlashDevice> Ftl for PageLog<D> {
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
        let written = self.write_pages(extent, data, at);
        self.base.note(written)
    }

    fn trim(&mut self, extent: Extent, at: SimTime) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        self.base.check_writable()?;
        let dropped = self.drop_pages(extent, at);
        self.base.note(dropped)?;
        Ok(Token::NONE)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> Result<Token, FtlError> {
        self.base.check(extent)?;
        self.base.check_writable()?;
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
        let flushed = self.make_safe(at);
        self.base.note(flushed)
    }

    fn idle(&mut self, _at: SimTime, _until: SimTime) -> Result<(), FtlError> {
        Ok(())
    }

    fn read_only(&self) -> Option<&'static str> {
        self.base.read_only
    }

    fn device(&self) -> &dyn FlashDevice {
        &self.base.device
    }

    fn device_mut(&mut self) -> &mut dyn FlashDevice {
        &mut self.base.device
    }
}

impl<D: FlashDevice> Mapping for PageLog<D> {
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
        let spares = self.space.wanted_spares as u64 * u64::from(self.space.width);
        Cost {
            map_table_bytes: self.base.logical_pages * PageTable::MODEL_ENTRY_BYTES,
            dram_bytes: self.table.dram_bytes() + self.space.dram_bytes(),
            ..self.base.cost(spares)
        }
    }

    fn check_invariants(&self) {
        check::check(self);
    }
}

impl<D: FlashDevice> Logs for PageLog<D> {}

impl<D: FlashDevice> Deferral for PageLog<D> {}
