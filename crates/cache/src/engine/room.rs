//! Slots: taking and giving up, moving, cleaning.

use super::timeline::{Bytes, FAST, Gather, Moment, Place};
use super::{Cache, CacheError, Result};
use crate::metadata::Entry;
use nandscape_core::Op;
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;

/// Where a block has gone.
pub(super) struct Moved {
    pub slot: u32,
    /// Sub-blocks that were dirty for the metadata and are not there any more.
    pub lost: u16,
    /// Whether the block was dirty until then.
    pub was_dirty: bool,
}

impl<E: Eviction> Cache<E> {
    /// A slot of a set for a new block, made free if need be; `None` if no block of the set may leave.
    ///
    /// Where a slot becomes free only by a commit, several blocks leave at once, so that one commit serves
    /// many requests.
    pub(super) fn take_slot(&mut self, set: u32) -> Result<Option<u32>> {
        if self.directory.log.is_some() {
            return self.take_in_order();
        }
        if let Some(slot) = self.take_free(set)? {
            return Ok(Some(slot));
        }
        let (batch, waiting) = if self.durability.rules.defers_reuse {
            let ways = self.directory.ways();
            let waiting = self.durability.reuse.limbo.iter();
            let waiting =
                waiting.filter(|(slot, _)| self.directory.slots.set_of(*slot) == set).count() as u32;
            ((ways / 8).clamp(1, 64), waiting)
        } else {
            (1, 0)
        };
        for _ in waiting..batch {
            self.make_note_room()?;
            if !self.evict(set, None)? {
                break;
            }
        }
        if let Some(slot) = self.take_free(set)? {
            return Ok(Some(slot));
        }
        self.commit()?;
        Ok(self.take(set))
    }

    /// A free slot; after a commit, where an entry on the store says that a free slot has something dirty.
    fn take_free(&mut self, set: u32) -> Result<Option<u32>> {
        if self.durability.is_due_for_reuse() {
            self.commit()?;
        }
        Ok(self.take(set))
    }

    /// A free slot. What comes there waits until the metadata do not have it as dirty any more.
    fn take(&mut self, set: u32) -> Option<u32> {
        let slot = self.directory.slots.take(set)?;
        if let Some(next) = self.directory.slots.next_free(set) {
            self.timeline.side(FAST).store.prepare(Op::Write, self.directory.place(next, 0, 0));
        }
        let free_at = self.timeline.free_at(Place::taking(slot));
        self.timeline.hold(Place::slot(slot), free_at);
        Some(slot)
    }

    /// Lets one block of a set leave, of this volume if one is named, to the disk if it is dirty.
    pub(super) fn evict(&mut self, set: u32, owner: Option<u16>) -> Result<bool> {
        if self.directory.log.is_some() {
            return self.evict_in_order();
        }
        let slot = loop {
            let (durability, volumes) = (&self.durability, &self.volumes);
            let chosen = self.directory.choose_victim(
                set,
                owner,
                self.quirks.victims,
                |volume| volumes[usize::from(volume)].is_failing,
                |slot| durability.late.has(slot),
            );
            let Some(slot) = chosen else { return Ok(false) };
            match self.make_clean(slot) {
                Ok(()) => break slot,
                Err(error) => {
                    let key = self.directory.slots.key(slot);
                    let (policy, local) = self.directory.policy(slot);
                    policy.insert(local, key);
                    if !matches!(error, CacheError::Slow { .. }) {
                        return Err(error);
                    }
                }
            }
        };
        let key = self.directory.slots.key(slot);
        let (policy, local) = self.directory.policy(slot);
        policy.evicted(local, key);
        self.vacate(slot, false);
        Ok(true)
    }

    /// The block of a slot that is chosen to leave goes to the disk if it is dirty.
    pub(super) fn make_clean(&mut self, slot: u32) -> Result<()> {
        let is_dirty = self.directory.slots.dirty_bits(slot) != 0;
        if is_dirty {
            self.writeback.note_waited();
            let written = self.write_run(slot)?;
            self.timeline.hold(Place::slot(slot), written);
        }
        self.meter.replaced(is_dirty);
        Ok(())
    }

    /// A block that its policy has let go leaves the index and its slot. `discard`: its data are of no use to
    /// anybody.
    pub(super) fn vacate(&mut self, slot: u32, discard: bool) {
        self.take_out(slot);
        self.leave(slot, discard, false);
    }

