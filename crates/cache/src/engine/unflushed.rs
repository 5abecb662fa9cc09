//! What a disk would still lose, and what the metadata therefore do not say yet.
//!
//! An entry that says that a block is clean, or that it is gone, relies on the disk. Instead of flushing the
//! disk before each commit with such an entry:
//! * a block that was dirty and is on the disk now stays dirty for the metadata until the disk has been
//!   flushed;
//! * one that came from the disk, or went there and into the cache together, while the disk would lose it, is
//!   dirty for the metadata too; in modes that make nothing dirty it is not there for them. Only blocks are
//!   looked at that lie near one that was written to since the disk was flushed;
//! * so a commit flushes a disk only if a block leaves that the metadata have as dirty and the disk would
//!   lose, or if too many are not there;
//! * and when many wait, the disk is flushed beside the work, and no commit waits for that.
//!
//! All of this is for metadata that outlive a loss of power, and designs that flush disks for them
//! ([`Flushing::Both`]).

use super::slots::{Bits, Slots};
use super::steps::{Gather, Moment};
use super::{Cache, CacheError};
use crate::metadata::{Entry, Metadata, Table};
use crate::presets::Flushing;
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;
use nandscape_policies::hash::{KeyMap, mix};
use std::ops::Range;

/// Neighbouring blocks that are looked at as one, as a shift.
const RUN: u32 = 4;
const WORDS: usize = 64;

/// A disk is flushed beside the work when one slot in so many waits for it. A flush costs a disk the freedom
/// to choose the order of what it writes.
const FLUSH_SHARE: u32 = 8;

/// One slot in so many may not be there for the metadata, since each takes 32 bytes of memory, and 100 in the
/// commit after the flush.
const ABSENT_SHARE: u32 = 256;
/// In small caches as many may be absent in any case, up to an eighth of all.
const ABSENT_LEAST: u32 = 256;

/// Parts of a disk, by hash.
#[derive(Clone, Debug)]
struct Parts(Box<[u64; WORDS]>);

impl Parts {
    fn none() -> Self {
        Self(Box::new([0; WORDS]))
    }

    const fn place(run: u64) -> (usize, u64) {
        let hash = mix(run) >> 52;
        ((hash / 64) as usize, 1 << (hash % 64))
    }

    fn add(&mut self, first: u64, end: u64) {
        let runs = first >> RUN..=(end - 1) >> RUN;
        if runs.end() - runs.start() > 64 * WORDS as u64 {
            self.0.fill(u64::MAX);
            return;
        }
        for run in runs {
            let (word, bit) = Self::place(run);
            self.0[word] |= bit;
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn has(&self, block: u64) -> bool {
        let (word, bit) = Self::place(block >> RUN);
        self.0[word] & bit != 0
    }
}

/// What a commit has to do first at a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    Nothing,
    /// Wait for the flushes that are under way.
    Wait,
    Flush,
}

/// What was written to a disk.
#[derive(Clone, Debug)]
pub(super) struct Unflushed {
    /// Since the last flush.
    now: Parts,
    /// What flushes cover that may still be under way.
    before: Parts,
    /// What the next commit has to do first.
    needs: Needs,
    /// A host has written to the disk past the cache, or through it, since the last flush.
    by_host: bool,
    /// When the last flush is done that had something of a host to flush.
    host_flushed: Moment,
    /// Something is not there for the metadata.
    has_absent: bool,
}

impl Unflushed {
    pub(super) fn new() -> Self {
        Self {
            now: Parts::none(),
            before: Parts::none(),
            needs: Needs::Nothing,
            by_host: false,
            host_flushed: Moment::PAST,
            has_absent: false,
        }
    }

