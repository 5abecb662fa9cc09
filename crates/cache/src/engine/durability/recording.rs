//! What the metadata are told of a slot, and when.

use super::Durability;
use super::disks::Hold;
use super::late::Recorded;
use crate::engine::directory::Slots;
use crate::engine::timeline::{FAST, Place, Timeline};
use crate::metadata::{Entry, Table};
use nandscape_policies::BlockKey;

impl Durability {
    fn recorded(&self, slots: &Slots, slot: u32) -> Option<Entry> {
        Recorded { slots, late: &self.late, filling: &self.filling }.entry(slot)
    }

    /// The same of a slot with this entry, where data are overwritten in place: elsewhere no change is
    /// urgent.
    fn recorded_in_place(&self, slot: u32, entry: Entry) -> Option<Entry> {
        if self.rules.is_in_place { self.late.recorded(slot, entry) } else { None }
    }

    fn note(&mut self, slots: &Slots, slot: u32) {
        self.metadata.note(slot, self.recorded(slots, slot));
    }

    fn note_change(&mut self, slots: &Slots, slot: u32, is_fresh: bool) {
        self.note(slots, slot);
        if is_fresh && self.rules.defers_reuse {
            self.reuse.fresh.push(slot);
        }
    }

    /// A slot's block now has these sub-blocks.
    pub fn record(&mut self, slots: &mut Slots, timeline: &mut Timeline, slot: u32, valid: u16, dirty: u16) {
        let old = slots.entry(slot);
        let recorded = self.recorded_in_place(slot, old);
        self.turn_late(slots, timeline, slot, valid, dirty);
        slots.set_bits(slot, valid, dirty);
        if self.rules.is_in_place {
            let new = self.late.recorded(slot, slots.entry(slot));
            if self.metadata.is_synchronous(recorded.as_ref(), new.as_ref()) {
                self.commits.is_due = true;
                if new.is_none_or(|new| new.dirty == 0) {
                    self.note_settled(slot);
                }
            }
        }
        let filling = self.end_filling(slot);
        let is_unnoted = filling != 0;
        if is_unnoted {
            // The metadata will speak of what is still to come.
            self.rely_on_disk(slots, timeline, slot, filling & valid & !dirty, 0);
            let free_at = timeline.free_at(Place::slot(slot));
            timeline.follow_up(FAST, free_at);
        }
        self.note_change(slots, slot, is_unnoted || old.valid == 0);
    }

    /// A slot's block has these sub-blocks, clean ones more than before, but they are still on their way. The
    /// metadata learn of it when they are there, so that no flush has to wait for a read from a disk.
    pub fn record_later(&mut self, slots: &mut Slots, slot: u32, valid: u16) {
        let old = slots.entry(slot);
        slots.set_bits(slot, valid, old.dirty);
        *self.filling.entry(slot.into()).or_default() |= u64::from(valid & !old.valid);
    }

    /// A slot's filling has begun, or does not take place. Gives what the metadata were not told of.
    #[inline]
    pub fn end_filling(&mut self, slot: u32) -> u16 {
        if self.filling.is_empty() { 0 } else { self.filling.remove(&u64::from(slot)).unwrap_or(0) as u16 }
    }

    /// Whether no entry speaks of a slot, committed or waiting for a disk: only what was read into it is
    /// there.
    pub fn is_unknown(&self, slot: u32) -> bool {
        !self.reuse.committed.has(slot) && !self.late.has(slot)
    }

    /// What was not told of a slot, since it was on its way ([`Durability::end_filling`]), is there.
    pub fn record_filled(&mut self, slots: &Slots, timeline: &Timeline, slot: u32, filling: u16) {
        let entry = slots.entry(slot);
        self.rely_on_disk(slots, timeline, slot, filling & entry.valid & !entry.dirty, 0);
        let clean = Entry { dirty: 0, ..entry };
        self.commits.is_due |= self.rules.is_in_place && self.metadata.is_synchronous(None, Some(&clean));
        self.note_change(slots, slot, !self.reuse.committed.has(slot));
    }

    /// A slot's block leaves, or has gone to another slot (`moves`). `false` if the slot is free only with
    /// the next commit. `discard`: its data are of no use to anybody.
    pub fn leave(
        &mut self,
        slots: &mut Slots,
        timeline: &Timeline,
        slot: u32,
        discard: bool,
        moves: bool,
    ) -> bool {
        let old = slots.entry(slot);
        let recorded = self.recorded_in_place(slot, old);
        self.leave_late(slots, timeline, slot, if moves { u16::MAX } else { 0 });
        self.end_filling(slot);
        if old.valid != 0 {
            if self.rules.is_in_place && self.metadata.is_synchronous(recorded.as_ref(), None) {
                self.settle_first(slot);
            }
            self.metadata.note(slot, None);
        }
        let is_committed = self.reuse.committed.has(slot);
        if is_committed {
            self.reuse.release(slot, old.key, discard);
            slots.set_bits(slot, 0, 0);
        }
        !is_committed
    }

