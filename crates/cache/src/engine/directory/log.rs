//! Slots of a store that is written in order ([`Regions`]): the next slot is the one behind the last, and a
//! region is used again as a whole.
//!
//! * Every region is free, is open, or was written to its end; one at most is open, and one leaves.
//! * A slot is taken once between two uses of its region. What is given back is dead until then.

use super::Directory;
use crate::engine::timeline::Moment;
use nandscape_core::{Extent, Regions};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;
use std::collections::VecDeque;

/// Regions of slots.
pub struct Log {
    store: Regions,
    /// Slots of a region.
    per: u32,
    free: VecDeque<Free>,
    open: Option<Open>,
    leaving: Option<Leaving>,
    /// By region: slots that were taken and not given back.
    held: Vec<u32>,
    /// By region: the eviction policy has it.
    listed: Vec<bool>,
    /// By region: it is used no more, once it is empty.
    bad: Vec<bool>,
    /// Slots that were given back, in regions that are not free yet.
    dead: u32,
    /// Regions opened so far: what policies know each by.
    opened: u64,
}

/// A region without a block.
#[derive(Clone, Copy)]
pub struct Free {
    pub region: u32,
    /// When it may be written.
    pub ready: Moment,
    /// Something was written to it since its last reset.
    pub is_stale: bool,
}

/// The region that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    region: u32,
    /// Its slots that were taken.
    taken: u32,
    /// When it may be written.
    ready: Moment,
}

/// The region whose blocks leave while another is written.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    pub region: u32,
    /// Its slots that were looked at.
    pub seen: u32,
}

impl Log {
    /// Free regions of so many slots, for all of `slots`.
    pub fn new(store: Regions, per: u32, slots: u32) -> Self {
        let count = slots / per;
        Self {
            store,
            per,
            free: (0..count).map(|region| Free { region, ready: Moment::PAST, is_stale: false }).collect(),
            open: None,
            leaving: None,
            held: vec![0; count as usize],
            listed: vec![false; count as usize],
            bad: vec![false; count as usize],
            dead: 0,
            opened: 0,
        }
    }

    pub const fn per(&self) -> u32 {
        self.per
    }

    pub const fn count(&self) -> u32 {
        self.held.len() as u32
    }

    pub const fn dead(&self) -> u32 {
        self.dead
    }

    pub const fn leaving(&self) -> Option<Leaving> {
        self.leaving
    }

    /// Slots of a region.
    pub const fn slots(&self, region: u32) -> std::ops::Range<u32> {
        region * self.per..(region + 1) * self.per
    }

    pub const fn region(&self, slot: u32) -> u32 {
        slot / self.per
    }

    /// All bytes of a region.
    pub const fn extent(&self, region: u32) -> Extent {
        self.store.extent(region)
    }

    /// First byte of a slot, whose blocks have so many.
    pub const fn offset(&self, slot: u32, block_bytes: u32) -> u64 {
        let start = self.store.extent(slot / self.per).offset;
        start + (slot % self.per) as u64 * block_bytes as u64
    }

    /// The slot with a byte, or the last one before it in its region.
    pub fn slot_at(&self, offset: u64, block_bytes: u32) -> u32 {
        let at = offset - self.store.first;
        let inside = (at % self.store.bytes / u64::from(block_bytes)).min(u64::from(self.per) - 1);
        let slot = at / self.store.bytes * u64::from(self.per) + inside;
        u32::try_from(slot).unwrap_or(u32::MAX).min(self.count() * self.per - 1)
    }

    /// Slots that were not taken.
    pub fn unused(&self) -> u32 {
        let open = self.open.map_or(0, |open| self.per - open.taken);
        self.free.len() as u32 * self.per + open
    }

    /// Slots of the open region that were taken; `None` where a region has to be opened first.
    pub fn taken(&self) -> Option<u32> {
        self.open.map(|open| open.taken).filter(|taken| *taken < self.per)
    }

    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether a region is used no more.
    pub fn is_bad(&self, region: u32) -> bool {
        self.bad[region as usize]
    }

    /// Whether no block is left in a region.
    pub fn is_empty(&self, region: u32) -> bool {
        self.held[region as usize] == 0
    }

    /// So many slots of the leaving region were looked at.
    pub fn see(&mut self, seen: u32) {
        if let Some(leaving) = &mut self.leaving {
            leaving.seen = seen;
        }
    }