    /// Everything that was under way is over.
    pub(super) const fn forget_times(&mut self) {
        self.host_flushed = Moment::PAST;
    }
}

/// Slots whose disk would lose what is clean in them.
pub(super) struct Late {
    /// Whether all that is clean in a slot is dirty for the metadata.
    dirty: Bits,
    /// How many these are.
    count: u32,
    /// Which of them the flushes beside the work cover.
    flushing: Bits,
    /// At how many of them disks are flushed.
    flush_at: u32,
    /// By slot, sub-blocks that are not there for the metadata.
    absent: KeyMap,
    /// How many slots these may be.
    most_absent: usize,
    /// Whether anything is looked at.
    is_kept: bool,
    /// When these flushes have ended.
    flushed: Option<Moment>,
    /// They have, and slots from here on are still to be settled.
    next: Option<u32>,
}

impl Late {
    /// For so many slots.
    pub(super) fn new(slots: u32, metadata: &dyn Metadata) -> Self {
        // A commit must have room for all that a flush settles.
        let absent = (slots / ABSENT_SHARE).max((slots / 8).min(ABSENT_LEAST));
        Self {
            dirty: Bits::new(slots),
            count: 0,
            flushing: Bits::new(slots),
            flush_at: (slots / FLUSH_SHARE).max(1),
            absent: KeyMap::new(3),
            most_absent: absent.min(metadata.room() / 2).max(1) as usize,
            is_kept: metadata.outlives_cut(),
            flushed: None,
            next: None,
        }
    }

    pub(super) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn absent_of(&self, slot: u32) -> u16 {
        if self.absent.len() == 0 { 0 } else { self.absent.get(u64::from(slot)).unwrap_or(0) as u16 }
    }

    fn is_dirty(&self, slot: u32) -> bool {
        self.count > 0 && self.dirty.has(slot)
    }

    /// Whether any of a slot's neighbours, or the slot, may wait for a flush of its disk.
    #[inline]
    fn has_near(&self, slot: u32) -> bool {
        self.count > 0 && !self.dirty.is_free_word(slot) || self.absent.len() > 0
    }

    /// Whether a slot waits for a flush of its disk.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.is_dirty(slot) || self.absent_of(slot) != 0
    }

    fn set(&mut self, slot: u32, is_dirty: bool, absent: u16) {
        if self.dirty.has(slot) != is_dirty {
            if is_dirty {
                self.dirty.set(slot);
                self.count += 1;
            } else {
                self.dirty.clear(slot);
                self.count -= 1;
            }
        }
        self.flushing.clear(slot);
        if absent != 0 {
            self.absent.insert(u64::from(slot), absent.into());
        } else if self.absent.len() > 0 {
            self.absent.remove(u64::from(slot));
        }
    }

    /// Sub-blocks that are valid and that are dirty for the metadata.
    #[inline]
    fn bits(&self, slot: u32, entry: Entry) -> (u16, u16) {
        let valid = entry.valid & !self.absent_of(slot);
        (valid, if self.is_dirty(slot) { valid } else { entry.dirty })
    }

    /// Sub-blocks that are dirty for the metadata.
    fn dirty_of(&self, slot: u32, entry: Entry) -> u16 {
        self.bits(slot, entry).1
    }

    /// What the metadata are to say of a slot.
    #[inline]
    pub(super) fn recorded(&self, slot: u32, entry: Entry) -> Option<Entry> {
        let (valid, dirty) = self.bits(slot, entry);
        (valid != 0).then_some(Entry { valid, dirty, ..entry })
    }

    /// Slots of which something is not there for the metadata.
    pub(super) const fn absent(&self) -> u32 {
        self.absent.len() as u32
    }

    /// Nothing waits any more.
    pub(super) fn forget(&mut self) {
        self.dirty.clear_all();
        self.flushing.clear_all();
        self.absent = KeyMap::new(3);
        (self.count, self.next, self.flushed) = (0, None, None);
    }

    /// A flush failed: what the last ones beside the work cover is to be covered again.
    pub(super) fn distrust(&mut self) {
        self.flushing.clear_all();
        (self.flushed, self.next) = (None, None);
    }

