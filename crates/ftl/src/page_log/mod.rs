//! The page-mapped strategies of the thesis: `PM_GCL` over single blocks, `PM_GCC` over rows of one block of
//! every unit. Which group is collected and when is theirs; how that is done, in either order, is here.
//!
//! Erase-first (the thesis): a victim's live pages are read into memory, the victim is erased, and only then
//! they are rewritten, where there is room: on a full device in the very pages that were erased. Blocks keep
//! their places; one that cannot be erased any more keeps its live pages and leaves a hole in its row.
//!
//! Copy-first: the live pages are programmed where there is room (host pages never use up the last erased
//! group, so there is), and only then is the victim erased. A loss of power in between leaves both copies,
//! and the groups that the copies went to hold nothing else, since host pages follow the erase (see
//! [`space::Lane`]): at the next start either they or the victim can be erased at once ([`spares`]). So
//! the spare group is never used up, however often the power goes.
//!
//! Invariants: see [`space`]; `live` of a group counts the mapped pages in it.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third less time")]

mod check;
mod collect;
mod recover;
mod space;
mod spares;

use crate::parts::background::{BACKGROUND_GC, BACKGROUND_WATERMARK};
use crate::parts::base::{Base, RMW, Target, UNMAPPED_READ};
use crate::parts::layer::Strategy;
use crate::parts::order::{GC_ORDER, Order, RESERVE, UNSAFE_ORDER};
use crate::parts::page_table::PageTable;
use nandscape_core::{
    Barrier, BlockId, Cost, Extent, FlashDevice, FlashError, FtlError, FtlResult, Lpn, Ppn, SimTime, Token,
    keys, state,
};
use space::Space;

keys! { pub(crate) PARAMS:
    GC_ORDER; UNSAFE_ORDER; RESERVE; BACKGROUND_GC; BACKGROUND_WATERMARK; RMW; UNMAPPED_READ;
}

/// What is collected when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    /// Full blocks, fewest live pages first, until a page is free.
    Blocks,
    /// Every row, once what is left does not do for the request.
    Everything,
}

/// A live page of a victim that waits in memory.
#[derive(Clone, Copy)]
struct Move {
    slot: usize,
    lpn: Lpn,
    read: Token,
}

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
    moves: Vec<Move>,
}

state!(impl [D: FlashDevice] PageLog<D> {
    saved: base, table, space, failed_blocks, before_copies, safe_before;
    fixed: collection, was_taken_over, moves;
});

impl<D: FlashDevice> PageLog<D> {
    #[inline(always)]
    fn map(&mut self, lpn: Lpn, page: Ppn, group: u32) {
        debug_assert_eq!(self.space.group_of(page), group, "the group of {page:?}, which holds {lpn:?}");
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

    #[inline]
    fn copies_first(&self) -> bool {
        self.base.order == Order::CopyFirst
    }
}

impl<D: FlashDevice> Strategy for PageLog<D> {
    type Device = D;

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn forget_tokens(&mut self) {
        self.before_copies = Token::NONE;
        self.space.lanes.iter_mut().for_each(|lane| lane.gate = Token::NONE);
    }

    #[inline]
    fn find(&self, lpn: Lpn) -> Option<Ppn> {
        self.table.physical(lpn)
    }

    #[inline]
    fn write_pages(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> FtlResult<Token> {
        let needed = extent.page_count(self.base.geometry.page_bytes);
        let mut done = Token::NONE;
        if needed > self.space.free_pages {
            done = self.make_room_for_request(needed, at)?;
        }
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
                    Err(FtlError::Flash(FlashError::ProgramFailed { .. })) if self.copies_first() => {
                        self.fail(group, page, at)?;
                    }
                    Err(error) => return Err(error),
                }
            };
            done = self.base.device.join(done, written);
        }
        Ok(done)
    }

    fn unmap(&mut self, lpn: Lpn) {
        if let Some(old) = self.table.release(lpn) {
            self.space.lose(old);
            assert!(self.base.stats.live_pages > 0, "{lpn:?} was live at {old:?}, and none is");
            self.base.stats.live_pages -= 1;
        }
    }

    fn make_durable(&mut self, at: SimTime) -> FtlResult<Token> {
        let safe = self.base.device.barrier(Barrier::Durable, at)?;
        if self.copies_first() {
            self.before_copies = self.base.both(self.before_copies, safe);
            let filled = self.space.filled;
            assert!(self.safe_before <= filled, "{} groups are safe, of {filled}", self.safe_before);
            self.safe_before = filled;
        }
        Ok(safe)
    }

    fn step_in_background(&mut self, wanted_pages: u64, at: SimTime) -> FtlResult<Option<Token>> {
        self.collect_in_background(wanted_pages, at)
    }

    fn costs(&self) -> Cost {
        // The thesis counts live pages where it chooses by them, and nothing else of the space.
        let space_bytes = match (self.base.order, self.collection) {
            (Order::CopyFirst, _) => self.space.dram_bytes(),
            (Order::EraseFirst, Collection::Blocks) => 4 * u64::from(self.base.geometry.blocks()),
            (Order::EraseFirst, Collection::Everything) => 0,
        };
        let spares = self.space.wanted_spares as u64 * u64::from(self.space.width.divisor());
        Cost {
            map_table_bytes: self.base.logical_pages * PageTable::MODEL_ENTRY_BYTES,
            dram_bytes: self.table.dram_bytes() + space_bytes,
            ..self.base.cost(spares)
        }
    }

    fn check(&self) {
        check::check(self);
    }
}
