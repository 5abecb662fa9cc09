//! Writes and discards.

use super::shape::Piece;
use super::side::Bytes;
use super::steps::{Moment, Place};
use super::{Cache, CacheError, Mode, part};
use crate::admission::Bypass;
use crate::eviction::Eviction;
use crate::key::BlockKey;
use nandscape_core::{Command, Extent, Op};

impl<E: Eviction> Cache<E> {
    pub(super) fn write(
        &mut self,
        volume: u16,
        command: Command,
        data: Option<&[u8]>,
    ) -> Result<(), CacheError> {
        let asked = self.ask(volume, command);
        match self.active_mode() {
            Mode::WriteBack | Mode::WriteOnly => self.write_cached(volume, command.extent, data, asked, true),
            Mode::WriteThrough => {
                if let Err(error) = self.write_disk(Op::Write, volume, command.extent, data) {
                    // Nobody knows what is on the disk now, so nothing clean may claim to equal it.
                    self.forget_clean(volume, command.extent)?;
                    return Err(error);
                }
                self.pin_dirty(volume, command.extent, true);
                let done = self.write_cached(volume, command.extent, data, asked, false);
                self.pin_dirty(volume, command.extent, false);
                done
            }
            Mode::WriteAround | Mode::PassThrough => {
                self.count_around(volume, command.extent);
                self.write_around(Op::Write, volume, command.extent, data)
            }
        }
    }

    /// Discards in the cache and on the disk.
    pub(super) fn trim(&mut self, volume: u16, command: Command) -> Result<(), CacheError> {
        self.write_around(command.op, volume, command.extent, None)
    }

    /// To the disk, and out of the cache. What is dirty may be dropped only then: a commit between would leave the disk with what is older.
    fn write_around(
        &mut self,
        op: Op,
        volume: u16,
        extent: Extent,
        data: Option<&[u8]>,
    ) -> Result<(), CacheError> {
        self.clean_edges(volume, extent)?;
        if let Err(error) = self.write_disk(op, volume, extent, data) {
            self.forget_clean(volume, extent)?;
            return Err(error);
        }
        self.pin_dirty(volume, extent, true);
        let done = self.give_up(volume, extent, op != Op::Write);
        self.pin_dirty(volume, extent, false);
        done
    }

    /// The part of a command that goes to the disk as it is.
    fn write_disk(
        &mut self,
        op: Op,
        volume: u16,
        extent: Extent,
        data: Option<&[u8]>,
    ) -> Result<(), CacheError> {
        let after = self.guard(volume, extent)?;
        let written = self.at_disk(op, volume, extent, data.map_or(Bytes::None, Bytes::Write), after)?;
        self.wait(written);
        Ok(())
    }

    /// Writes to the cache. What it does not take goes to the disk where the blocks would have become dirty; otherwise it is there already.
    fn write_cached(
        &mut self,
        volume: u16,
        extent: Extent,
        data: Option<&[u8]>,
        asked: Result<(), Bypass>,
        makes_dirty: bool,
    ) -> Result<(), CacheError> {
        let (first, end) = self.shape.blocks(extent);
        // Neighbouring blocks that go past the cache make one write.
        let mut past: Option<Extent> = None;
        for block in first..end {
            self.make_note_room()?;
            let piece = self.shape.piece(extent, block, self.capacity(volume));
            let key = BlockKey::new(volume, block);
            let found = self.index.find(key, &self.slots);
            let slot = if let Some(slot) = found {
                self.counts.write_hits += 1;
                self.pinned.clear(slot);
                let (policy, local) = self.policy(slot);
                policy.hit(local);
                Some(slot)
            } else {
                self.counts.write_misses += 1;
                let slot = self.insert(key, Op::Write, asked)?.ok();
                self.counts.bypassed += u64::from(slot.is_none());
                slot
            };
            if let Some(slot) = slot {
                self.store(slot, key, piece, part(data, extent, self.shape, piece), makes_dirty)?;
            } else if makes_dirty {
                let start = self.shape.offset(block) + u64::from(piece.start);
                let piece = Extent::new(start, u64::from(piece.end - piece.start));
                past = match past {
                    Some(run) if run.end() == piece.offset => {
                        Some(Extent::new(run.offset, run.len + piece.len))
                    }
                    run => {
                        self.write_past(volume, run, extent, data)?;
                        Some(piece)
                    }
                };
            }
        }
        self.write_past(volume, past, extent, data)
    }

