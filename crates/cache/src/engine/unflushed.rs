//! What a disk would still lose, and what the metadata therefore do not say yet.
//!
//! An entry that says that a block is clean, or that it is gone, relies on the disk. Instead of flushing the disk before each commit with such an entry:
//! * a block that was dirty and is on the disk now stays dirty for the metadata until the disk has been flushed;
//! * one that came from the disk, or went there and into the cache together, while the disk would lose it, is dirty for the metadata too; in modes that
//!   make nothing dirty it is not there for them. Only blocks are looked at that lie near one that was written to since the disk was flushed;
//! * so a commit flushes a disk only if a block leaves that the metadata have as dirty, or if too many wait for it.
//!
//! All of this is for metadata that outlive a loss of power, and designs that flush disks for them ([`Flushing::Both`]).

use super::slots::Slots;
use super::steps::{Gather, Moment};
use super::{Cache, CacheError};
use crate::eviction::Eviction;
use crate::hash::{KeyMap, mix};
use crate::key::BlockKey;
use crate::metadata::{Entry, Metadata, Table};
use crate::presets::Flushing;
use std::ops::Range;

/// Neighbouring blocks that are looked at as one, as a shift.
const RUN: u32 = 4;
const WORDS: usize = 64;

/// One slot in so many may wait for a flush of its disk, since each takes 32 bytes of memory, and 100 in the commit after the flush.
const LATE_SHARE: u32 = 256;
/// In small caches as many may wait in any case, up to an eighth of all.
const LATE_LEAST: u32 = 256;
/// Neighbouring slots that are counted together.
const NEAR: u32 = 64;

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

/// Sub-blocks of slots whose disk would lose them.
#[derive(Debug)]
pub(super) struct Late {
    /// By slot: those that are dirty for the metadata, and in the next 16 bits those that are not there.
    slots: KeyMap,
    /// How many there are of each [`NEAR`] neighbours, so that most need not be looked for.
    near: Box<[u8]>,
    /// How many slots there may be.
    most: usize,
    /// Whether anything is looked at.
    is_kept: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Masks {
    dirty: u16,
    absent: u16,
}

impl Late {
    /// For so many slots.
    pub(super) fn new(slots: u32, metadata: &dyn Metadata) -> Self {
        // A commit must have room for all that a flush settles.
        let most =
            (slots / LATE_SHARE).max((slots / 8).min(LATE_LEAST)).min(metadata.room() / 2).max(1) as usize;
        let near = vec![0; slots.div_ceil(NEAR) as usize].into_boxed_slice();
        Self { slots: KeyMap::new(3), near, most, is_kept: metadata.outlives_cut() }
    }

    pub(super) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether any of a slot's neighbours, or the slot, waits for a flush of its disk.
    #[inline]
    fn has_near(&self, slot: u32) -> bool {
        self.near[(slot / NEAR) as usize] > 0
    }

    #[inline]
    fn of(&self, slot: u32) -> Masks {
        if !self.has_near(slot) {
            return Masks::default();
        }
        let masks = self.slots.get(u64::from(slot)).unwrap_or(0);
        Masks { dirty: masks as u16, absent: (masks >> 16) as u16 }
    }

    /// Whether a slot waits for a flush of its disk.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.of(slot) != Masks::default()
    }

    fn set(&mut self, slot: u32, masks: Masks) {
        let near = &mut self.near[(slot / NEAR) as usize];
        if masks != Masks::default() {
            let masks = u64::from(masks.dirty) | u64::from(masks.absent) << 16;
            *near += u8::from(self.slots.insert(u64::from(slot), masks).is_none());
        } else if *near > 0 {
            *near -= u8::from(self.slots.remove(u64::from(slot)).is_some());
        }
    }

    /// What the metadata are to say of a slot.
    #[inline]
    pub(super) fn recorded(&self, slot: u32, entry: Entry) -> Option<Entry> {
        let masks = self.of(slot);
        let valid = entry.valid & !masks.absent;
        (valid != 0).then_some(Entry { valid, dirty: entry.dirty | masks.dirty, ..entry })
    }

