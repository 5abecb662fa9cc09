//! What becomes of a cache when a store fails.
//!
//! * A block of the fast store that cannot be read or written: its slot is used no more. What was clean is
//!   read from the disk and cached elsewhere; what was dirty and can be read goes to the disk; what cannot is
//!   lost, by the units of the fast store.
//! * The fast store is gone, takes no more writes, or cannot keep metadata: it is used no more. What was
//!   dirty goes to the disk as far as it can be read. From then on everything passes to the disks.
//! * A disk: the command fails that asked for its volume. Blocks that it does not take stay cached, and
//!   commands of other volumes are not concerned.
//!
//! Nothing of this is seen by a caller except for what was lost: reading that is an error until it is written
//! anew or discarded, and the next flush of its volume fails once, as after an error of a disk that was found
//! in the background.

use super::given_up::GivenUp;
use super::lost::LostExtents;
use super::timeline::{Bytes, FAST, Moment, Place};
use super::{Cache, CacheError, Result};
use nandscape_core::{Extent, Op, StoreError};
use nandscape_policies::eviction::Eviction;

/// Failures of the fast store in one command after which it is used no more.
const TRIES: u32 = 16;

/// What failures have left of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why the fast store is used no more; `None` while it is.
    pub bypassed: Option<StoreError>,
    /// Slots that are used no more.
    pub retired_slots: u32,
    /// Volumes whose disk refused what the cache wrote to it last.
    pub failing_disks: Vec<u16>,
    /// Bytes that were lost and not written anew ([`Cache::lost`]).
    pub lost_bytes: u64,
    /// Volumes of which it is not durable that the fast store is given up: they take no writes.
    pub unrecorded: Vec<u16>,
}

#[derive(Default)]
pub(super) struct Failures {
    pub(super) bypassed: Option<StoreError>,
    pub(super) lost: LostExtents,
    pub(super) given_up: GivenUp,
    /// Volumes that lost something of which no flush has told yet.
    untold: Vec<u16>,
    tries: u32,
}

impl Failures {
    /// Whether a read is of something lost.
    pub(super) fn check(&self, volume: u16, extent: Extent) -> Result<()> {
        match self.lost.first_in(volume, extent) {
            Some(extent) => Err(CacheError::Lost { volume, extent }),
            None => Ok(()),
        }
    }

    /// These bytes were written anew.
    pub(super) fn find_again(&mut self, volume: u16, extent: Extent) {
        if self.lost.first_in(volume, extent).is_some() {
            self.lost.remove(volume, extent);
            self.given_up.note_change(volume);
        }
    }

    fn lose(&mut self, volume: u16, extent: Extent) {
        self.lost.insert(volume, extent);
        if !self.untold.contains(&volume) {
            self.untold.push(volume);
        }
    }
}

impl<E: Eviction> Cache<E> {
    /// What failures have left.
    pub fn health(&self) -> Health {
        let failing = (0..).zip(&self.volumes).filter(|(_, volume)| volume.is_failing);
        let failures = &self.failures;
        let is_missing = |volume: &u16| failures.bypassed.is_some() && failures.given_up.is_missing(*volume);
        Health {
            bypassed: self.failures.bypassed.clone(),
            retired_slots: self.directory.withdrawn,
            failing_disks: failing.map(|(number, _)| number).collect(),
            lost_bytes: self.lost().map(|(_, extent)| extent.len).sum(),
            unrecorded: (0..self.volumes.len() as u16).filter(is_missing).collect(),
        }
    }

    /// What was lost and not written anew: volume and bytes, in order, none of which touch.
    pub fn lost(&self) -> impl Iterator<Item = (u16, Extent)> + '_ {
        self.failures.lost.iter()
    }
}

impl<E: Eviction> Cache<E> {
    pub(super) const fn begin_tries(&mut self) {
        self.failures.tries = 0;
    }

    /// A change failed on both sides: what was dirty there had made way for it, and what the disk has may be
    /// older than that.
    #[cold]
    pub(super) fn lose_change(&mut self, volume: u16, extent: Extent, failure: StoreError) {
        if !self.mode.makes_dirty() {
            return;
        }
        self.failures.lose(volume, extent);
        self.meter.of(volume).lost_bytes += extent.len;
        if self.failures.bypassed.is_some() {
            self.failures.given_up.note_change(volume);
            // If it cannot be recorded now, the next change of the volume tries again.
            let _ = self.record_given_up(volume);
        } else if self.failures.given_up.is_kept() {
            self.abandon(failure);
        }
    }

    /// The fast store failed. Afterwards the command can be tried again.
    #[cold]
    pub(super) fn degrade(&mut self, error: StoreError) -> Result<()> {
        self.failures.tries += 1;
        match error {
            StoreError::Io { offset, len, .. } if self.failures.tries < TRIES => {
                let mut done = Err(CacheError::Fast(error.clone()));
                for slot in self.directory.slots_in(Extent::new(offset, len)) {
                    done = self.retire(slot, &error);
                    if done.is_err() {
                        break;
                    }
                }
                match done {
                    Err(CacheError::Fast(_)) => self.abandon(error),
                    done => return done,
                }
            }
            StoreError::Io { .. } | StoreError::ReadOnly { .. } | StoreError::Gone { .. } => {
                self.abandon(error);
            }
            error => return Err(CacheError::Fast(error)),
        }
        Ok(())
    }