    /// The metadata have a slot as dirty until the next commit, though it is not so any more.
    fn note_settled(&mut self, slot: u32) {
        if !self.rules.defers_reuse {
            self.reuse.settled.push(slot);
        }
    }

    /// The next commit comes before the command under way is answered, and before the slot is used again.
    fn settle_first(&mut self, slot: u32) {
        (self.commits.is_due, self.commits.is_due_for_reuse) = (true, true);
        self.note_settled(slot);
    }

    /// A slot's block is about to have these sub-blocks.
    #[inline]
    pub fn turn_late(&mut self, slots: &Slots, timeline: &Timeline, slot: u32, valid: u16, dirty: u16) {
        if !self.late.is_kept {
            return;
        }
        let old = slots.entry(slot);
        // A block that has just come from another slot has nothing there yet.
        let there = if old.valid == 0 { Entry { valid, ..old } } else { old };
        let (was_dirty, absent) = (self.late.dirty_of(slot, there), self.late.absent_of(slot));
        if was_dirty & !dirty == 0 && !self.late.has(slot) {
            return;
        }
        if was_dirty & !valid != 0 {
            self.leave_to_disk(timeline, old.key);
        }
        let cleaned = was_dirty & valid & !dirty;
        let is_late = cleaned != 0 && !matches!(self.hold_of(timeline, old.key), Hold::Durable);
        self.late.set(slot, is_late, absent & valid & !dirty);
    }

    /// These sub-blocks of a slot, which are clean or about to be, come from the disk, or go there too. Of
    /// those that were dirty for the metadata until now, `was_dirty`.
    #[inline]
    pub fn rely_on_disk(&mut self, slots: &Slots, timeline: &Timeline, slot: u32, mask: u16, was_dirty: u16) {
        // Without clean blocks after a loss of power none of them can be wrong.
        if !self.late.is_kept || !self.rules.keeps_clean || mask == 0 {
            return;
        }
        let key = slots.key(slot);
        if matches!(self.hold_of(timeline, key), Hold::Durable) {
            return;
        }
        let mut absent = self.late.absent_of(slot);
        let mut is_late = self.late.is_dirty(slot);
        if self.makes_dirty {
            (is_late, absent) = (true, absent & !mask);
        } else {
            absent &= !(mask & was_dirty);
            if !is_late {
                absent |= mask & !was_dirty;
            }
            is_late |= mask & was_dirty != 0;
        }
        self.disks[usize::from(key.volume())].has_absent |= absent != 0;
        self.late.set(slot, is_late, absent);
        self.note(slots, slot);
    }

    /// A slot's block leaves. What was dirty of it for the metadata is on the disk, or is of no use any more,
    /// except `moved`.
    #[inline]
    pub fn leave_late(&mut self, slots: &Slots, timeline: &Timeline, slot: u32, moved: u16) {
        if !self.late.is_kept {
            return;
        }
        let old = slots.entry(slot);
        if self.late.dirty_of(slot, old) & !moved != 0 {
            self.leave_to_disk(timeline, old.key);
        }
        self.late.set(slot, false, 0);
    }

    /// A block goes to another slot with these sub-blocks. Gives those that were dirty for the metadata and
    /// do not go with it.
    pub fn move_late(&mut self, slots: &Slots, from: u32, to: u32, keep: u16) -> u16 {
        if !self.late.is_kept {
            return 0;
        }
        let (was_dirty, absent) = (self.late.dirty_of(from, slots.entry(from)), self.late.absent_of(from));
        self.late.set(to, keep != 0 && self.late.is_dirty(from), absent & keep);
        was_dirty & !keep
    }

    /// Sub-blocks that were dirty for the metadata did not go with their block.
    pub fn drop_late(&mut self, timeline: &Timeline, key: BlockKey, lost: u16) {
        if lost != 0 {
            self.leave_to_disk(timeline, key);
        }
    }

    /// Nothing of a slot waits any more.
    pub fn settle_slot(&mut self, slots: &Slots, slot: u32) {
        let entry = slots.entry(slot);
        let old = self.recorded_in_place(slot, entry);
        self.late.set(slot, false, 0);
        if self.rules.is_in_place && self.metadata.is_synchronous(old.as_ref(), Some(&entry)) {
            self.settle_first(slot);
        }
        self.note(slots, slot);
    }
}
