//! How much of the cache each volume has, and may have.

use super::Directory;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;

/// What a volume has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Bytes of its disk.
    pub capacity: u64,
    /// Slots that it may hold at most.
    pub quota: Option<u32>,
    /// Slots that it holds.
    pub held: u32,
}

impl<E: Eviction> Directory<E> {
    /// Why one block more of this volume may not be there: whose blocks are too many (`None`: those of all
    /// volumes together), of so many that are used.
    pub fn excess(&self, volume: u16, used: u32) -> Option<(Option<u16>, Bypass)> {
        let share = &self.shares[usize::from(volume)];
        if share.held >= share.quota.unwrap_or(u32::MAX) {
            Some((Some(volume), Bypass::Quota))
        } else if used >= self.limit {
            Some((None, Bypass::NoRoom))
        } else {
            None
        }
    }

    /// Blocks that are too many, of so many that are used.
    pub const fn too_many(&self, used: u32) -> u32 {
        used.saturating_sub(self.limit)
    }

    /// See [`crate::Cache::dirty_by_volume`].
    pub fn dirty_by_volume(&self) -> Vec<(u64, u64)> {
        let mut all = vec![(0, 0); self.shares.len()];
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

    pub fn slots_of(&self, volume: u16) -> impl Iterator<Item = u32> {
        (0..self.slots.count())
            .filter(move |slot| self.slots.valid(*slot) != 0 && self.slots.key(*slot).volume() == volume)
    }

    /// See [`crate::Cache::set_limit`].
    pub fn set_limit(&mut self, slots: u32) {
        self.limit = if slots < self.slots.count() { slots } else { u32::MAX };
    }
}