    /// A slot is used no more, because of an error there. If that loses something that the next start has to
    /// know, it is the error of the fast store.
    fn retire(&mut self, slot: u32, error: &StoreError) -> Result<()> {
        self.directory.retire(slot);
        if self.directory.slots.valid(slot) != 0 {
            self.directory.pinned.clear(slot);
            let key = self.directory.slots.key(slot);
            let block =
                Extent::new(self.directory.shape.offset(key.block()), u64::from(self.directory.limit(key)));
            if self.directory.slots.dirty_bits(slot) != 0 {
                let after = self.guard(key.volume(), block)?;
                self.salvage(slot, true, after);
                // The metadata has no entry for what is lost, so after the next start the disk's older data
                // would be served.
                if self.failures.given_up.is_kept() && self.failures.check(key.volume(), block).is_err() {
                    return Err(CacheError::Fast(error.clone()));
                }
            }
            self.make_note_room()?;
            self.meter.of(key.volume()).error_invalidates += 1;
            self.expel(slot, false);
        }
        Ok(())
    }

    /// What is dirty of a slot goes to the disk as far as it can be read and the disk takes it; the rest is
    /// lost.
    fn salvage(&mut self, slot: u32, is_readable: bool, after: Moment) {
        let key = self.directory.slots.key(slot);
        let (unit, limit) = (self.timeline.side(FAST).unit, self.directory.limit(key));
        let mut rest = self.directory.slots.dirty_bits(slot);
        while let Some((start, end, others)) = self.directory.shape.run(rest, limit) {
            rest = others;
            for part in (start..end).step_by(unit as usize) {
                let extent =
                    Extent::new(self.directory.shape.offset(key.block()) + u64::from(part), u64::from(unit));
                let mut bytes = self.buffers.take(u64::from(unit));
                let read = if is_readable {
                    self.at_slot(Op::Read, slot, part, part + unit, Bytes::into(&mut bytes), after).ok()
                } else {
                    None
                };
                let saved = read.and_then(|read| self.save(key.volume(), extent, &bytes, read));
                if let Some(saved) = saved {
                    self.timeline.hold(Place::block(key), saved);
                }
                self.buffers.give(bytes);
                if saved.is_none() && self.failures.check(key.volume(), extent).is_ok() {
                    self.failures.lose(key.volume(), extent);
                    self.meter.of(key.volume()).lost_bytes += extent.len;
                }
            }
        }
    }

    /// When the disk has this, whose blocks may be larger than those of the fast store; `None` if it does not
    /// take it.
    fn save(&mut self, volume: u16, extent: Extent, bytes: &[u8], after: Moment) -> Option<Moment> {
        let unit = u64::from(self.timeline.side(volume + 1).unit);
        let start = extent.offset / unit * unit;
        let whole = Extent::new(start, extent.end().next_multiple_of(unit) - start);
        let mut memory = self.buffers.take(whole.len);
        let mut after = Some(after);
        if whole.len != extent.len {
            let moment = after.unwrap_or(Moment::PAST);
            after = self.at_disk(Op::Read, volume, whole, Bytes::into(&mut memory), moment).ok();
        }
        if self.buffers.keeps_bytes {
            memory[(extent.offset - start) as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        let saved =
            after.and_then(|after| self.at_disk(Op::Write, volume, whole, Bytes::of(&memory), after).ok());
        self.buffers.give(memory);
        saved
    }

    /// The fast store is used no more.
    pub(super) fn abandon(&mut self, error: StoreError) {
        let is_there = !matches!(error, StoreError::Gone { .. });
        let volumes = 0..self.volumes.len() as u16;
        let may_write: Vec<bool> =
            volumes.map(|volume| self.failures.given_up.begin(volume, &error)).collect();
        let mut used: Vec<u32> =
            (0..self.directory.slots.count()).filter(|slot| self.directory.slots.valid(*slot) != 0).collect();
        used.sort_unstable_by_key(|slot| self.directory.slots.key(*slot));
        for slot in used {
            let is_readable = is_there && may_write[usize::from(self.directory.slots.key(slot).volume())];
            self.salvage(slot, is_readable, Moment::PAST);
            self.meter.of(self.directory.slots.key(slot).volume()).error_invalidates += 1;
            self.take_out(slot);
            self.directory.drop_from_policy(slot);
            self.directory.give(slot);
        }
        for (slot, _) in self.durability.give_up() {
            self.directory.give(slot);
        }
        self.directory.unpin_all();
        self.timeline.pass_over_fast();
        self.durability.settle_open(&mut self.timeline, Moment::PAST);
        self.failures.bypassed = Some(error);
        self.record_all();
    }

    /// The error that a flush of a volume tells, once.
    pub(super) fn take_failure(&mut self, volume: u16) -> Result<()> {
        if let Some(source) = self.durability.disks[usize::from(volume)].flush_error.take() {
            return Err(CacheError::Slow { volume, source });
        }
        let Some(place) = self.failures.untold.iter().position(|other| *other == volume) else {
            return Ok(());
        };
        self.failures.untold.swap_remove(place);
        self.failures.check(volume, Extent::new(0, self.directory.capacity(volume)))
    }
}
