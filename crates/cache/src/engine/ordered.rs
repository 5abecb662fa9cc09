//! A cache on a store that is written in order: a slot is written once and whole, what is written again goes
//! to the next slot, and a region of slots is given up as a whole. Nothing is moved to make room.
//!
//! While a region is written, the blocks of the one that leaves next are let go in step, so that it is empty
//! when the other is full, and no request waits for a whole region.

use super::directory::{Leaving, Log, Piece};
use super::timeline::{Bytes, Gather, Moment, Place};
use super::write::Stored;
use super::{Cache, CacheError, Result};
use nandscape_core::Op;
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;
use std::ops::Range;

/// A region is empty before the other is full by this part of its slots, so that its reset and the commit
/// before have their time.
const LEAD: u32 = 32;

impl<E: Eviction> Cache<E> {
    /// The next slot; `None` if no region can be emptied.
    pub(super) fn take_in_order(&mut self) -> Result<Option<u32>> {
        let is_open = self.directory.log.as_ref().is_some_and(|log| log.taken().is_some());
        if !(is_open || self.open_region()? || self.empty_region()? && self.open_region()?) {
            return Ok(None);
        }
        self.leave_in_step()?;
        let Some((slot, ready)) = self.directory.take_in_order() else { return Ok(None) };
        self.timeline.hold(Place::slot(slot), ready);
        Ok(Some(slot))
    }

    /// Begins to write a free region. `false` if there is none.
    fn open_region(&mut self) -> Result<bool> {
        let Some(free) = self.directory.open_region() else { return Ok(false) };
        if free.is_stale {
            let ready = self.reset_region(free.region)?;
            self.directory.open_from(ready);
        }
        Ok(true)
    }

    /// The slots of the region that leaves, which is chosen if there is none, and how many were looked at.
    fn leaving(&mut self) -> Option<(Range<u32>, u32)> {
        if self.directory.log.as_ref()?.leaving().is_none() && !self.directory.choose_region() {
            return None;
        }
        let log = self.directory.log.as_ref()?;
        log.leaving().map(|Leaving { region, seen }| (log.slots(region), seen))
    }

    /// Lets go what has to be gone by now of the region that leaves.
    fn leave_in_step(&mut self) -> Result<()> {
        if self.directory.log.as_ref().is_none_or(Log::has_free) {
            return Ok(());
        }
        let Some((slots, seen)) = self.leaving() else { return Ok(()) };
        let per = slots.len() as u32;
        let taken = self.directory.log.as_ref().and_then(Log::taken);
        let target = taken.map_or(per, |taken| taken + 1 + per.div_ceil(LEAD)).min(per);
        for index in seen..target {
            self.let_go_next(slots.start, index)?;
        }
        if seen < per && target == per {
            self.finish_region()?;
        }
        Ok(())
    }

    /// Lets the next block leave, whose region is given up. `false` if no region can be chosen.
    pub(super) fn evict_in_order(&mut self) -> Result<bool> {
        let used = self.used();
        for _ in 0..self.directory.log.as_ref().map_or(0, Log::count) {
            let Some((slots, seen)) = self.leaving() else { return Ok(false) };
            for index in seen..slots.len() as u32 {
                self.let_go_next(slots.start, index)?;
                if self.used() < used {
                    return Ok(true);
                }
            }
            if !self.finish_region()? {
                self.directory.keep_region();
            }
        }
        Ok(false)
    }