    fn write_past(
        &mut self,
        volume: u16,
        run: Option<Extent>,
        extent: Extent,
        data: Option<&[u8]>,
    ) -> Result<(), CacheError> {
        let Some(run) = run else { return Ok(()) };
        let start = (run.offset - extent.offset) as usize;
        let data = data.map(|data| &data[start..start + run.len as usize]);
        self.write_disk(Op::Write, volume, run, data)
    }

    /// A slot for a block that is not cached, if it may enter and there is one. The block is in it, with nothing valid.
    pub(super) fn insert(
        &mut self,
        key: BlockKey,
        op: Op,
        asked: Result<(), Bypass>,
    ) -> Result<Result<u32, Bypass>, CacheError> {
        if let Err(why) = asked.and_then(|()| self.may_insert(key, op)) {
            return Ok(Err(why));
        }
        let set = self.set(key);
        self.policies[set as usize].miss(key);
        self.insert_somewhere(key)
    }

    /// A slot for a block that may enter.
    pub(super) fn insert_somewhere(&mut self, key: BlockKey) -> Result<Result<u32, Bypass>, CacheError> {
        let Some(slot) = self.take_slot(self.set(key))? else { return Ok(Err(Bypass::NoRoom)) };
        self.settle(slot, key);
        self.counts.inserted += 1;
        Ok(Ok(slot))
    }

    /// Writes a piece to its block's slot, or to another one where the data there must stay.
    fn store(
        &mut self,
        slot: u32,
        key: BlockKey,
        piece: Piece,
        bytes: Bytes<'_>,
        makes_dirty: bool,
    ) -> Result<(), CacheError> {
        let (touched, covered) = (self.shape.touched(piece), self.shape.covered(piece));
        let mut slot = slot;
        if self.must_move(slot) {
            let keep = self.slots.valid(slot) & !covered;
            let Some(target) = self.renew(slot, keep)? else {
                self.evacuate(slot)?;
                let start = self.shape.offset(key.block()) + u64::from(piece.start);
                let extent = Extent::new(start, u64::from(piece.end - piece.start));
                let after = self.guard(key.volume(), extent)?;
                let written = self.at_disk(Op::Write, key.volume(), extent, bytes, after)?;
                self.wait(written);
                return Ok(());
            };
            slot = target;
        }
        let missing = touched & !covered & !self.slots.valid(slot);
        let done = self.bring(slot, missing);
        let done =
            done.and_then(|()| self.at_slot(Op::Write, slot, piece.start, piece.end, bytes, Moment::PAST));
        match done {
            Ok(written) => self.wait(written),
            Err(error) => {
                if self.slots.valid(slot) == 0 {
                    self.unsettle(slot);
                }
                return Err(error);
            }
        }
        let entry = self.slots.entry(slot);
        let dirty = if makes_dirty { entry.dirty | touched } else { entry.dirty & !covered };
        self.record(slot, entry.valid | touched, dirty);
        Ok(())
    }