    /// Slots that wait for a flush of a disk.
    pub(super) const fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Nothing waits any more.
    pub(super) fn forget(&mut self) {
        self.slots = KeyMap::new(3);
        self.near.fill(0);
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.slots.memory_bytes() + self.near.len() as u64
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
            if !self.late.has_near(slot) {
                out.push((slot, entry));
            } else if let Some(entry) = self.late.recorded(slot, entry) {
                out.push((slot, entry));
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
        let masks = self.late.of(slot);
        let was_dirty = old.dirty | masks.dirty;
        if was_dirty & !dirty == 0 && masks == Masks::default() {
            return;
        }
        if was_dirty & !valid != 0 {
            self.leave_to_disk(old.key);
        }
        let mut cleaned = was_dirty & valid & !dirty;
        if cleaned != 0 {
            match self.hold_of(old.key) {
                Hold::Volatile => {}
                Hold::Flushing => {
                    self.need(old.key.volume(), Needs::Wait);
                    cleaned = 0;
                }
                Hold::Durable => cleaned = 0,
            }
        }
        self.late.set(slot, Masks { dirty: cleaned, absent: masks.absent & valid & !dirty });
    }

    /// These sub-blocks of a slot, which are clean or about to be, come from the disk, or go there too. Of those that were dirty for the metadata until
    /// now, `was_dirty`.
    #[inline]
    pub(super) fn rely_on_disk(&mut self, slot: u32, mask: u16, was_dirty: u16) {
        // Without clean blocks after a loss of power none of them can be wrong.
        if !self.late.is_kept || !self.keeps_clean || mask == 0 {
            return;
        }
        let key = self.slots.key(slot);
        match self.hold_of(key) {
            Hold::Durable => {}
            Hold::Flushing => self.need(key.volume(), Needs::Wait),
            Hold::Volatile => {
                let mut masks = self.late.of(slot);
                let is_dirty = if self.active_mode().makes_dirty() { mask } else { mask & was_dirty };
                masks.dirty |= is_dirty;
                masks.absent = masks.absent & !is_dirty | mask & !masks.dirty;
                self.volumes[usize::from(key.volume())].unflushed.has_absent |= masks.absent != 0;
                self.late.set(slot, masks);
                self.metadata.note(slot, self.recorded(slot));
            }
        }
    }

    /// A slot's block leaves. What was dirty of it for the metadata is on the disk, or is of no use any more, except `moved`.
    #[inline]
    pub(super) fn leave_late(&mut self, slot: u32, moved: u16) {
        if !self.late.is_kept {
            return;
        }
        let old = self.slots.entry(slot);
        let masks = self.late.of(slot);
        if (old.dirty | masks.dirty) & !moved != 0 {
            self.leave_to_disk(old.key);
        }
        self.late.set(slot, Masks::default());
    }

    /// A block goes to another slot with these sub-blocks. Gives those that were dirty for the metadata and do not go with it.
    pub(super) fn move_late(&mut self, from: u32, to: u32, keep: u16) -> u16 {
        if !self.late.is_kept {
            return 0;
        }
        let masks = self.late.of(from);
        self.late.set(to, Masks { dirty: masks.dirty & keep, absent: masks.absent & keep });
        (self.slots.dirty_bits(from) | masks.dirty) & !keep
    }

    /// Sub-blocks that were dirty for the metadata did not go with their block.
    pub(super) fn drop_late(&mut self, key: BlockKey, lost: u16) {
        if lost != 0 {
            self.leave_to_disk(key);
        }
    }

    /// Whether so many blocks wait for a flush of their disk that the next commit has to make one.
    #[inline]
    pub(super) const fn has_too_many_late(&self) -> bool {
        self.late.slots.len() >= self.late.most
    }

    /// The next commit flushes every disk that blocks wait for, but for those that refused it and did not tell a host yet. `false` if there is none.
    #[cold]
    pub(super) fn need_flushes(&mut self) -> bool {
        let mut has_any = false;
        for (slot, _) in self.late.slots.iter() {
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

    /// Flushes a volume's disk, if it was written to, and gives when that is done. What relied on it is clean for the metadata from the next commit on.
    pub(super) fn flush_disk(&mut self, volume: u16) -> Result<Moment, CacheError> {
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
                unflushed.has_absent = false;
            }
        }
        self.settle_late(volume);
        Ok(flushed)
    }

    /// What waited for a flush of a disk is clean, and there, for the metadata.
    fn settle_late(&mut self, volume: u16) {
        if self.late.slots.len() == 0 {
            return;
        }
        let settled = self.late.slots.iter().map(|(slot, _)| slot as u32);
        // What the next commit has no room for stays as it is.
        let room = self.metadata.room().saturating_sub(self.metadata.noted());
        let settled: Vec<u32> =
            settled.filter(|slot| self.slots.key(*slot).volume() == volume).take(room as usize).collect();
        for slot in settled {
            let entry = self.slots.entry(slot);
            let old = self.late.recorded(slot, entry);
            self.late.set(slot, Masks::default());
            let is_synchronous = self.metadata.is_synchronous(old.as_ref(), Some(&entry));
            self.must_commit |= is_synchronous;
            self.must_commit_free |= is_synchronous;
            if is_synchronous {
                self.note_settled(slot);
            }
            self.metadata.note(slot, self.recorded(slot));
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
        if self.late.is_kept && self.steps.side(volume + 1).is_volatile {
            self.need(volume, Needs::Flush);
        }
    }

    /// When what hosts wrote to the disk is flushed, as far as flushes for that have begun.
    pub(super) fn host_flushed(&self, volume: u16) -> Moment {
        self.volumes[usize::from(volume)].unflushed.host_flushed
    }
}
