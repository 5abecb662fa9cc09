//! The SLC cache: blocks with one bit a cell that take host writes first ([`nandscape_core::SlcBlocks`]).
//!
//! It is a static cache: its blocks are always the same ones and are no part of the capacity. Writes fill
//! them round robin over the dies. Once it is full, writes go to the other blocks as if it were not there;
//! they do not wait for it. While the host is idle the block that was filled first is folded: its valid pages
//! are copied to the host's log, and it is erased. A block whose pages were all overwritten or trimmed is
//! erased as soon as its turn has come and a write wants it.
//!
//! Invariants: a block of the cache has the state [`BlockState::Cache`] while it is free, open or full, so
//! that no victim policy sees it; `room` is the number of pages that can be programmed in free and open
//! blocks.

use super::{PageMap, logs};
use crate::victim::BlockState;
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, FtlResult, Geometry, Issue, Lpn, Oob, Ppn, SimTime, SlcBlocks,
    SlcStatus, Token, state,
};
use std::collections::VecDeque;

/// The blocks of the cache by what they are.
#[derive(Debug)]
pub(super) struct Slc {
    pub blocks: SlcBlocks,
    lanes: Vec<Lane>,
    /// The lane that is written next.
    cursor: usize,
    /// Pages that are written on one die before the next die's turn.
    width: u32,
    pages_per_block: u32,
    blocks_per_lane: u32,
    /// Full blocks, the one that was filled first in front.
    full: VecDeque<u32>,
    room: u64,
    good_blocks: u32,
    /// The host must have been idle so long before a block is folded.
    fold_after_ns: u64,
    /// When the last command of the host came.
    last_command: SimTime,
    /// Pages that the host wrote here since the last reset.
    pub host_pages: u64,
}

/// The cache's blocks of one die.
#[derive(Debug, Default)]
struct Lane {
    /// Erased blocks in the order of their erases.
    free: VecDeque<u32>,
    /// The open block: its number, its next page, the border of a program unit, and one past its last page.
    /// Without a block the pages are 0.
    block: u32,
    next: u32,
    border: u32,
    end: u32,
}

state!(impl [] Slc {
    saved: cursor, full, room, good_blocks, last_command, host_pages;
    tables: lanes;
    fixed: blocks, width, pages_per_block, blocks_per_lane, fold_after_ns;
});

state!(impl [] Lane { saved: free, block, next, border, end; });

impl Slc {
    /// The erased blocks are free; those that are not wait for [`Self::adopt`].
    pub fn new<D: FlashDevice>(device: &D, blocks: SlcBlocks, fold_after_ns: u64) -> Self {
        let Geometry { planes_per_die, blocks_per_plane, pages_per_block, .. } = *device.geometry();
        let capabilities = device.capabilities();
        let units = capabilities.units_per_page;
        let mut this = Self {
            blocks,
            lanes: Vec::new(),
            cursor: 0,
            width: blocks.program_pages(capabilities.program_pages / units) * units,
            pages_per_block,
            blocks_per_lane: device.geometry().blocks_per_unit(),
            full: VecDeque::new(),
            room: 0,
            good_blocks: 0,
            fold_after_ns,
            last_command: SimTime::ZERO,
            host_pages: 0,
        };
        for lane in 0..device.geometry().units() {
            let of_lane = planes_per_die * blocks.per_plane();
            let mut free = VecDeque::with_capacity(of_lane as usize);
            // Neighbouring blocks of different planes follow each other.
            for i in 0..of_lane {
                let in_lane = i % planes_per_die * blocks_per_plane + i / planes_per_die;
                let block = lane * this.blocks_per_lane + in_lane;
                if device.is_bad(BlockId(block)) {
                    continue;
                }
                this.good_blocks += 1;
                if device.write_pointer(BlockId(block)) == 0 {
                    free.push_back(block);
                    this.room += u64::from(blocks.pages());
                }
            }
            this.lanes.push(Lane { free, ..Lane::default() });
        }
        this.full.reserve(this.good_blocks as usize);
        this
    }

    /// The page that is programmed next, and its block.
    #[inline]
    fn place(&mut self) -> Option<(Ppn, u32)> {
        if self.room == 0 {
            return None;
        }
        loop {
            let lane = &mut self.lanes[self.cursor];
            debug_assert!(lane.next <= lane.end, "page {} of block {} of the cache", lane.next, lane.block);
            if lane.next < lane.end {
                return Some((Ppn(lane.next), lane.block));
            }
            if let Some(block) = lane.free.pop_front() {
                self.open(block, 0);
            } else {
                self.step();
            }
        }
    }