    /// Everything that was under way is over.
    pub(super) fn forget_times(&mut self) {
        self.flushed = self.flushed.map(|_| Moment::PAST);
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.absent.memory_bytes() + self.dirty.memory_bytes() + self.flushing.memory_bytes()
    }
}

/// The slots as the metadata are to have them.
pub(super) struct Recorded<'a> {
    pub(super) slots: &'a Slots,
    pub(super) late: &'a Late,
    /// Slots that are to be filled, and with what.
    pub(super) filling: &'a KeyMap,
}

impl Table for Recorded<'_> {
    fn list(&self, slots: Range<u32>, out: &mut Vec<(u32, Entry)>) {
        if self.filling.len() > 0 {
            return out.extend(slots.filter_map(|slot| Some((slot, self.entry(slot)?))));
        }
        // A third of a commit of small writes is here.
        out.reserve(slots.len());
        for slot in slots.start..slots.end.min(self.slots.count()) {
            let entry = self.slots.entry(slot);
            if entry.valid == 0 {
                continue;
            }
            let is_plain = !self.late.has_near(slot);
            let (valid, dirty) =
                if is_plain { (entry.valid, entry.dirty) } else { self.late.bits(slot, entry) };
            if valid != 0 {
                out.push((slot, Entry { valid, dirty, ..entry }));
            }
        }
    }

    fn prepare(&self, slot: u32) {
        self.slots.prepare(slot);
    }

    #[inline]
    fn entry(&self, slot: u32) -> Option<Entry> {
        let mut entry = Table::entry(self.slots, slot)?;
        if self.filling.len() > 0 {
            entry.valid &= !self.filling.get(u64::from(slot)).unwrap_or(0) as u16;
        }
        self.late.recorded(slot, entry)
    }
}

/// How far what a disk has of a block would outlive a loss of power.
enum Hold {
    Durable,
    /// Once the flushes under way are done.
    Flushing,
    Volatile,
}

impl<E: Eviction> Cache<E> {
    /// What is flushed before metadata are written, from now on.
    pub fn set_flushing(&mut self, flushing: Flushing) {
        self.flushing = flushing;
        self.late.is_kept = flushing.covers_disks() && self.metadata.outlives_cut();
        if !self.late.is_kept {
            self.late.forget();
        }
    }

    /// What the metadata are to say of a slot.
    pub(super) fn recorded(&self, slot: u32) -> Option<Entry> {
        Recorded { slots: &self.slots, late: &self.late, filling: &self.filling }.entry(slot)
    }

    fn hold_of(&self, key: BlockKey) -> Hold {
        let unflushed = &self.volumes[usize::from(key.volume())].unflushed;
        if unflushed.now.has(key.block()) {
            Hold::Volatile
        } else if unflushed.before.has(key.block())
            && !self.steps.is_past(self.steps.side(key.volume() + 1).flushed)
        {
            Hold::Flushing
        } else {
            Hold::Durable
        }
    }

    /// A disk gets something.
    #[inline]
    pub(super) fn note_disk_write(&mut self, volume: u16, first: u64, end: u64) {
        if self.late.is_kept {
            self.volumes[usize::from(volume)].unflushed.now.add(first, end);
        }
    }

    /// What a disk got came from a host, and not from dirty blocks.
    pub(super) fn note_host_write(&mut self, volume: u16) {
        self.has_written_disk = true;
        self.volumes[usize::from(volume)].unflushed.by_host = true;
    }

    /// Sub-blocks that were dirty for the metadata will be nowhere but on the disk.
    #[cold]
    fn leave_to_disk(&mut self, key: BlockKey) {
        match self.hold_of(key) {
            Hold::Durable => {}
            Hold::Flushing => self.need(key.volume(), Needs::Wait),
            Hold::Volatile => self.need(key.volume(), Needs::Flush),
        }
    }

    fn need(&mut self, volume: u16, needs: Needs) {
        let unflushed = &mut self.volumes[usize::from(volume)].unflushed;
        unflushed.needs = unflushed.needs.max(needs);
    }