    /// The next slot of the open region, and when it may be written.
    fn take(&mut self) -> Option<(u32, Moment)> {
        let open = self.open.as_mut().filter(|open| open.taken < self.per)?;
        let slot = open.region * self.per + open.taken;
        open.taken += 1;
        debug_assert!(!self.bad[open.region as usize], "slot {slot} of a region that is used no more");
        self.held[open.region as usize] += 1;
        Some((slot, open.ready))
    }

    fn give(&mut self, slot: u32) {
        let held = &mut self.held[(slot / self.per) as usize];
        assert!(*held > 0, "slot {slot} of an empty region is given back");
        *held -= 1;
        self.dead += 1;
    }
}

impl<E: Eviction> Directory<E> {
    /// The next slot of the open region, and when it may be written.
    pub fn take_in_order(&mut self) -> Option<(u32, Moment)> {
        let taken = self.log.as_mut()?.take()?;
        self.slots.used += 1;
        Some(taken)
    }

    /// A slot of a region is free when its region is.
    pub fn give_in_order(&mut self, slot: u32) {
        self.slots.set_bits(slot, 0, 0);
        self.log.as_mut().expect("slots lie in regions").give(slot);
    }

    /// Begins to write a free region; gives it if there is one.
    pub fn open_region(&mut self) -> Option<Free> {
        let log = self.log.as_mut()?;
        let free = log.free.pop_front()?;
        let held = log.held[free.region as usize];
        assert!(held == 0 && log.taken().is_none(), "region {} is opened with {held} blocks", free.region);
        log.open = Some(Open { region: free.region, taken: 0, ready: free.ready });
        log.opened += 1;
        self.list_region(free.region);
        Some(free)
    }

    /// The open region may be written from `ready` on.
    pub fn open_from(&mut self, ready: Moment) {
        if let Some(open) = self.log.as_mut().and_then(|log| log.open.as_mut()) {
            open.ready = ready;
        }
    }

    /// The eviction policy has a region from now on.
    fn list_region(&mut self, region: u32) {
        let log = self.log.as_mut().expect("slots lie in regions");
        let was_listed = std::mem::replace(&mut log.listed[region as usize], true);
        assert!(!was_listed, "the eviction policy has region {region} twice");
        self.policies[0].insert(region, BlockKey::new(0, log.opened));
    }

    /// The eviction policy chooses the region that leaves next. `false` if it has none that may.
    pub fn choose_region(&mut self) -> bool {
        let Some(log) = &mut self.log else { return false };
        let open = log.open.map(|open| open.region);
        let Some(region) = self.policies[0].evict(|region| Some(region) != open) else { return false };
        self.policies[0].evicted(region, BlockKey::new(0, log.opened));
        let was_listed = std::mem::take(&mut log.listed[region as usize]);
        assert!(was_listed && log.leaving.is_none(), "region {region} leaves beside {:?}", log.leaving);
        log.leaving = Some(Leaving { region, seen: 0 });
        true
    }

    /// The leaving region stays, since something in it cannot leave now.
    pub fn keep_region(&mut self) {
        if let Some(Leaving { region, .. }) = self.log.as_mut().and_then(|log| log.leaving.take()) {
            self.list_region(region);
        }
    }

    /// The leaving region, in which nothing is left, may be written from `ready` on.
    pub fn free_region(&mut self, ready: Moment) {
        let log = self.log.as_mut().expect("slots lie in regions");
        let Some(Leaving { region, .. }) = log.leaving.take() else { return };
        assert_eq!(log.held[region as usize], 0, "blocks in region {region}, which is free");
        assert!(log.dead >= log.per, "the slots of region {region} are dead");
        log.dead -= log.per;
        if log.bad[region as usize] {
            self.withdrawn += log.per;
        } else {
            self.slots.used -= log.per;
            log.free.push_back(Free { region, ready, is_stale: false });
        }
    }

    /// The region of a slot is used no more, from when it is empty.
    pub(super) fn retire_region(&mut self, slot: u32) {
        let log = self.log.as_mut().expect("slots lie in regions");
        let region = log.region(slot);
        assert!(region < log.count(), "slot {slot} lies in no region");
        log.bad[region as usize] = true;
        if log.open.is_some_and(|open| open.region == region) {
            self.close_region();
        } else if let Some(place) = log.free.iter().position(|free| free.region == region) {
            log.free.remove(place);
            self.slots.used += log.per;
            self.withdrawn += log.per;
        }
    }

