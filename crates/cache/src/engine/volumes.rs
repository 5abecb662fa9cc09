//! Volumes that share a cache: how much each may hold, leaving with all that is theirs, and how much of the
//! cache is used at all.

use super::hole::Hole;
use super::timeline::Side;
use super::{BoxedStore, Cache, CacheError, Result};
use nandscape_core::{SimTime, Subsystem};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;

/// Blocks that leave for one that comes, where more are held than may be.
const AT_ONCE: u32 = 16;

impl<E: Eviction> Cache<E> {
    /// Slots that a volume may hold at most; `None`: as many as it gets. Where it holds more, they leave as
    /// others of its own come.
    pub fn set_quota(&mut self, volume: u16, slots: Option<u32>) -> Result<()> {
        let place = self.volumes.get(usize::from(volume)).filter(|volume| volume.is_attached);
        place.ok_or(CacheError::NoVolume(volume))?;
        if let Some(slots) = slots.filter(|_| self.directory.log.is_some()) {
            let expected = "none on a cache device that is written in order".to_owned();
            return Err(CacheError::Setup { what: "quota of a volume", value: slots.into(), expected });
        }
        self.directory.shares[usize::from(volume)].quota = slots;
        Ok(())
    }

    /// Slots that a volume holds.
    pub fn held(&self, volume: u16) -> u32 {
        self.directory.shares[usize::from(volume)].held
    }

    /// Dirty blocks of a volume. Looks at every slot.
    pub fn dirty_of(&self, volume: u16) -> u32 {
        self.directory.slots_of(volume).filter(|slot| self.directory.slots.dirty_bits(*slot) != 0).count()
            as u32
    }

    /// Dirty blocks of each volume by its number, and the bytes in them that the disk does not have. Looks at
    /// every slot, once.
    pub fn dirty_by_volume(&self) -> Vec<(u64, u64)> {
        self.directory.dirty_by_volume()
    }

    /// Slots that are used at most. Where more are, they leave as others come, or with [`Cache::shrink`].
    pub fn set_limit(&mut self, slots: u32) {
        self.directory.set_limit(slots);
    }

    /// Who chooses what leaves from now on: `make` is given the slots of a set and a seed. The blocks that
    /// are cached come to it in the order in which they would have left; what else the policy before it
    /// remembered, such as how often they were asked for, is forgotten, and so is what it counted.
    pub fn set_evictions(&mut self, make: impl FnMut(u32, u64) -> E, seed: u64) {
        self.directory.set_evictions(make, seed);
    }

    /// Slots that a volume may hold at most; `None`: as many as it gets.
    pub fn quota(&self, volume: u16) -> Option<u32> {
        self.directory.shares[usize::from(volume)].quota
    }

    /// Lets up to `max` blocks leave that are too many for [`Cache::set_limit`], dirty ones to the disk, and
    /// gives how many too many there still are.
    pub fn shrink(&mut self, max: u32, at: SimTime) -> Result<u32> {
        self.arrive(at)?;
        let sets = self.directory.sets();
        let mut left = max.min(self.directory.too_many(self.used()));
        let mut idle = 0;
        let mut set = self.writeback.hand % sets;
        while left > 0 && idle < sets {
            self.make_note_room()?;
            let has_left = self.evict(set, None)?;
            idle = if has_left { 0 } else { idle + 1 };
            left -= u32::from(has_left);
            set = (set + 1) % sets;
        }
        self.commit()?;
        Ok(self.directory.too_many(self.used()))
    }

    /// Makes sure that one block more of this volume may be there; why not, where it may not.
    pub(super) fn make_allowance(&mut self, key: BlockKey) -> Result<Result<(), Bypass>> {
        let volume = key.volume();
        for attempt in 0.. {
            let Some((owner, why)) = self.directory.excess(volume, self.used()) else { break };
            self.make_note_room()?;
            if attempt == AT_ONCE || !self.evict(self.directory.set(key), owner)? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// Writes up to `max` dirty blocks of a volume, or of all, to the disk from `at` on, in the order of the
    /// disk, and gives how many there were. They stay cached. What switching to a mode without dirty
    /// blocks, and detaching, must be preceded by.
    pub fn drain(&mut self, volume: Option<u16>, max: u32, at: SimTime) -> Result<u32> {
        self.arrive(at)?;
        let mut slots: Vec<u32> = (0..self.directory.slots.count())
            .filter(|slot| self.directory.slots.dirty_bits(*slot) != 0)
            .filter(|slot| volume.is_none_or(|volume| self.directory.slots.key(*slot).volume() == volume))
            .collect();
        slots.sort_unstable_by_key(|slot| self.directory.slots.key(*slot));
        slots.truncate(max as usize);
        self.clean_slots(&slots)
    }

    /// Takes a volume away and gives its disk back, which then is complete without the cache. Its number may
    /// be given to another one.
    ///
    /// # Errors
    /// Blocks of it are dirty: [`Cache::drain`] comes first. After an error of a store nothing has been taken
    /// away.
    pub fn detach(&mut self, volume: u16, at: SimTime) -> Result<BoxedStore> {
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
        let slots: Vec<u32> = self.directory.slots_of(volume).collect();
        for slot in slots {
            self.make_note_room()?;
            self.expel(slot, false);
        }
        self.commit()?;
        self.durability.flush_disk(&self.directory.slots, &mut self.timeline, volume)?;
        self.commit_open()?;
        self.timeline.drain();
        self.settle_fills()?;
        if let Some(error) = self.take_late_error() {
            return Err(error);
        }
        self.directory.detach(volume);
        self.durability.disks[usize::from(volume)].forget_writes();
        self.volumes[usize::from(volume)].is_attached = false;
        self.infos[usize::from(volume)].capacity_bytes = 0;
        let hole = Hole { bytes: 0, keeps_bytes: self.buffers.keeps_bytes };
        let side = std::mem::replace(self.timeline.side_mut(volume + 1), Side::new(Box::new(hole)));
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
}