    /// A slot's block is about to have these sub-blocks.
    #[inline]
    pub(super) fn turn_late(&mut self, slot: u32, valid: u16, dirty: u16) {
        if !self.late.is_kept {
            return;
        }
        let old = self.slots.entry(slot);
        // A block that has just come from another slot has nothing there yet.
        let there = if old.valid == 0 { Entry { valid, ..old } } else { old };
        let (was_dirty, absent) = (self.late.dirty_of(slot, there), self.late.absent_of(slot));
        if was_dirty & !dirty == 0 && !self.late.has(slot) {
            return;
        }
        if was_dirty & !valid != 0 {
            self.leave_to_disk(old.key);
        }
        let cleaned = was_dirty & valid & !dirty;
        let is_late = cleaned != 0 && !matches!(self.hold_of(old.key), Hold::Durable);
        self.late.set(slot, is_late, absent & valid & !dirty);
    }

    /// These sub-blocks of a slot, which are clean or about to be, come from the disk, or go there too. Of
    /// those that were dirty for the metadata until now, `was_dirty`.
    #[inline]
    pub(super) fn rely_on_disk(&mut self, slot: u32, mask: u16, was_dirty: u16) {
        // Without clean blocks after a loss of power none of them can be wrong.
        if !self.late.is_kept || !self.keeps_clean || mask == 0 {
            return;
        }
        let key = self.slots.key(slot);
        if matches!(self.hold_of(key), Hold::Durable) {
            return;
        }
        let mut absent = self.late.absent_of(slot);
        let mut is_late = self.late.is_dirty(slot);
        if self.active_mode().makes_dirty() {
            (is_late, absent) = (true, absent & !mask);
        } else {
            absent &= !(mask & was_dirty);
            if !is_late {
                absent |= mask & !was_dirty;
            }
            is_late |= mask & was_dirty != 0;
        }
        self.volumes[usize::from(key.volume())].unflushed.has_absent |= absent != 0;
        self.late.set(slot, is_late, absent);
        self.metadata.note(slot, self.recorded(slot));
    }

    /// A slot's block leaves. What was dirty of it for the metadata is on the disk, or is of no use any more,
    /// except `moved`.
    #[inline]
    pub(super) fn leave_late(&mut self, slot: u32, moved: u16) {
        if !self.late.is_kept {
            return;
        }
        let old = self.slots.entry(slot);
        if self.late.dirty_of(slot, old) & !moved != 0 {
            self.leave_to_disk(old.key);
        }
        self.late.set(slot, false, 0);
    }

    /// A block goes to another slot with these sub-blocks. Gives those that were dirty for the metadata and
    /// do not go with it.
    pub(super) fn move_late(&mut self, from: u32, to: u32, keep: u16) -> u16 {
        if !self.late.is_kept {
            return 0;
        }
        let (was_dirty, absent) =
            (self.late.dirty_of(from, self.slots.entry(from)), self.late.absent_of(from));
        self.late.set(to, keep != 0 && self.late.is_dirty(from), absent & keep);
        was_dirty & !keep
    }

    /// Sub-blocks that were dirty for the metadata did not go with their block.
    pub(super) fn drop_late(&mut self, key: BlockKey, lost: u16) {
        if lost != 0 {
            self.leave_to_disk(key);
        }
    }

    /// If many slots wait for their disks, flushes these beside the work, which no commit waits for. Whether
    /// such flushes have ended, and the next commit settles what waited.
    #[inline]
    pub(super) fn flush_ahead(&mut self) -> bool {
        self.late.count >= self.late.flush_at && self.flush_beside()
    }