    /// What was not taken of the open region is dead.
    fn close_region(&mut self) {
        let log = self.log.as_mut().expect("slots lie in regions");
        if let Some(open) = log.open.take() {
            assert!(open.taken <= log.per, "{open:?} of {} slots", log.per);
            log.dead += log.per - open.taken;
            self.slots.used += log.per - open.taken;
        }
    }

    /// The block in a slot was asked for.
    #[inline]
    pub fn hit(&mut self, slot: u32) {
        match &self.log {
            None => {
                let (policy, local) = self.policy(slot);
                policy.hit(local);
            }
            Some(log) => {
                let region = log.region(slot);
                if log.listed[region as usize] {
                    self.policies[0].hit(region);
                }
            }
        }
    }

    /// What was found in slots when the cache was opened. `written`: bytes of a region that were written, as
    /// its store knows it.
    pub fn find_regions(&mut self, mut written: impl FnMut(Extent) -> u64) {
        let block = self.shape.block_bytes();
        let Some(log) = &mut self.log else { return };
        log.free.clear();
        let mut found = Vec::new();
        for region in 0..log.count() {
            let in_use = |slot: &u32| self.slots.valid(*slot) != 0;
            let held = log.slots(region).filter(in_use).count() as u32;
            let behind_last = log.slots(region).rfind(in_use).map_or(0, |slot| slot % log.per + 1);
            let bytes = written(log.extent(region));
            assert!(bytes <= log.extent(region).len, "{bytes} bytes of region {region} are written");
            let taken = (bytes.div_ceil(u64::from(block)) as u32).min(log.per).max(behind_last);
            log.held[region as usize] = held;
            if held == 0 {
                log.free.push_back(Free { region, ready: Moment::PAST, is_stale: taken > 0 });
            } else {
                found.push((taken, region));
            }
        }
        // One goes on where it ended; what is not written of others is dead.
        found.sort_unstable();
        let open = found.iter().position(|(taken, _)| *taken < log.per);
        self.slots.used = 0;
        for (place, (taken, region)) in found.into_iter().enumerate() {
            let log = self.log.as_mut().expect("slots lie in regions");
            let is_open = Some(place) == open;
            let taken = if is_open { taken } else { log.per };
            log.dead += taken - log.held[region as usize];
            self.slots.used += taken;
            log.opened += 1;
            if is_open {
                log.open = Some(Open { region, taken, ready: Moment::PAST });
            }
            self.list_region(region);
        }
    }

    /// Regions, the first to leave first, of the policy before a new one.
    pub(super) fn relist_regions(&mut self, mut make: impl FnMut(u32, u64) -> E, seed: u64) {
        let log = self.log.as_mut().expect("slots lie in regions");
        let mut order = Vec::new();
        let mut is_seen = vec![false; log.count() as usize];
        self.policies[0].coldest(&mut |region| {
            if !std::mem::replace(&mut is_seen[region as usize], true) && log.listed[region as usize] {
                order.push(region);
            }
            true
        });
        order.extend(
            (0..log.count()).filter(|region| log.listed[*region as usize] && !is_seen[*region as usize]),
        );
        self.policies[0] = make(log.count(), seed);
        debug_assert!(order.len() <= log.count() as usize, "{} regions in order", order.len());
        for region in order {
            self.log.as_mut().expect("slots lie in regions").listed[region as usize] = false;
            self.list_region(region);
        }
    }

    /// Checks regions; panics with the values. For tests.
    pub(super) fn check_regions(&self, waiting: u32) {
        let Some(log) = &self.log else { return };
        let live = |region: u32| log.slots(region).filter(|slot| self.slots.valid(*slot) != 0).count() as u32;
        let mut held = 0;
        for region in 0..log.count() {
            assert!(live(region) <= log.held[region as usize], "blocks of region {region}");
            held += log.held[region as usize];
        }
        let live: u32 = (0..log.count()).map(live).sum();
        assert_eq!(held, live + waiting, "{live} blocks in regions, {waiting} wait for a commit");
        let bad_free = log.free.iter().filter(|free| log.held[free.region as usize] != 0).count();
        assert_eq!(bad_free, 0, "free regions with blocks");
    }
}