    /// Empties a region at once, if there is one of which everything may leave.
    fn empty_region(&mut self) -> Result<bool> {
        for _ in 0..self.directory.log.as_ref().map_or(0, Log::count) {
            let Some((slots, _)) = self.leaving() else { return Ok(false) };
            for slot in slots {
                self.let_go(slot)?;
            }
            if !self.finish_region()? {
                self.directory.keep_region();
            }
            if self.directory.log.as_ref().is_some_and(Log::has_free) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets go the block of a slot of the leaving region, which begins at `first`.
    fn let_go_next(&mut self, first: u32, index: u32) -> Result<()> {
        self.let_go(first + index)?;
        if let Some(log) = &mut self.directory.log {
            log.see(index + 1);
        }
        Ok(())
    }

    /// The block of a slot leaves, to the disk if it is dirty. It stays if the command under way needs it, or
    /// its disk refuses it.
    fn let_go(&mut self, slot: u32) -> Result<()> {
        if self.directory.slots.valid(slot) == 0 || self.directory.pinned.has(slot) {
            return Ok(());
        }
        self.make_note_room()?;
        match self.make_clean(slot) {
            Ok(()) => self.vacate(slot, false),
            Err(CacheError::Slow { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Resets the region that leaves, if nothing is left in it once the metadata are committed.
    fn finish_region(&mut self) -> Result<bool> {
        let Some(Leaving { region, .. }) = self.directory.log.as_ref().and_then(Log::leaving) else {
            return Ok(false);
        };
        if self.directory.log.as_ref().is_some_and(|log| !log.is_empty(region)) {
            self.commit()?;
        }
        let Some(log) = self.directory.log.as_ref().filter(|log| log.is_empty(region)) else {
            return Ok(false);
        };
        let ready = if log.is_bad(region) { Moment::PAST } else { self.reset_region(region)? };
        self.directory.free_region(ready);
        Ok(true)
    }

    /// Resets a region when nothing is under way to its slots, and gives when that is done.
    fn reset_region(&mut self, region: u32) -> Result<Moment> {
        let Some(log) = &self.directory.log else { return Ok(Moment::PAST) };
        let (extent, slots) = (log.extent(region), log.slots(region));
        let mut all = Gather::default();
        if self.timeline.has_holds() {
            for slot in slots {
                let free_at = self.timeline.free_at(Place::slot(slot));
                self.timeline.gather(&mut all, free_at);
            }
        }
        // No slot of it is used before the commit by which its blocks are gone.
        self.timeline.gather(&mut all, self.durability.commits.last);
        let after = self.timeline.close(&mut all);
        self.at_fast(Op::Trim, extent, Bytes::None, after)
    }

    /// What the store of a cache that was opened has of its regions.
    pub(super) fn find_regions(&mut self) {
        let store = &self.timeline.side(super::FAST).store;
        let written = |extent| {
            let found = store.allocation(extent);
            if found.is_mapped { found.bytes } else { 0 }
        };
        self.directory.find_regions(written);
    }

    /// Writes a piece with the rest of its block to a slot that nothing was written to.
    pub(super) fn store_in_order(
        &mut self,
        slot: u32,
        key: BlockKey,
        piece: Piece,
        bytes: &Bytes<'_>,
        makes_dirty: bool,
    ) -> Result<bool> {
        let data = if let Bytes::Write(data) = bytes { data } else { &[][..] };
        let covered = self.directory.shape.covered(piece);
        let entry = self.directory.slots.entry(slot);
        let keep = entry.valid & !covered;
        let brought = self.directory.shape.whole(piece) & !covered & !entry.valid;
        let mut written = Moment::PAST;
        let (slot, lost, was_dirty) = if entry.valid == 0 {
            let done = self.write_whole(slot, slot, piece, data, (keep, brought));
            written = done.inspect_err(|_| self.directory.unsettle(slot))?;
            (slot, 0, entry.dirty != 0)
        } else {
            let moved = self.renew_with(slot, keep, makes_dirty, |cache, target| {
                written = cache.write_whole(slot, target, piece, data, (keep, brought))?;
                Ok(())
            });
            match moved {
                Ok(Some(moved)) => (moved.slot, moved.lost, moved.was_dirty),
                Ok(None) => return self.store_past(slot, key, piece, Bytes::of(data)),
                Err(error) => {
                    if !makes_dirty {
                        // The disk has what is newer.
                        self.forget(slot, self.directory.shape.touched(piece), false)?;
                    }
                    return Err(error);
                }
            }
        };
        self.wait(written);
        self.watch_device(Op::Write, written);
        let stays_dirty = was_dirty && makes_dirty;
        self.note_stored(slot, piece, Stored { brought, lost, stays_dirty, makes_dirty });
        Ok(true)
    }

    /// Writes a whole block to `target`: sub-blocks that `slot` has, those that come from the disk, and a
    /// piece.
    fn write_whole(
        &mut self,
        slot: u32,
        target: u32,
        piece: Piece,
        data: &[u8],
        (keep, brought): (u16, u16),
    ) -> Result<Moment> {
        let block = self.directory.shape.block_bytes();
        let key = self.directory.slots.key(target);
        let mut memory = self.buffers.take(block.into());
        let mut all = Gather::default();
        let mut done = Ok(());
        for (mask, is_cached) in [(keep, true), (brought, false)] {
            let mut rest = mask;
            while done.is_ok()
                && let Some((start, end, others)) = self.directory.shape.run(rest, piece.limit)
            {
                rest = others;
                let part = memory.get_mut(start as usize..end as usize).unwrap_or_default();
                let read = if is_cached {
                    self.at_slot(Op::Read, slot, start, end, Bytes::into(part), Moment::PAST)
                } else {
                    let extent = self.directory.on_disk(key, start, end);
                    self.at_disk(Op::Read, key.volume(), extent, Bytes::into(part), Moment::PAST)
                };
                done = read.map(|read| self.timeline.gather(&mut all, read));
            }
        }
        let read = self.timeline.close(&mut all);
        if !memory.is_empty() {
            memory[piece.start as usize..piece.end as usize].copy_from_slice(data);
            memory[piece.limit as usize..].fill(0);
        }
        let written = done.and_then(|()| self.at_slot(Op::Write, target, 0, block, Bytes::of(&memory), read));
        self.timeline.hold(Place::slot(target), read);
        self.buffers.give(memory);
        written
    }
}
