//! Writes and discards.

use super::directory::{Piece, Shape};
use super::timeline::{Bytes, Moment, Place};
use super::{Cache, Mode, Result, counting};
use nandscape_core::{BlockCommand, Extent, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;
use std::convert::Infallible;

/// What came of a piece that was written to a slot.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    /// Sub-blocks that were read from the disk with it.
    pub brought: u16,
    /// Of those that were dirty for the metadata, the ones that are not there any more.
    pub lost: u16,
    /// The block was dirty and is.
    pub stays_dirty: bool,
    pub makes_dirty: bool,
}

impl<E: Eviction> Cache<E> {
    pub(super) fn write(&mut self, volume: u16, command: BlockCommand, data: Option<&[u8]>) -> Result<()> {
        let asked = self.ask(volume, command)?;
        if self.active_mode().caches_writes() {
            self.shun(volume, command.extent)?;
        }
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

    pub(super) fn trim(&mut self, volume: u16, command: BlockCommand) -> Result<()> {
        self.write_around(command.op, volume, command.extent, None)
    }

    /// To the disk, and out of the cache. What is dirty may be dropped only then: a commit between would
    /// leave the disk with what is older.
    fn write_around(&mut self, op: Op, volume: u16, extent: Extent, data: Option<&[u8]>) -> Result<()> {
        self.clean_edges(volume, extent)?;
        if let Err(error) = self.write_disk(op, volume, extent, data) {
            self.forget_clean(volume, extent)?;
            return Err(error);
        }
        self.pin_dirty(volume, extent, true);
        let done = self.drop_cached(volume, extent, op != Op::Write);
        self.pin_dirty(volume, extent, false);
        done
    }

    /// The part of a command that goes to the disk as it is.
    fn write_disk(&mut self, op: Op, volume: u16, extent: Extent, data: Option<&[u8]>) -> Result<()> {
        let after = self.guard(volume, extent)?;
        self.note_host_write(volume);
        let written = self.at_disk(op, volume, extent, data.map_or(Bytes::None, Bytes::Write), after)?;
        self.wait(written);
        Ok(())
    }

    /// Writes to the cache. What it does not take goes to the disk where the blocks would have become dirty;
    /// otherwise it is there already.
    fn write_cached(
        &mut self,
        volume: u16,
        extent: Extent,
        data: Option<&[u8]>,
        asked: Result<(), Bypass>,
        makes_dirty: bool,
    ) -> Result<()> {
        let (first, end) = self.directory.shape.blocks(extent);
        // Neighbouring blocks that go past the cache make one write.
        let mut past: Option<Extent> = None;
        for block in first..end {
            self.make_note_room()?;
            let piece = self.directory.piece(volume, extent, block);
            let key = BlockKey::new(volume, block);
            let mut found = self.directory.find(key);
            if let Some(slot) = found.filter(|_| !makes_dirty) {
                found = self.renounce(slot);
            }
            let was_dirty = found.is_some_and(|slot| self.directory.slots.dirty_bits(slot) != 0);
            let (slot, mut became) = match found {
                Some(slot) => {
                    self.directory.pinned.clear(slot);
                    self.directory.hit(slot);
                    self.note_busy(slot, key);
                    (Some(slot), counting::Piece::Hit)
                }
                None => match self.shunned(key, piece) {
                    Some(became) => (None, became),
                    None => match self.insert(key, Op::Write, asked)? {
                        Ok(slot) => (Some(slot), counting::Piece::Miss),
                        Err(why) => (None, counting::Piece::Past(why)),
                    },
                },
            };
            if let Some(slot) = slot {
                let bytes = part(data, extent, self.directory.shape, piece);
                if !self.store(slot, key, piece, bytes, makes_dirty)? {
                    became = counting::Piece::PastCached(Bypass::NoRoom);
                }
            }
            self.meter.write(became, u64::from(piece.end - piece.start), was_dirty);
            if slot.is_none() && makes_dirty {
                let piece = self.directory.on_disk(key, piece.start, piece.end);
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
    ) -> Result<()> {
        let Some(run) = run else { return Ok(()) };
        let start = (run.offset - extent.offset) as usize;
        let data = data.map(|data| &data[start..start + run.len as usize]);
        self.write_disk(Op::Write, volume, run, data)
    }

    /// A slot for a block that is not cached, if it may enter and there is one. The block is in it, with
    /// nothing valid.
    pub(super) fn insert(
        &mut self,
        key: BlockKey,
        op: Op,
        asked: Result<(), Bypass>,
    ) -> Result<Result<u32, Bypass>> {
        if let Err(why) = asked.and_then(|()| self.may_insert(key, op)) {
            if why == Bypass::Dirty {
                self.writeback.note_waited();
            }
            return Ok(Err(why));
        }
        let set = self.directory.set(key);
        if self.directory.log.is_none() {
            self.directory.policies[set as usize].miss(key);
        }
        self.insert_somewhere(key)
    }

    /// A slot for a block that may enter.
    pub(super) fn insert_somewhere(&mut self, key: BlockKey) -> Result<Result<u32, Bypass>> {
        if let Err(why) = self.make_allowance(key)? {
            self.meter.own().no_room += u64::from(why == Bypass::NoRoom);
            return Ok(Err(why));
        }
        let Some(slot) = self.take_slot(self.directory.set(key))? else {
            self.meter.own().no_room += 1;
            return Ok(Err(Bypass::NoRoom));
        };
        self.directory.settle(slot, key);
        self.meter.inserted();
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
    ) -> Result<bool> {
        if self.directory.log.is_some() {
            return self.store_in_order(slot, key, piece, &bytes, makes_dirty);
        }
        let (touched, covered) = (self.directory.shape.touched(piece), self.directory.shape.covered(piece));
        let (mut slot, mut lost) = (slot, 0);
        let mut is_dirty = self.directory.slots.dirty_bits(slot) != 0;
        if self.durability.must_move(slot) {
            let keep = self.directory.slots.valid(slot) & !covered;
            let Some(moved) = self.renew(slot, keep, makes_dirty)? else {
                return self.store_past(slot, key, piece, bytes);
            };
            (slot, lost, is_dirty) = (moved.slot, moved.lost, moved.was_dirty);
        }
        // It is while it is rewritten, though nothing of it may be in its slot.
        let stays_dirty = is_dirty && makes_dirty;
        let wanted = if self.fills_blocks() { self.directory.shape.whole(piece) } else { touched };
        let missing = wanted & !covered & !self.directory.slots.valid(slot);
        let done = self.bring(slot, missing);
        let done =
            done.and_then(|()| self.at_slot(Op::Write, slot, piece.start, piece.end, bytes, Moment::PAST));
        match done {
            Ok(written) => {
                self.wait(written);
                self.watch_device(Op::Write, written);
            }
            Err(error) => {
                self.durability.drop_late(&self.timeline, key, lost);
                if stays_dirty && self.directory.slots.dirty_bits(slot) == 0 {
                    self.turn(slot, key, false);
                }
                if self.directory.slots.valid(slot) == 0 {
                    self.directory.unsettle(slot);
                }
                return Err(error);
            }
        }
        self.note_stored(slot, piece, Stored { brought: 0, lost, stays_dirty, makes_dirty });
        Ok(true)
    }

    /// A piece was written to a slot.
    pub(super) fn note_stored(&mut self, slot: u32, piece: Piece, stored: Stored) {
        let Stored { brought, lost, stays_dirty, makes_dirty } = stored;
        let (touched, covered) = (self.directory.shape.touched(piece), self.directory.shape.covered(piece));
        let entry = self.directory.slots.entry(slot);
        let dirty = if makes_dirty { entry.dirty | touched } else { entry.dirty & !covered };
        self.record_turned(slot, entry.valid | touched | brought, dirty, stays_dirty || entry.dirty != 0);
        if brought != 0 {
            self.rely_on_disk(slot, brought & !dirty, 0);
        }
        if !makes_dirty {
            self.rely_on_disk(slot, touched & !dirty, lost);
        }
        if stays_dirty {
            self.writeback.rewrite(slot, self.timeline.now());
        }
    }

    /// A piece goes to the disk, since its block can have no other slot, and leaves with that.
    pub(super) fn store_past(
        &mut self,
        slot: u32,
        key: BlockKey,
        piece: Piece,
        bytes: Bytes<'_>,
    ) -> Result<bool> {
        self.evacuate(slot)?;
        let extent = self.directory.on_disk(key, piece.start, piece.end);
        let after = self.guard(key.volume(), extent)?;
        let written = self.at_disk(Op::Write, key.volume(), extent, bytes, after)?;
        self.note_host_write(key.volume());
        self.wait(written);
        Ok(false)
    }

    /// Reads sub-blocks from the disk into the slot: those that a write touches only in part. The write
    /// follows.
    fn bring(&mut self, slot: u32, mask: u16) -> Result<()> {
        let key = self.directory.slots.key(slot);
        self.each_run(slot, mask, |cache, (start, end), run, bytes| {
            let extent = cache.directory.on_disk(key, start, end);
            let read = cache.at_disk(Op::Read, key.volume(), extent, Bytes::into(bytes), Moment::PAST)?;
            cache.at_slot(Op::Write, slot, start, end, Bytes::of(bytes), read)?;
            cache.timeline.hold(Place::slot(slot), read);
            let entry = cache.directory.slots.entry(slot);
            cache.record(slot, entry.valid | run, entry.dirty);
            cache.rely_on_disk(slot, run, 0);
            Ok(())
        })
    }

    fn count_around(&mut self, volume: u16, extent: Extent) {
        let (first, end) = self.directory.shape.blocks(extent);
        for block in first..end {
            let is_cached = self.directory.find(BlockKey::new(volume, block)).is_some();
            let piece = self.directory.piece(volume, extent, block);
            let became = if is_cached { counting::Piece::PastCached } else { counting::Piece::Past };
            self.meter.write(became(Bypass::Mode), u64::from(piece.end - piece.start), false);
        }
    }

    /// Drops what the cache has of an extent that the disk got anew.
    fn drop_cached(&mut self, volume: u16, extent: Extent, discard: bool) -> Result<()> {
        self.each_cached(volume, extent, |cache, slot, piece| {
            let touched = cache.directory.shape.touched(piece);
            cache.directory.pinned.clear(slot);
            if cache.directory.slots.valid(slot) & touched != 0 {
                let own = cache.meter.own();
                *(if discard { &mut own.trim_invalidates } else { &mut own.write_invalidates }) += 1;
            }
            cache.make_note_room()?;
            cache.forget(slot, touched, discard)
        })
    }

    /// Dirty sub-blocks that an extent covers only in part go to the disk before it does.
    fn clean_edges(&mut self, volume: u16, extent: Extent) -> Result<()> {
        if self.directory.slots.dirty == 0 {
            return Ok(());
        }
        self.each_cached(volume, extent, |cache, slot, piece| {
            let edges = cache.directory.shape.touched(piece) & !cache.directory.shape.covered(piece);
            cache.write_out(slot, edges & cache.directory.slots.dirty_bits(slot)).map(drop)
        })
    }

    /// Keeps dirty blocks of an extent that the disk gets anew from being evicted, which would put what is
    /// older there after it; or no longer.
    fn pin_dirty(&mut self, volume: u16, extent: Extent, is_pinned: bool) {
        if self.directory.slots.dirty != 0 {
            let Ok(()) = self.each_cached::<Infallible>(volume, extent, |cache, slot, _| {
                if !is_pinned {
                    cache.directory.pinned.clear(slot);
                } else if cache.directory.slots.dirty_bits(slot) != 0 {
                    cache.directory.pinned.set(slot);
                }
                Ok(())
            });
        }
    }

    fn forget_clean(&mut self, volume: u16, extent: Extent) -> Result<()> {
        self.each_cached(volume, extent, |cache, slot, piece| {
            let clean = cache.directory.shape.touched(piece) & !cache.directory.slots.dirty_bits(slot);
            cache.meter.own().error_invalidates += u64::from(cache.directory.slots.valid(slot) & clean != 0);
            cache.make_note_room()?;
            cache.forget(slot, clean, false)
        })
    }

    /// Every cached block of an extent: by looking up its blocks or by looking at all slots, whichever is
    /// less.
    pub(super) fn each_cached<X>(
        &mut self,
        volume: u16,
        extent: Extent,
        mut act: impl FnMut(&mut Self, u32, Piece) -> Result<(), X>,
    ) -> Result<(), X> {
        let (first, end) = self.directory.shape.blocks(extent);
        if end - first > u64::from(self.directory.slots.count()) {
            for slot in 0..self.directory.slots.count() {
                let key = self.directory.slots.key(slot);
                if self.directory.slots.valid(slot) != 0
                    && key.volume() == volume
                    && (first..end).contains(&key.block())
                {
                    let piece = self.directory.piece(volume, extent, key.block());
                    act(self, slot, piece)?;
                }
            }
            return Ok(());
        }
        for block in first..end {
            if let Some(slot) = self.directory.find(BlockKey::new(volume, block)) {
                let piece = self.directory.piece(volume, extent, block);
                act(self, slot, piece)?;
            }
        }
        Ok(())
    }
}

fn part(bytes: Option<&[u8]>, extent: Extent, shape: Shape, piece: Piece) -> Bytes<'_> {
    bytes.map_or(Bytes::None, |bytes| {
        let start = (shape.offset(piece.block) + u64::from(piece.start) - extent.offset) as usize;
        Bytes::Write(&bytes[start..start + (piece.end - piece.start) as usize])
    })
}