    /// A slot's block is no longer found, counted or cleaned. What the slot's record says stays.
    pub(super) fn take_out(&mut self, slot: u32) {
        let old = self.directory.take_out(slot);
        if old.dirty != 0 {
            self.writeback.turn(old.key, slot, false, self.timeline.now());
        }
    }

    /// `moves`: the block has gone to another slot.
    fn leave(&mut self, slot: u32, discard: bool, moves: bool) {
        if self.durability.leave(&mut self.directory.slots, &self.timeline, slot, discard, moves) {
            self.free(slot, discard);
        }
    }

    /// These sub-blocks of a slot, which are clean or about to be, come from the disk, or go there too. Of
    /// those that were dirty for the metadata until now, `was_dirty`.
    pub(super) fn rely_on_disk(&mut self, slot: u32, mask: u16, was_dirty: u16) {
        self.durability.rely_on_disk(&self.directory.slots, &self.timeline, slot, mask, was_dirty);
    }

    pub(super) fn free(&mut self, slot: u32, discard: bool) {
        if discard && self.durability.rules.defers_reuse && self.directory.log.is_none() {
            // No committed entry speaks of it. It only spares the fast store work later, so nothing depends
            // on it.
            let _ = self.at_slot(
                Op::Trim,
                slot,
                0,
                self.directory.shape.block_bytes(),
                Bytes::None,
                Moment::PAST,
            );
        }
        self.directory.give(slot);
    }

    /// The block leaves though no policy chose it. What is dirty of it is lost.
    pub(super) fn expel(&mut self, slot: u32, discard: bool) {
        self.directory.drop_from_policy(slot);
        self.vacate(slot, discard);
    }

    /// The block leaves though no policy chose it, to the disk as far as it is dirty.
    pub(super) fn evacuate(&mut self, slot: u32) -> Result<()> {
        let dirty = self.directory.slots.dirty_bits(slot);
        let written = self.write_out(slot, dirty)?;
        if dirty != 0 {
            self.meter.forced(self.directory.slots.key(slot).volume());
        }
        self.timeline.hold(Place::slot(slot), written);
        self.expel(slot, false);
        Ok(())
    }

    /// Drops sub-blocks of a block, dirty ones too. Since a committed entry may not gain sub-blocks that it
    /// had before, a block that keeps some moves or leaves.
    pub(super) fn forget(&mut self, slot: u32, mask: u16, discard: bool) -> Result<()> {
        let old = self.directory.slots.entry(slot);
        let rest = old.valid & !mask;
        if rest == old.valid {
            return Ok(());
        }
        let dirty = rest & old.dirty;
        // What is written in order has no block of which only a part is there.
        let is_ordered = self.directory.log.is_some();
        let must_move = is_ordered || self.durability.must_move(slot);
        if rest == 0 || must_move && dirty == 0 {
            self.expel(slot, discard);
        } else if !must_move {
            self.record(slot, rest, dirty);
        } else if !is_ordered && let Some(moved) = self.renew(slot, rest, false)? {
            self.durability.drop_late(&self.timeline, old.key, moved.lost);
        } else {
            let written = self.write_out(slot, dirty)?;
            self.timeline.hold(Place::slot(slot), written);
            self.expel(slot, false);
        }
        Ok(())
    }

    /// A slot's block now has these sub-blocks. Tells the metadata if that is a change.
    pub(super) fn record(&mut self, slot: u32, valid: u16, dirty: u16) {
        let was_dirty = self.directory.slots.dirty_bits(slot) != 0;
        self.record_turned(slot, valid, dirty, was_dirty);
    }

    /// [`Cache::record`] of a block that counted as dirty or not, whatever its slot says.
    pub(super) fn record_turned(&mut self, slot: u32, valid: u16, dirty: u16, was_dirty: bool) {
        let old = self.directory.slots.entry(slot);
        if was_dirty != (dirty != 0) {
            self.turn(slot, old.key, dirty != 0);
        }
        if (old.valid, old.dirty) != (valid, dirty) {
            self.durability.record(&mut self.directory.slots, &mut self.timeline, slot, valid, dirty);
        }
    }