    /// Reads sub-blocks from the disk into the slot: those that a write touches only in part. The write follows.
    fn bring(&mut self, slot: u32, mask: u16) -> Result<(), CacheError> {
        let key = self.slots.key(slot);
        let limit = self.limit(key);
        let mut rest = mask;
        while let Some((start, end, others)) = self.shape.run(rest, limit) {
            let mut bytes = self.buffer(u64::from(end - start));
            let extent =
                Extent::new(self.shape.offset(key.block()) + u64::from(start), u64::from(end - start));
            let read = self.at_disk(Op::Read, key.volume(), extent, Bytes::into(&mut bytes), Moment::PAST);
            let done = read.and_then(|read| {
                self.at_slot(Op::Write, slot, start, end, Bytes::of(&bytes), read)?;
                self.steps.hold(Place::slot(slot), read);
                Ok(())
            });
            self.give_buffer(bytes);
            done?;
            let entry = self.slots.entry(slot);
            self.record(slot, entry.valid | rest & !others, entry.dirty);
            rest = others;
        }
        Ok(())
    }

    fn count_around(&mut self, volume: u16, extent: Extent) {
        let (first, end) = self.shape.blocks(extent);
        for block in first..end {
            let is_cached = self.index.find(BlockKey::new(volume, block), &self.slots).is_some();
            self.counts.write_hits += u64::from(is_cached);
            self.counts.write_misses += u64::from(!is_cached);
            self.counts.bypassed += u64::from(!is_cached);
        }
    }

    /// Drops what the cache has of an extent that the disk got anew.
    fn give_up(&mut self, volume: u16, extent: Extent, discard: bool) -> Result<(), CacheError> {
        let mut result = Ok(());
        self.each_cached(volume, extent, |cache, slot, piece| {
            if result.is_ok() {
                let touched = cache.shape.touched(piece);
                cache.pinned.clear(slot);
                result = cache.make_note_room().and_then(|()| cache.forget(slot, touched, discard));
            }
        });
        result
    }

    /// Dirty sub-blocks that an extent covers only in part go to the disk before it does.
    fn clean_edges(&mut self, volume: u16, extent: Extent) -> Result<(), CacheError> {
        let mut result = Ok(());
        if self.slots.dirty() != 0 {
            self.each_cached(volume, extent, |cache, slot, piece| {
                let edges = cache.shape.touched(piece) & !cache.shape.covered(piece);
                if result.is_ok() {
                    result = cache.write_out(slot, edges & cache.slots.dirty_bits(slot)).map(drop);
                }
            });
        }
        result
    }

    /// Keeps dirty blocks of an extent that the disk gets anew from being evicted, which would put what is older there after it; or no longer.
    fn pin_dirty(&mut self, volume: u16, extent: Extent, is_pinned: bool) {
        if self.slots.dirty() != 0 {
            self.each_cached(volume, extent, |cache, slot, _| {
                if !is_pinned {
                    cache.pinned.clear(slot);
                } else if cache.slots.dirty_bits(slot) != 0 {
                    cache.pinned.set(slot);
                }
            });
        }
    }

    fn forget_clean(&mut self, volume: u16, extent: Extent) -> Result<(), CacheError> {
        let mut result = Ok(());
        self.each_cached(volume, extent, |cache, slot, piece| {
            if result.is_ok() {
                let clean = cache.shape.touched(piece) & !cache.slots.dirty_bits(slot);
                result = cache.make_note_room().and_then(|()| cache.forget(slot, clean, false));
            }
        });
        result
    }

    /// Every cached block of an extent: by looking up its blocks or by looking at all slots, whichever is less.
    fn each_cached(&mut self, volume: u16, extent: Extent, mut act: impl FnMut(&mut Self, u32, Piece)) {
        let (first, end) = self.shape.blocks(extent);
        if end - first > u64::from(self.slots.count()) {
            for slot in 0..self.slots.count() {
                let key = self.slots.key(slot);
                if self.slots.valid(slot) != 0
                    && key.volume() == volume
                    && (first..end).contains(&key.block())
                {
                    let piece = self.shape.piece(extent, key.block(), self.capacity(volume));
                    act(self, slot, piece);
                }
            }
            return;
        }
        for block in first..end {
            if let Some(slot) = self.index.find(BlockKey::new(volume, block), &self.slots) {
                let piece = self.shape.piece(extent, block, self.capacity(volume));
                act(self, slot, piece);
            }
        }
    }
}
