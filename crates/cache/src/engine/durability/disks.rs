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

use super::Durability;
use crate::engine::directory::Slots;
use crate::engine::error::{CacheError, Result};
use crate::engine::timeline::{Gather, Moment, Timeline};
use nandscape_core::{StoreError, StoreResult};
use nandscape_policies::BlockKey;
use nandscape_policies::hash::mix;

/// Neighbouring blocks that are looked at as one, as a shift.
const RUN: u32 = 4;
const WORDS: usize = 64;

/// Parts of a disk, by hash.
#[derive(Clone, Debug)]
struct Parts(Box<[u64; WORDS]>);

impl Default for Parts {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl Parts {
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    #[default]
    Nothing,
    /// Wait for the flushes that are under way.
    Wait,
    Flush,
}

/// What was written to a disk.
#[derive(Clone, Debug, Default)]
pub struct Unflushed {
    /// Since the last flush.
    now: Parts,
    /// What flushes cover that may still be under way.
    before: Parts,
    /// What the next commit has to do first.
    needs: Needs,
    /// A host has written to the disk past the cache, or through it, since the last flush.
    pub by_host: bool,
    /// When the last flush is done that had something of a host to flush.
    pub host_flushed: Moment,
    /// Something is not there for the metadata.
    pub has_absent: bool,
    /// A flush that nobody asked for failed.
    pub flush_error: Option<StoreError>,
}

impl Unflushed {
    /// The disk is taken away. That a flush of it failed is still told.
    pub fn forget_writes(&mut self) {
        *self = Self { flush_error: self.flush_error.take(), ..Self::default() };
    }

    /// Everything that was under way is over.
    pub const fn forget_times(&mut self) {
        self.host_flushed = Moment::PAST;
    }
}

/// How far what a disk has of a block would outlive a loss of power.
pub enum Hold {
    Durable,
    /// Once the flushes under way are done.
    Flushing,
    Volatile,
}

impl Durability {
    pub fn hold_of(&self, timeline: &Timeline, key: BlockKey) -> Hold {
        let unflushed = &self.disks[usize::from(key.volume())];
        if unflushed.now.has(key.block()) {
            Hold::Volatile
        } else if unflushed.before.has(key.block())
            && !timeline.is_past(timeline.side(key.volume() + 1).flushed)
        {
            Hold::Flushing
        } else {
            Hold::Durable
        }
    }

    /// A disk gets something.
    #[inline]
    pub fn note_disk_write(&mut self, volume: u16, first: u64, end: u64) {
        if self.late.is_kept {
            self.disks[usize::from(volume)].now.add(first, end);
        }
    }

    /// Sub-blocks that were dirty for the metadata will be nowhere but on the disk.
    #[cold]
    pub fn leave_to_disk(&mut self, timeline: &Timeline, key: BlockKey) {
        match self.hold_of(timeline, key) {
            Hold::Durable => {}
            Hold::Flushing => self.need(key.volume(), Needs::Wait),
            Hold::Volatile => self.need(key.volume(), Needs::Flush),
        }
    }

    pub fn need(&mut self, volume: u16, needs: Needs) {
        let unflushed = &mut self.disks[usize::from(volume)];
        unflushed.needs = unflushed.needs.max(needs);
    }

    /// If many slots wait for their disks, flushes these beside the work, which no commit waits for. Whether
    /// such flushes have ended, and the next commit settles what waited.
    #[inline]
    pub fn flush_ahead(&mut self, timeline: &mut Timeline) -> bool {
        self.late.count >= self.late.flush_at && self.flush_beside(timeline)
    }

    #[cold]
    fn flush_beside(&mut self, timeline: &mut Timeline) -> bool {
        if self.late.next.is_some() || self.late.flushed.is_some() {
            return self.late.next.is_some() || self.late.flushed.is_some_and(|at| timeline.is_past(at));
        }
        // Before a disk has told that it refuses, nothing is known to be there.
        if self.disks.iter().any(|volume| volume.flush_error.is_some()) {
            return false;
        }
        let mut all = Gather::default();
        for volume in 0..self.disks.len() as u16 {
            if self.disks[usize::from(volume)].now.is_empty() {
                let flushed = timeline.side(volume + 1).flushed;
                timeline.gather(&mut all, flushed);
                continue;
            }
            match self.begin_flush(timeline, volume) {
                Ok(flushed) => timeline.gather(&mut all, flushed),
                // The next flush of that volume tells it.
                Err(error) => {
                    self.disks[usize::from(volume)].flush_error = Some(error);
                    return false;
                }
            }
        }
        self.late.flushing.copy(&self.late.dirty);
        self.late.flushed = Some(timeline.close(&mut all));
        false
    }