    pub(super) fn note_filled(&mut self, slot: u32) -> Result<()> {
        let filling = self.durability.end_filling(slot);
        if filling == 0 {
            return Ok(());
        }
        if self.durability.lacks_room() {
            self.commit()?;
        }
        let Entry { valid, dirty, .. } = self.directory.slots.entry(slot);
        if dirty == 0 && self.durability.is_unknown(slot) && !self.is_worth(slot, valid) {
            self.expel(slot, false);
            return Ok(());
        }
        self.durability.record_filled(&self.directory.slots, &self.timeline, slot, filling);
        Ok(())
    }

    /// A block became dirty, or was dirty and is clean.
    pub(super) fn turn(&mut self, slot: u32, key: BlockKey, is_dirty: bool) {
        self.meter.turned(key.volume(), is_dirty);
        self.writeback.turn(key, slot, is_dirty, self.timeline.now());
    }

    /// Moves a block to a slot that no committed entry refers to, with these sub-blocks only. `None`, and
    /// nothing done, if there is none. `stays_dirty`: a block that was dirty counts as dirty since then,
    /// since the caller makes it so, or tells that it is not.
    pub(super) fn renew(&mut self, slot: u32, keep: u16, stays_dirty: bool) -> Result<Option<Moved>> {
        self.renew_with(slot, keep, stays_dirty, |cache, target| cache.copy(slot, target, keep))
    }

    /// [`Cache::renew`], with the bytes that `write` puts into the other slot.
    pub(super) fn renew_with(
        &mut self,
        slot: u32,
        keep: u16,
        stays_dirty: bool,
        write: impl FnOnce(&mut Self, u32) -> Result<()>,
    ) -> Result<Option<Moved>> {
        self.directory.pinned.set(slot);
        let target = self.take_slot(self.directory.slots.set_of(slot));
        self.directory.pinned.clear(slot);
        let Some(target) = target? else { return Ok(None) };
        let old = self.directory.slots.entry(slot);
        self.directory.slots.set_key(target, old.key);
        if let Err(error) = write(self, target) {
            self.directory.give(target);
            return Err(error);
        }
        self.directory.relabel(slot, target);
        let lost = self.durability.move_late(&self.directory.slots, slot, target, keep);
        self.leave(slot, false, true);
        let dirty = old.dirty & keep;
        if old.dirty != 0 {
            self.writeback.relabel(slot, target);
            if dirty == 0 && !stays_dirty {
                self.turn(target, old.key, false);
            }
        }
        if keep != 0 {
            self.durability.record(&mut self.directory.slots, &mut self.timeline, target, keep, dirty);
        }
        self.meter.own().relabels += 1;
        Ok(Some(Moved { slot: target, lost, was_dirty: old.dirty != 0 }))
    }

    fn copy(&mut self, source: u32, target: u32, mask: u16) -> Result<()> {
        self.each_run(source, mask, |cache, (start, end), _, bytes| {
            let read = cache.at_slot(Op::Read, source, start, end, Bytes::into(bytes), Moment::PAST)?;
            cache.at_slot(Op::Write, target, start, end, Bytes::of(bytes), read)?;
            cache.timeline.hold(Place::slot(target), read);
            Ok(())
        })
    }

    /// Writes sub-blocks of a slot to the disk, and gives when they are there; the caller sees to the bits.
    pub(super) fn write_out(&mut self, slot: u32, mask: u16) -> Result<Moment> {
        if mask != 0 && self.durability.must_commit_first(slot) {
            self.commit()?;
        }
        let key = self.directory.slots.key(slot);
        let mut all = Gather::default();
        self.each_run(slot, mask, |cache, (start, end), _, bytes| {
            let extent = cache.directory.on_disk(key, start, end);
            let read = cache.at_slot(Op::Read, slot, start, end, Bytes::into(bytes), Moment::PAST)?;
            // Not before the commit that speaks of it.
            let after = cache.timeline.join(read, cache.durability.commits.last);
            let written = cache.at_disk(Op::Write, key.volume(), extent, Bytes::of(bytes), after)?;
            cache.meter.cleaning_write(key.volume(), extent.len);
            cache.timeline.hold(Place::block(key), after);
            cache.timeline.gather(&mut all, written);
            Ok(())
        })?;
        Ok(self.timeline.close(&mut all))
    }
}