    #[cold]
    fn flush_beside(&mut self) -> bool {
        if self.late.next.is_some() || self.late.flushed.is_some() {
            return self.late.next.is_some() || self.late.flushed.is_some_and(|at| self.steps.is_past(at));
        }
        // Before a disk has told that it refuses, nothing is known to be there.
        if self.volumes.iter().any(|volume| volume.flush_error.is_some()) {
            return false;
        }
        let mut all = Gather::default();
        for volume in 0..self.volumes.len() as u16 {
            if self.volumes[usize::from(volume)].unflushed.now.is_empty() {
                let flushed = self.steps.side(volume + 1).flushed;
                self.steps.gather(&mut all, flushed);
                continue;
            }
            match self.begin_flush(volume) {
                Ok(flushed) => self.steps.gather(&mut all, flushed),
                // The next flush of that volume tells it.
                Err(CacheError::Slow { source, .. }) => {
                    self.volumes[usize::from(volume)].flush_error = Some(source);
                    return false;
                }
                Err(error) => {
                    self.keep_error(error);
                    return false;
                }
            }
        }
        self.late.flushing.copy(&self.late.dirty);
        self.late.flushed = Some(self.steps.close(&mut all));
        false
    }

    /// Before a commit: what waited for flushes beside the work that have ended is clean for the metadata, as
    /// much of it as one commit is to take.
    pub(super) fn settle_flushed(&mut self) {
        if self.late.flushed.take_if(|flushed| self.steps.is_past(*flushed)).is_some() {
            self.late.next = Some(0);
        }
        let Some(mut slot) = self.late.next else { return };
        let mut room = self.metadata.room().min(self.commit_after).saturating_sub(self.metadata.noted());
        while room > 0 && slot < self.slots.count() {
            if self.late.flushing.is_free_word(slot) {
                slot = (slot / 64 + 1) * 64;
                continue;
            }
            if self.late.flushing.has(slot) {
                self.settle_slot(slot);
                room -= 1;
            }
            slot += 1;
        }
        self.late.next = (slot < self.slots.count()).then_some(slot);
    }

    /// Everything that waited for disks is clean for the metadata once all of them are flushed.
    pub(super) fn settle_rest(&mut self, flushed: Moment) -> Result<(), CacheError> {
        if self.late.count > 0 && self.failures.bypassed.is_none() {
            let mut ahead = std::mem::take(&mut self.ahead);
            self.steps.gather(&mut ahead, flushed);
            self.ahead = ahead;
            self.late.flushing.copy(&self.late.dirty);
            (self.late.flushed, self.late.next) = (None, Some(0));
            while self.late.next.is_some() {
                self.commit()?;
            }
        }
        Ok(())
    }

    /// Nothing of a slot waits any more.
    fn settle_slot(&mut self, slot: u32) {
        let entry = self.slots.entry(slot);
        let old = self.late.recorded(slot, entry);
        self.late.set(slot, false, 0);
        let is_synchronous = self.metadata.is_synchronous(old.as_ref(), Some(&entry));
        self.must_commit |= is_synchronous;
        self.must_commit_free |= is_synchronous;
        if is_synchronous {
            self.note_settled(slot);
        }
        self.metadata.note(slot, self.recorded(slot));
    }

    /// Whether of so many blocks something is not there for the metadata that the next commit has to flush
    /// disks for them.
    #[inline]
    pub(super) const fn has_too_many_late(&self) -> bool {
        self.late.absent.len() >= self.late.most_absent
    }

    /// The next commit flushes every disk that blocks wait for to be there, but for those that refused it and
    /// did not tell a host yet. `false` if there is none.
    #[cold]
    pub(super) fn need_flushes(&mut self) -> bool {
        let mut has_any = false;
        for (slot, _) in self.late.absent.iter() {
            let volume = &mut self.volumes[usize::from(self.slots.key(slot as u32).volume())];
            if volume.flush_error.is_none() {
                volume.unflushed.needs = Needs::Flush;
                has_any = true;
            }
        }
        has_any
    }

    /// Whether the next commit has to flush a disk.
    pub(super) fn needs_flushes(&self) -> bool {
        self.volumes.iter().any(|volume| volume.unflushed.needs == Needs::Flush)
    }