    const fn step(&mut self) {
        self.cursor = if self.cursor + 1 == self.lanes.len() { 0 } else { self.cursor + 1 };
    }

    /// Goes on in a block from its page `next`.
    fn open(&mut self, block: u32, next: u32) {
        let first = block * self.pages_per_block;
        let end = first + self.blocks.pages();
        let border = (next / self.width + 1) * self.width;
        assert!(first + next < end, "block {block} of the cache is opened at page {next}");
        let lane = &mut self.lanes[(block / self.blocks_per_lane) as usize];
        (lane.block, lane.next, lane.border, lane.end) = (block, first + next, end.min(first + border), end);
    }

    /// The page at the cursor was programmed.
    #[inline]
    fn programmed(&mut self) {
        debug_assert!(self.room > 0, "a page was programmed in a cache that is full");
        self.room -= 1;
        self.host_pages += 1;
        let width = self.width;
        let lane = &mut self.lanes[self.cursor];
        lane.next += 1;
        if lane.next == lane.border {
            lane.border = lane.end.min(lane.next + width);
            if lane.next == lane.end {
                self.full.push_back(lane.block);
            }
            self.step();
        }
    }

    /// Takes over a block that was written to page `next` when the device was last used. Those of the cache
    /// come in the order in which they were begun.
    pub fn adopt(&mut self, block: u32, next: u32) {
        assert!(next > 0, "block {block} of the cache holds pages, and is erased");
        let lane = &self.lanes[(block / self.blocks_per_lane) as usize];
        if next < self.blocks.pages() && lane.next == lane.end {
            self.open(block, next);
            self.room += u64::from(self.blocks.pages() - next);
        } else {
            self.full.push_back(block);
        }
    }

    /// The block at the cursor failed a program. Gives the block.
    fn abandon(&mut self) -> u32 {
        let lane = &mut self.lanes[self.cursor];
        assert!(lane.next < lane.end, "block {} of the cache failed a program, and is full", lane.block);
        self.room -= u64::from(lane.end - lane.next);
        (lane.next, lane.border, lane.end) = (0, 0, 0);
        lane.block
    }

    /// A block was emptied and erased.
    pub fn release(&mut self, block: u32) {
        assert!(self.blocks.contains(BlockId(block)), "block {block} is none of the cache's");
        self.lanes[(block / self.blocks_per_lane) as usize].free.push_back(block);
        self.room += u64::from(self.blocks.pages());
    }

    /// A block that could not be erased is the one that was filled first again.
    pub fn take_back(&mut self, block: u32) {
        self.full.push_front(block);
    }

    /// A block is given up.
    pub const fn retire(&mut self) {
        self.good_blocks -= 1;
    }

    /// A command of the host comes.
    #[inline]
    pub fn note_command(&mut self, at: SimTime) {
        self.last_command = self.last_command.max(at);
    }

    pub fn status(&self, page_bytes: u32) -> SlcStatus {
        let pages = u64::from(self.good_blocks) * u64::from(self.blocks.pages());
        SlcStatus { capacity_bytes: pages * u64::from(page_bytes), host_pages: self.host_pages }
    }

    pub fn bytes(&self) -> u64 {
        u64::from(self.good_blocks) * 2 * size_of::<u32>() as u64
            + (self.lanes.len() * size_of::<Lane>()) as u64
    }

    /// Checks the lists against the device; panics with the values.
    pub fn check(&self, state: impl Fn(u32) -> BlockState, write_pointer: impl Fn(u32) -> u32) {
        let mut room = 0;
        let mut listed: Vec<u32> = self.full.iter().copied().collect();
        for lane in &self.lanes {
            for block in &lane.free {
                assert_eq!(write_pointer(*block), 0, "free block {block} of the cache");
                room += u64::from(self.blocks.pages());
            }
            listed.extend(&lane.free);
            if lane.next < lane.end {
                let next = lane.next % self.pages_per_block;
                assert_eq!(write_pointer(lane.block), next, "open block {} of the cache", lane.block);
                room += u64::from(lane.end - lane.next);
                listed.push(lane.block);
            }
        }
        assert_eq!(self.room, room, "pages that can be programmed in the cache");
        let count = listed.len();
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed.len(), count, "a block of the cache is listed twice");
        for block in listed {
            assert!(self.blocks.contains(BlockId(block)), "block {block} is none of the cache's");
            assert_eq!(state(block), BlockState::Cache, "state of block {block}");
        }
    }
}

