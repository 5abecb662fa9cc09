//! Slots: taking and giving up, moving, cleaning.

use super::side::Bytes;
use super::steps::{FAST, Gather, Moment, Place};
use super::{Cache, CacheError};
use crate::metadata::Entry;
use crate::presets::Victims;
use nandscape_core::{Extent, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;

/// Blocks that are dirty, or whose disk would still lose them, and are passed over in search of one that may
/// leave at once.
const PASSED_OVER: u32 = 64;

/// Where a block has gone.
pub(super) struct Moved {
    pub slot: u32,
    /// Sub-blocks that were dirty for the metadata and are not there any more.
    pub lost: u16,
    /// Whether the block was dirty until then.
    pub was_dirty: bool,
}

impl<E: Eviction> Cache<E> {
    pub(super) fn set(&self, key: BlockKey) -> u32 {
        self.map.set(key, self.policies.len() as u32)
    }

    /// The policy that a slot belongs to, and the slot's number there.
    pub(super) fn policy(&mut self, slot: u32) -> (&mut E, u32) {
        let set = self.slots.set_of(slot);
        (&mut self.policies[set as usize], slot - self.slots.base(set))
    }

    /// A slot of a set for a new block, made free if need be; `None` if no block of the set may leave.
    ///
    /// Where a slot becomes free only by a commit, several blocks leave at once, so that one commit serves
    /// many requests.
    pub(super) fn take_slot(&mut self, set: u32) -> Result<Option<u32>, CacheError> {
        if let Some(slot) = self.take_free(set)? {
            return Ok(Some(slot));
        }
        let (batch, waiting) = if self.defers_reuse {
            let ways = self.ways();
            let waiting =
                self.limbo.iter().filter(|(slot, _)| self.slots.set_of(*slot) == set).count() as u32;
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
    fn take_free(&mut self, set: u32) -> Result<Option<u32>, CacheError> {
        if self.must_commit_free || !self.settled.is_empty() {
            self.commit()?;
        }
        Ok(self.take(set))
    }

    /// A free slot. What comes there waits until the metadata do not have it as dirty any more.
    fn take(&mut self, set: u32) -> Option<u32> {
        let slot = self.slots.take(set)?;
        if let Some(next) = self.slots.next_free(set) {
            self.steps.side(FAST).store.prepare(Op::Write, self.place(next, 0, 0));
        }
        let free_at = self.steps.free_at(Place::taking(slot));
        self.steps.hold(Place::slot(slot), free_at);
        Some(slot)
    }

    /// The metadata have a slot as dirty until the next commit, though it is not so any more.
    pub(super) fn note_settled(&mut self, slot: u32) {
        if !self.defers_reuse {
            self.settled.push(slot);
        }
    }

    /// Whether a block must leave its slot before what it holds there changes.
    pub(super) fn must_move(&self, slot: u32) -> bool {
        !self.is_in_place && self.committed.has(slot)
    }

    /// Commits if the metadata may not have room for the changes of one block, or if they have many.
    pub(super) fn make_note_room(&mut self) -> Result<(), CacheError> {
        let can_settle = self.flush_ahead();
        if can_settle || self.has_too_many_late() && self.need_flushes() || self.lacks_note_room() {
            self.commit()?;
        }
        Ok(())
    }

    fn lacks_note_room(&self) -> bool {
        const NOTES: u32 = 8;
        let (noted, room) = (self.metadata.noted(), self.metadata.room().saturating_sub(NOTES));
        // What a flush settles is noted too.
        noted.saturating_add(self.late.absent()) > room
            || noted > (4 * self.commit_after).saturating_sub(NOTES)
    }

    /// Lets one block of a set leave, of this volume if one is named, to the disk if it is dirty.
    pub(super) fn evict(&mut self, set: u32, owner: Option<u16>) -> Result<bool, CacheError> {
        let base = self.slots.base(set);
        let slot = loop {
            let (pinned, slots, volumes) = (&self.pinned, &self.slots, &self.volumes);
            let may_clean = |local: u32| {
                let slot = base + local;
                let is_owned = owner.is_none_or(|owner| slots.key(slot).volume() == owner);
                !pinned.has(slot) && is_owned && slots.dirty_bits(slot) == 0
            };
            // What the disk does not take stays.
            let may = |local: u32| {
                let (slot, volume) = (base + local, slots.key(base + local).volume());
                let is_stuck = slots.dirty_bits(slot) != 0 && volumes[usize::from(volume)].is_failing;
                !pinned.has(slot) && !is_stuck && owner.is_none_or(|owner| volume == owner)
            };
            let late = &self.late;
            let mut passed_over = 0;
            let may_soon = |local: u32| {
                let is_settled = slots.dirty_bits(base + local) == 0 && !late.has(base + local);
                let is_chosen = may(local) && (is_settled || passed_over == PASSED_OVER);
                passed_over += u32::from(!is_settled && !is_chosen);
                is_chosen
            };
            let policy = &mut self.policies[set as usize];
            let chosen = match self.quirks.victims {
                Victims::Any => policy.evict(may),
                // Those that are passed over are seen again, when the policy has gone round.
                Victims::PreferClean => policy.evict(may_soon).or_else(|| policy.evict(may)),
                Victims::CleanFirst => policy.evict(may_clean).or_else(|| policy.evict(may)),
                Victims::CleanOnly => policy.evict(may_clean),
            };
            let Some(local) = chosen else { return Ok(false) };
            let slot = base + local;
            let dirty = self.slots.dirty_bits(slot);
            if dirty == 0 {
                self.meter.replaced(false);
                break slot;
            }
            self.note_waited();
            match self.write_run(slot) {
                Ok(written) => {
                    self.steps.hold(Place::slot(slot), written);
                    self.meter.replaced(true);
                    break slot;
                }
                Err(error) => {
                    let key = self.slots.key(slot);
                    self.policies[set as usize].insert(local, key);
                    if !matches!(error, CacheError::Slow { .. }) {
                        return Err(error);
                    }
                }
            }
        };
        let key = self.slots.key(slot);
        self.policies[set as usize].evicted(slot - base, key);
        self.vacate(slot, false);
        Ok(true)
    }

    /// A slot that was taken gets a block, of which nothing is there yet.
    pub(super) fn settle(&mut self, slot: u32, key: BlockKey) {
        self.slots.set_key(slot, key);
        self.index.insert(key, slot, &self.slots);
        self.volumes[usize::from(key.volume())].held += 1;
        let (policy, local) = self.policy(slot);
        policy.insert(local, key);
    }

    /// Undoes [`Cache::settle`] of a block of which nothing came.
    pub(super) fn unsettle(&mut self, slot: u32) {
        self.take_out(slot);
        let (policy, local) = self.policy(slot);
        policy.remove(local);
        self.slots.give(slot);
    }

    /// A block that its policy has let go leaves the index and its slot. `discard`: its data are of no use to
    /// anybody.
    fn vacate(&mut self, slot: u32, discard: bool) {
        self.take_out(slot);
        self.leave(slot, discard, false);
    }

    /// A slot's block is no longer found, counted or cleaned. What the slot's record says stays.
    pub(super) fn take_out(&mut self, slot: u32) {
        let old = self.slots.entry(slot);
        self.index.remove(old.key, &self.slots);
        self.volumes[usize::from(old.key.volume())].held -= 1;
        if old.dirty != 0
            && let Some(cleaner) = &mut self.cleaner
        {
            cleaner.remove(old.key, slot);
        }
    }

    /// `moves`: the block has gone to another slot.
    fn leave(&mut self, slot: u32, discard: bool, moves: bool) {
        let old = self.slots.entry(slot);
        let recorded = self.late.recorded(slot, old);
        self.leave_late(slot, if moves { u16::MAX } else { 0 });
        self.end_filling(slot);
        if old.valid != 0 {
            let is_synchronous = self.metadata.is_synchronous(recorded.as_ref(), None);
            self.must_commit |= is_synchronous;
            self.must_commit_free |= is_synchronous;
            if is_synchronous {
                self.note_settled(slot);
            }
            self.metadata.note(slot, None);
        }
        if self.committed.has(slot) {
            self.committed.clear(slot);
            self.left.set(self.left_at(old.key));
            self.slots.set_bits(slot, 0, 0);
            self.limbo.push((slot, discard));
        } else {
            self.free(slot, discard);
        }
    }

    pub(super) fn free(&mut self, slot: u32, discard: bool) {
        if discard && self.defers_reuse {
            // No committed entry speaks of it. It only spares the fast store work later, so nothing depends
            // on it.
            let _ = self.at_slot(Op::Trim, slot, 0, self.shape.block_bytes(), Bytes::None, Moment::PAST);
        }
        self.give(slot);
    }

    /// The block leaves though no policy chose it. What is dirty of it is lost.
    pub(super) fn expel(&mut self, slot: u32, discard: bool) {
        let (policy, local) = self.policy(slot);
        policy.remove(local);
        self.vacate(slot, discard);
    }

    /// The block leaves though no policy chose it, to the disk as far as it is dirty.
    pub(super) fn evacuate(&mut self, slot: u32) -> Result<(), CacheError> {
        let dirty = self.slots.dirty_bits(slot);
        let written = self.write_out(slot, dirty)?;
        if dirty != 0 {
            self.meter.forced(self.slots.key(slot).volume());
        }
        self.steps.hold(Place::slot(slot), written);
        self.expel(slot, false);
        Ok(())
    }

    /// Drops sub-blocks of a block, dirty ones too. Since a committed entry may not gain sub-blocks that it
    /// had before, a block that keeps some moves or leaves.
    pub(super) fn forget(&mut self, slot: u32, mask: u16, discard: bool) -> Result<(), CacheError> {
        let old = self.slots.entry(slot);
        let rest = old.valid & !mask;
        if rest == old.valid {
            return Ok(());
        }
        let dirty = rest & old.dirty;
        if rest == 0 || self.must_move(slot) && dirty == 0 {
            self.expel(slot, discard);
        } else if !self.must_move(slot) {
            self.record(slot, rest, dirty);
        } else if let Some(moved) = self.renew(slot, rest, false)? {
            self.drop_late(old.key, moved.lost);
        } else {
            let written = self.write_out(slot, dirty)?;
            self.steps.hold(Place::slot(slot), written);
            self.expel(slot, false);
        }
        Ok(())
    }

    /// A slot's block now has these sub-blocks. Tells the metadata if that is a change.
    pub(super) fn record(&mut self, slot: u32, valid: u16, dirty: u16) {
        let was_dirty = self.slots.dirty_bits(slot) != 0;
        self.record_turned(slot, valid, dirty, was_dirty);
    }

    /// [`Cache::record`] of a block that counted as dirty or not, whatever its slot says.
    pub(super) fn record_turned(&mut self, slot: u32, valid: u16, dirty: u16, was_dirty: bool) {
        let old = self.slots.entry(slot);
        if was_dirty != (dirty != 0) {
            self.turn(slot, old.key, dirty != 0);
        }
        if (old.valid, old.dirty) != (valid, dirty) {
            self.put_record(slot, valid, dirty);
        }
    }

    fn put_record(&mut self, slot: u32, valid: u16, dirty: u16) {
        let old = self.slots.entry(slot);
        let recorded = self.late.recorded(slot, old);
        self.turn_late(slot, valid, dirty);
        self.slots.set_bits(slot, valid, dirty);
        let new = self.late.recorded(slot, self.slots.entry(slot));
        if self.metadata.is_synchronous(recorded.as_ref(), new.as_ref()) {
            self.must_commit = true;
            if new.is_none_or(|new| new.dirty == 0) {
                self.note_settled(slot);
            }
        }
        let filling = self.end_filling(slot);
        let is_unnoted = filling != 0;
        if is_unnoted {
            // The metadata will speak of what is still to come.
            self.rely_on_disk(slot, filling & valid & !dirty, 0);
            let free_at = self.steps.free_at(Place::slot(slot));
            self.steps.follow_up(FAST, free_at);
        }
        self.note(slot, is_unnoted || old.valid == 0);
    }

    /// A slot's block has these sub-blocks, clean ones more than before, but they are still on their way. The
    /// metadata learn of it when they are there, so that no flush has to wait for a read from a disk.
    pub(super) fn record_later(&mut self, slot: u32, valid: u16) {
        let old = self.slots.entry(slot);
        self.slots.set_bits(slot, valid, old.dirty);
        let before = self.filling.get(u64::from(slot)).unwrap_or(0);
        self.filling.insert(u64::from(slot), before | u64::from(valid & !old.valid));
    }

    /// A slot's filling has begun, or does not take place. Gives what the metadata were not told of.
    #[inline]
    fn end_filling(&mut self, slot: u32) -> u16 {
        if self.filling.len() == 0 { 0 } else { self.filling.remove(u64::from(slot)).unwrap_or(0) as u16 }
    }

    /// The filling of a slot has begun.
    pub(super) fn note_filled(&mut self, slot: u32) -> Result<(), CacheError> {
        let filling = self.end_filling(slot);
        if filling != 0 {
            if self.lacks_note_room() {
                self.commit()?;
            }
            let valid = self.slots.valid(slot);
            if self.slots.dirty_bits(slot) == 0
                && !self.committed.has(slot)
                && !self.late.has(slot)
                && !self.is_worth(slot, valid)
            {
                self.expel(slot, false);
                return Ok(());
            }
            let clean = self.slots.valid(slot) & !self.slots.dirty_bits(slot);
            self.rely_on_disk(slot, filling & clean, 0);
            let clean = Entry { dirty: 0, ..self.slots.entry(slot) };
            self.must_commit |= self.metadata.is_synchronous(None, Some(&clean));
            self.note(slot, !self.committed.has(slot));
        }
        Ok(())
    }

    /// A block became dirty, or was dirty and is clean.
    pub(super) fn turn(&mut self, slot: u32, key: BlockKey, is_dirty: bool) {
        self.meter.turned(key.volume(), is_dirty);
        if let Some(cleaner) = &mut self.cleaner {
            if is_dirty {
                cleaner.insert(key, slot, self.steps.now());
            } else {
                cleaner.remove(key, slot);
            }
        }
    }

    fn note(&mut self, slot: u32, is_fresh: bool) {
        self.metadata.note(slot, self.recorded(slot));
        if is_fresh && self.defers_reuse {
            self.fresh.push(slot);
        }
    }

    /// Moves a block to a slot that no committed entry refers to, with these sub-blocks only. `None`, and
    /// nothing done, if there is none. `stays_dirty`: a block that was dirty counts as dirty since then,
    /// since the caller makes it so, or tells that it is not.
    pub(super) fn renew(
        &mut self,
        slot: u32,
        keep: u16,
        stays_dirty: bool,
    ) -> Result<Option<Moved>, CacheError> {
        self.pinned.set(slot);
        let target = self.take_slot(self.slots.set_of(slot));
        self.pinned.clear(slot);
        let Some(target) = target? else { return Ok(None) };
        let old = self.slots.entry(slot);
        self.slots.set_key(target, old.key);
        if let Err(error) = self.copy(slot, target, keep) {
            self.slots.give(target);
            return Err(error);
        }
        self.index.replace(old.key, target, &self.slots);
        let to = target - self.slots.base(self.slots.set_of(target));
        let (policy, from) = self.policy(slot);
        policy.relabel(from, to);
        let lost = self.move_late(slot, target, keep);
        self.leave(slot, false, true);
        let dirty = old.dirty & keep;
        if old.dirty != 0 {
            if let Some(cleaner) = &mut self.cleaner {
                cleaner.relabel(slot, target);
            }
            if dirty == 0 && !stays_dirty {
                self.turn(target, old.key, false);
            }
        }
        if keep != 0 {
            self.put_record(target, keep, dirty);
        }
        self.meter.own().relabels += 1;
        Ok(Some(Moved { slot: target, lost, was_dirty: old.dirty != 0 }))
    }

    fn copy(&mut self, source: u32, target: u32, mask: u16) -> Result<(), CacheError> {
        let mut rest = mask;
        let limit = self.limit(self.slots.key(source));
        while let Some((start, end, others)) = self.shape.run(rest, limit) {
            rest = others;
            let mut bytes = self.buffer(u64::from(end - start));
            let read = self.at_slot(Op::Read, source, start, end, Bytes::into(&mut bytes), Moment::PAST);
            let done = read.and_then(|read| {
                self.at_slot(Op::Write, target, start, end, Bytes::of(&bytes), read)?;
                self.steps.hold(Place::slot(target), read);
                Ok(())
            });
            self.give_buffer(bytes);
            done?;
        }
        Ok(())
    }

    /// Writes sub-blocks of a slot to the disk, and gives when they are there; the caller sees to the bits.
    pub(super) fn write_out(&mut self, slot: u32, mask: u16) -> Result<Moment, CacheError> {
        if mask != 0 && !self.is_in_place && !self.committed.has(slot) {
            self.commit()?;
        }
        let key = self.slots.key(slot);
        let mut rest = mask;
        let mut all = Gather::default();
        let limit = self.limit(key);
        while let Some((start, end, others)) = self.shape.run(rest, limit) {
            rest = others;
            let mut bytes = self.buffer(u64::from(end - start));
            let extent =
                Extent::new(self.shape.offset(key.block()) + u64::from(start), u64::from(end - start));
            let read = self.at_slot(Op::Read, slot, start, end, Bytes::into(&mut bytes), Moment::PAST);
            let written = read.and_then(|read| {
                // Not before the commit that speaks of it.
                let after = self.steps.join(read, self.last_commit);
                let written = self.at_disk(Op::Write, key.volume(), extent, Bytes::of(&bytes), after)?;
                self.meter.cleaning_write(key.volume(), extent.len);
                self.steps.hold(Place::block(key), after);
                Ok(written)
            });
            self.give_buffer(bytes);
            self.steps.gather(&mut all, written?);
        }
        Ok(self.steps.close(&mut all))
    }
}
