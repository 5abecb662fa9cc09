//! Volumes that share a cache: how much each may hold, leaving with all that is theirs, and how much of the
//! cache is used at all.

use super::hole::Hole;
use super::side::Side;
use super::unflushed::Unflushed;
use super::{BoxedStore, Cache, CacheError};
use crate::counters::Counters;
use nandscape_core::{SimTime, Subsystem};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;

/// Blocks that leave for one that comes, where more are held than may be.
const AT_ONCE: u32 = 16;

impl<E: Eviction> Cache<E> {
    /// Slots that a volume may hold at most; `None`: as many as it gets. Where it holds more, they leave as
    /// others of its own come.
    pub fn set_quota(&mut self, volume: u16, slots: Option<u32>) -> Result<(), CacheError> {
        let place = self.volumes.get_mut(usize::from(volume)).filter(|volume| volume.is_attached);
        place.ok_or(CacheError::NoVolume(volume))?.quota = slots;
        Ok(())
    }

    /// Slots that a volume holds.
    pub fn held(&self, volume: u16) -> u32 {
        self.volumes[usize::from(volume)].held
    }

    /// Dirty blocks of a volume. Looks at every slot.
    pub fn dirty_of(&self, volume: u16) -> u32 {
        self.slots_of(volume).filter(|slot| self.slots.dirty_bits(*slot) != 0).count() as u32
    }

    /// Dirty blocks of each volume by its number, and the bytes in them that the disk does not have. Looks at
    /// every slot, once.
    pub fn dirty_by_volume(&self) -> Vec<(u64, u64)> {
        let mut all = vec![(0, 0); self.volumes.len()];
        let sub = u64::from(self.shape.sub_bytes());
        for slot in 0..self.slots.count() {
            let bits = self.slots.dirty_bits(slot);
            if bits != 0 {
                let (blocks, bytes) = &mut all[usize::from(self.slots.key(slot).volume())];
                *blocks += 1;
                *bytes += u64::from(bits.count_ones()) * sub;
            }
        }
        all
    }

    /// Slots that a volume may hold at most; `None`: as many as it gets.
    pub fn quota(&self, volume: u16) -> Option<u32> {
        self.volumes[usize::from(volume)].quota
    }

    fn slots_of(&self, volume: u16) -> impl Iterator<Item = u32> {
        (0..self.slots.count())
            .filter(move |slot| self.slots.valid(*slot) != 0 && self.slots.key(*slot).volume() == volume)
    }

    /// Slots that are used at most. Where more are, they leave as others come, or with [`Cache::shrink`].
    pub fn set_limit(&mut self, slots: u32) {
        self.limit = if slots < self.slots.count() { slots } else { u32::MAX };
    }

    /// Lets up to `max` blocks leave that are too many for [`Cache::set_limit`], dirty ones to the disk, and
    /// gives how many too many there still are.
    pub fn shrink(&mut self, max: u32, at: SimTime) -> Result<u32, CacheError> {
        self.arrive(at)?;
        let sets = self.policies.len() as u32;
        let mut left = max.min(self.used().saturating_sub(self.limit));
        let mut idle = 0;
        let mut set = self.hand % sets;
        while left > 0 && idle < sets {
            self.make_note_room()?;
            let has_left = self.evict(set, None)?;
            idle = if has_left { 0 } else { idle + 1 };
            left -= u32::from(has_left);
            set = (set + 1) % sets;
        }
        self.commit()?;
        Ok(self.used().saturating_sub(self.limit))
    }

    /// Makes sure that one block more of this volume may be there; why not, where it may not.
    pub(super) fn make_allowance(&mut self, key: BlockKey) -> Result<Result<(), Bypass>, CacheError> {
        let volume = key.volume();
        let quota = self.volumes[usize::from(volume)].quota.unwrap_or(u32::MAX);
        for attempt in 0.. {
            let (owner, why) = if self.held(volume) >= quota {
                (Some(volume), Bypass::Quota)
            } else if self.used() >= self.limit {
                (None, Bypass::NoRoom)
            } else {
                break;
            };
            self.make_note_room()?;
            if attempt == AT_ONCE || !self.evict(self.set(key), owner)? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// Writes up to `max` dirty blocks of a volume, or of all, to the disk from `at` on, in the order of the
    /// disk, and gives how many there were. They stay cached. What switching to a mode without dirty
    /// blocks, and detaching, must be preceded by.
    pub fn drain(&mut self, volume: Option<u16>, max: u32, at: SimTime) -> Result<u32, CacheError> {
        self.arrive(at)?;
        let mut slots: Vec<u32> = (0..self.slots.count())
            .filter(|slot| self.slots.dirty_bits(*slot) != 0)
            .filter(|slot| volume.is_none_or(|volume| self.slots.key(*slot).volume() == volume))
            .collect();
        slots.sort_unstable_by_key(|slot| self.slots.key(*slot));
        slots.truncate(max as usize);
        self.clean_slots(&slots)
    }

    /// Takes a volume away and gives its disk back, which then is complete without the cache. Its number may
    /// be given to another one.
    ///
    /// # Errors
    /// Blocks of it are dirty: [`Cache::drain`] comes first. After an error of a store nothing has been taken
    /// away.
    pub fn detach(&mut self, volume: u16, at: SimTime) -> Result<BoxedStore, CacheError> {
        self.arrive(at)?;
        if !self.volumes.get(usize::from(volume)).is_some_and(|place| place.is_attached) {
            return Err(CacheError::NoVolume(volume));
        }
        let dirty = self.dirty_of(volume);
        if dirty > 0 {
            let expected = "0: they are written to the disk first".to_owned();
            return Err(CacheError::Setup {
                what: "dirty blocks of the volume",
                value: dirty.into(),
                expected,
            });
        }
        let slots: Vec<u32> = self.slots_of(volume).collect();
        for slot in slots {
            self.make_note_room()?;
            self.expel(slot, false);
        }
        self.commit()?;
        self.flush_disk(volume)?;
        self.commit_open()?;
        self.steps.drain();
        self.settle_fills()?;
        if let Some(error) = self.take_late_error() {
            return Err(error);
        }
        self.slots.release(volume);
        let place = &mut self.volumes[usize::from(volume)];
        (place.is_attached, place.quota, place.capacity) = (false, None, 0);
        place.unflushed = Unflushed::new();
        self.infos[usize::from(volume)].capacity_bytes = 0;
        let hole = Hole { bytes: 0, keeps_bytes: self.keeps_bytes };
        let side = std::mem::replace(self.steps.side_mut(volume + 1), Side::new(Box::new(hole)));
        Ok(side.store)
    }

    /// The number of a volume that is no longer there.
    pub(super) fn vacancy(&self) -> Option<u16> {
        self.volumes.iter().position(|volume| !volume.is_attached).map(|place| place as u16)
    }

    /// Numbers of the volumes that are there.
    pub fn attached(&self) -> impl Iterator<Item = u16> {
        (0..self.namespaces().len() as u16).filter(|volume| self.volumes[usize::from(*volume)].is_attached)
    }

    /// What was counted of the volume with this number before is that of another one.
    pub(super) fn forget_counts(&mut self, volume: u16) {
        *self.meter.of(volume) = Counters::default();
    }
}