    /// Flushes the disks that the next commit depends on, and adds to what it waits for.
    pub(super) fn flush_needed(&mut self, before: &mut Gather) -> Result<(), CacheError> {
        for volume in 0..self.volumes.len() as u16 {
            let unflushed = &mut self.volumes[usize::from(volume)].unflushed;
            match std::mem::replace(&mut unflushed.needs, Needs::Nothing) {
                Needs::Nothing => continue,
                Needs::Wait => {
                    let flushed = self.steps.side(volume + 1).flushed;
                    self.steps.gather(before, flushed);
                }
                Needs::Flush => match self.flush_disk(volume) {
                    Ok(flushed) => self.steps.gather(before, flushed),
                    // The next flush of that volume tells it; others are not concerned.
                    Err(CacheError::Slow { source, .. }) => {
                        self.volumes[usize::from(volume)].flush_error = Some(source);
                    }
                    Err(error) => return Err(error),
                },
            }
            self.volumes[usize::from(volume)].unflushed.needs = Needs::Nothing;
        }
        Ok(())
    }

    /// Flushes a volume's disk, if it was written to, and gives when that is done. What was not there is so
    /// from the next commit on, which waits for it.
    pub(super) fn flush_disk(&mut self, volume: u16) -> Result<Moment, CacheError> {
        let flushed = self.begin_flush(volume)?;
        self.settle_absent(volume);
        Ok(flushed)
    }

    fn begin_flush(&mut self, volume: u16) -> Result<Moment, CacheError> {
        let side = self.steps.side(volume + 1);
        let (was_volatile, before) = (side.is_volatile, side.flushed);
        let flushed = self
            .steps
            .flush(volume + 1, Moment::PAST)
            .map_err(|source| CacheError::Slow { volume, source })?;
        if was_volatile {
            let is_before_past = self.steps.is_past(before);
            let unflushed = &mut self.volumes[usize::from(volume)].unflushed;
            if std::mem::take(&mut unflushed.by_host) {
                unflushed.host_flushed = flushed;
            }
            if self.late.is_kept {
                let (now, before) = (&mut unflushed.now.0, &mut unflushed.before.0);
                if is_before_past {
                    before.fill(0);
                }
                before.iter_mut().zip(now.iter()).for_each(|(word, more)| *word |= more);
                now.fill(0);
            }
        }
        Ok(flushed)
    }

    /// What was not there for the metadata until a flush of a disk is so.
    fn settle_absent(&mut self, volume: u16) {
        self.volumes[usize::from(volume)].unflushed.has_absent = false;
        if self.late.absent.len() == 0 {
            return;
        }
        let absent = self.late.absent.iter().map(|(slot, _)| slot as u32);
        // What the next commit has no room for stays as it is.
        let room = self.metadata.room().saturating_sub(self.metadata.noted());
        let settled: Vec<u32> =
            absent.filter(|slot| self.slots.key(*slot).volume() == volume).take(room as usize).collect();
        for slot in settled {
            self.settle_slot(slot);
            self.need(volume, Needs::Wait);
        }
    }

    /// Whether a host's flush of a volume has to flush its disk.
    pub(super) fn concerns_disk(&self, volume: u16) -> bool {
        let unflushed = &self.volumes[usize::from(volume)].unflushed;
        !self.late.is_kept || !self.active_mode().makes_dirty() || unflushed.by_host || unflushed.has_absent
    }

    /// The next commit flushes this disk first.
    pub(super) fn need_flush(&mut self, volume: u16) {
        let has_absent = self.volumes[usize::from(volume)].unflushed.has_absent;
        if self.late.is_kept && (has_absent || self.steps.side(volume + 1).is_volatile) {
            self.need(volume, Needs::Flush);
        }
    }

    /// When what hosts wrote to the disk is flushed, as far as flushes for that have begun.
    pub(super) fn host_flushed(&self, volume: u16) -> Moment {
        self.volumes[usize::from(volume)].unflushed.host_flushed
    }
}