    /// Before a commit: what waited for flushes beside the work that have ended is clean for the metadata, as
    /// much of it as one commit is to take.
    pub fn settle_flushed(&mut self, slots: &Slots, timeline: &Timeline) {
        if self.late.flushed.take_if(|flushed| timeline.is_past(*flushed)).is_some() {
            self.late.next = Some(0);
        }
        let Some(mut slot) = self.late.next else { return };
        let mut room =
            self.metadata.room().min(self.rules.commit_after).saturating_sub(self.metadata.noted());
        while room > 0 && slot < slots.count() {
            if self.late.flushing.is_free_word(slot) {
                slot = (slot / 64 + 1) * 64;
                continue;
            }
            if self.late.flushing.has(slot) {
                self.settle_slot(slots, slot);
                room -= 1;
            }
            slot += 1;
        }
        self.late.next = (slot < slots.count()).then_some(slot);
    }

    /// Everything that waited for disks is to be clean for the metadata once all of them are flushed, with
    /// the commits that follow until `late.next` is `None`. Whether anything waited.
    pub fn settle_rest(&mut self, timeline: &mut Timeline, flushed: Moment) -> bool {
        let has_any = self.late.count > 0;
        if has_any {
            timeline.gather(&mut self.commits.ahead, flushed);
            self.late.flushing.copy(&self.late.dirty);
            (self.late.flushed, self.late.next) = (None, Some(0));
        }
        has_any
    }

    /// The next commit flushes every disk that blocks wait for to be there, but for those that refused it and
    /// did not tell a host yet. `false` if there is none.
    #[cold]
    pub fn need_flushes(&mut self, slots: &Slots) -> bool {
        let mut has_any = false;
        for slot in self.late.absent.keys() {
            let volume = &mut self.disks[usize::from(slots.key(*slot as u32).volume())];
            if volume.flush_error.is_none() {
                volume.needs = Needs::Flush;
                has_any = true;
            }
        }
        has_any
    }

    /// Whether the next commit has to flush a disk.
    pub fn needs_flushes(&self) -> bool {
        self.disks.iter().any(|volume| volume.needs == Needs::Flush)
    }

    /// Flushes the disks that the next commit depends on, and adds to what it waits for.
    pub fn flush_needed(&mut self, slots: &Slots, timeline: &mut Timeline, before: &mut Gather) {
        for volume in 0..self.disks.len() as u16 {
            let unflushed = &mut self.disks[usize::from(volume)];
            match std::mem::replace(&mut unflushed.needs, Needs::Nothing) {
                Needs::Nothing => continue,
                Needs::Wait => {
                    let flushed = timeline.side(volume + 1).flushed;
                    timeline.gather(before, flushed);
                }
                Needs::Flush => match self.begin_flush(timeline, volume) {
                    Ok(flushed) => {
                        self.settle_absent(slots, volume);
                        timeline.gather(before, flushed);
                    }
                    // The next flush of that volume tells it; others are not concerned.
                    Err(error) => self.disks[usize::from(volume)].flush_error = Some(error),
                },
            }
            self.disks[usize::from(volume)].needs = Needs::Nothing;
        }
    }

    /// Flushes a volume's disk, if it was written to, and gives when that is done. What was not there is so
    /// from the next commit on, which waits for it.
    pub fn flush_disk(&mut self, slots: &Slots, timeline: &mut Timeline, volume: u16) -> Result<Moment> {
        let flushed =
            self.begin_flush(timeline, volume).map_err(|source| CacheError::Slow { volume, source })?;
        self.settle_absent(slots, volume);
        Ok(flushed)
    }

    fn begin_flush(&mut self, timeline: &mut Timeline, volume: u16) -> StoreResult<Moment> {
        let side = timeline.side(volume + 1);
        let (was_volatile, before) = (side.is_volatile, side.flushed);
        let flushed = timeline.flush(volume + 1, Moment::PAST)?;
        if was_volatile {
            let is_before_past = timeline.is_past(before);
            let unflushed = &mut self.disks[usize::from(volume)];
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
    fn settle_absent(&mut self, slots: &Slots, volume: u16) {
        self.disks[usize::from(volume)].has_absent = false;
        if self.late.absent.is_empty() {
            return;
        }
        let absent = self.late.absent.keys().map(|slot| *slot as u32);
        // What the next commit has no room for stays as it is.
        let room = self.metadata.room().saturating_sub(self.metadata.noted());
        let settled: Vec<u32> =
            absent.filter(|slot| slots.key(*slot).volume() == volume).take(room as usize).collect();
        for slot in settled {
            self.settle_slot(slots, slot);
            self.need(volume, Needs::Wait);
        }
    }

    /// Whether a host's flush of a volume has to flush its disk.
    pub fn concerns_disk(&self, volume: u16) -> bool {
        let unflushed = &self.disks[usize::from(volume)];
        !self.late.is_kept || !self.makes_dirty || unflushed.by_host || unflushed.has_absent
    }

    /// The next commit flushes this disk first.
    pub fn need_flush(&mut self, timeline: &Timeline, volume: u16) {
        let has_absent = self.disks[usize::from(volume)].has_absent;
        if self.late.is_kept && (has_absent || timeline.side(volume + 1).is_volatile) {
            self.need(volume, Needs::Flush);
        }
    }
}