impl<D: FlashDevice> PageMap<D> {
    /// Whether a block is one of the SLC cache.
    pub(super) fn is_slc(&self, block: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.blocks.contains(BlockId(block)))
    }

    /// Programs a page of the host in the cache; `None` if there is none, or it is full.
    #[inline(never)]
    pub(super) fn append_cached(
        &mut self,
        lpn: Lpn,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FtlResult<Option<(Ppn, Token)>> {
        loop {
            let Some(slc) = self.slc.as_deref_mut() else { return Ok(None) };
            slc.note_command(issue.at);
            let Some((page, block)) = slc.place() else {
                if self.recycle(issue.at)? {
                    continue;
                }
                return Ok(None);
            };
            let oob = Oob { lpn, stream: logs::HOST as u16, seq: self.seq };
            match self.device.program(page, oob, transfer, data, issue) {
                Ok(done) => {
                    debug_assert_eq!(self.blocks.block_of(page), block, "the block of {page:?} of the cache");
                    slc.programmed();
                    self.seq += 1;
                    self.blocks.set(page, block);
                    return Ok(Some((page, done)));
                }
                Err(FlashError::ProgramFailed { .. } | FlashError::BadBlock { .. }) => {
                    let block = slc.abandon();
                    self.blocks.infos[block as usize].state = BlockState::Failed;
                    self.note_failed(0, block);
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    /// Erases the block that was filled first if nothing in it is valid; whether it did.
    fn recycle(&mut self, at: SimTime) -> FtlResult<bool> {
        let oldest = self.slc.as_ref().and_then(|slc| slc.full.front().copied());
        let empty = oldest.filter(|block| self.blocks.infos[*block as usize].valid == 0);
        empty.map_or(Ok(false), |block| self.fold(block, at).map(|_| true))
    }

    /// Copies what is valid in the block of the cache that was filled first, and erases it. Gives the
    /// completion of the erase.
    fn fold(&mut self, block: u32, at: SimTime) -> FtlResult<Token> {
        let issue = Issue::new(at, Cause::Fold);
        let slc = self.slc.as_deref_mut().expect("it has blocks");
        assert_eq!(slc.full.pop_front(), Some(block), "the block of the cache that was filled first");
        self.blocks.infos[block as usize].state = BlockState::Victim;
        match self.empty(0, block, u32::MAX, issue) {
            Ok(moved) => self.erase(0, block, issue.after(moved)),
            Err(error) => {
                self.keep_cached(block);
                Err(error)
            }
        }
    }

    /// A block of the cache could not be emptied or erased, and stays what it was.
    pub(super) fn keep_cached(&mut self, block: u32) {
        let state = std::mem::replace(&mut self.blocks.infos[block as usize].state, BlockState::Cache);
        assert_eq!(state, BlockState::Victim, "block {block}, which was to be emptied");
        self.slc.as_deref_mut().expect("a block of it").take_back(block);
    }

    /// Folds blocks in the host's idle time, each once the one before is done. With a scheduler that does not
    /// know ends at submission, one block for each call.
    pub(super) fn fold_while_idle(&mut self, at: SimTime, until: SimTime) -> FtlResult<()> {
        let Some(slc) = &self.slc else { return Ok(()) };
        let mut now = at.max(self.device.idle_from()).max(slc.last_command + slc.fold_after_ns);
        while now < until
            && self.trouble.stopped.is_none()
            && let Some(block) = self.slc.as_ref().and_then(|slc| slc.full.front().copied())
            && self.make_room_to_fold(block, now)?
        {
            let erased = self.fold(block, now)?;
            match self.device.completion(erased) {
                Some(end) => now = end,
                None => break,
            }
        }
        Ok(())
    }

    /// Collects until the other blocks have room for what a block of the cache holds, and collection still
    /// has the room that it needs; whether they have.
    fn make_room_to_fold(&mut self, block: u32, at: SimTime) -> FtlResult<bool> {
        let valid = u64::from(self.blocks.infos[block as usize].valid);
        if valid > 0 {
            self.collect_up_to(0, self.domains[0].marks.low_pages + valid, at)?;
        }
        let domain = &self.domains[0];
        Ok(valid == 0 || domain.counts.free_pages >= domain.marks.floor_pages(false) + valid)
    }
}
