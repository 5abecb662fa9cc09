//! All objects: the index, and those that are in memory.

use super::layout::NOWHERE;
use super::object::Object;
use nandscape_core::SimTime;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// No slot: the object is not in memory.
const ABSENT: u32 = u32::MAX;
/// Objects that are looked at after a command for one that may leave the memory.
const LOOKS: u32 = 64;

/// What the index knows of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its first metadata page; [`NOWHERE`] before its first flush.
    pub place: u32,
    /// Pages that it is charged with.
    pub cost: u64,
    /// The same as of its metadata.
    pub flash_cost: u64,
    slot: u32,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Table {
    index: BTreeMap<u64, Entry>,
    slots: Vec<Option<Object>>,
    unused: Vec<u32>,
    /// The slot that was looked at last for one that may leave.
    hand: usize,
    /// Objects with something to flush, by the time since when; also some that have nothing any more.
    queue: VecDeque<(u64, SimTime)>,
    /// Objects of which back pointers say more than the metadata, and pages that their metadata takes.
    pub lagging: BTreeMap<u64, u64>,
    pub lag_pages: u64,
    /// Objects that gave up pages since their metadata was written.
    pub removals: BTreeSet<u64>,
    /// Objects on the flash that were deleted.
    pub deleted: BTreeSet<u64>,
    /// Objects on the flash that are deleted with the next metadata of another one.
    pub replacing: BTreeMap<u64, u64>,
    /// Objects whose records in the index on the flash are not as they are.
    pub moved: BTreeSet<u64>,
    pub dirty_bytes: u64,
    /// Pages that all objects are charged with.
    pub charged: u64,
}

impl Table {
    pub fn count(&self) -> u64 {
        self.index.len() as u64
    }

    pub fn entry(&self, id: u64) -> Option<Entry> {
        self.index.get(&id).copied()
    }

    pub fn entries(&self) -> impl Iterator<Item = (u64, Entry)> {
        self.index.iter().map(|(id, entry)| (*id, *entry))
    }

    /// The slot of an object that is in memory.
    #[inline]
    pub fn slot(&self, id: u64) -> Option<u32> {
        self.index.get(&id).map(|entry| entry.slot).filter(|slot| *slot != ABSENT)
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &Object {
        self.slots[slot as usize].as_ref().expect("an object")
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Object {
        self.slots[slot as usize].as_mut().expect("an object")
    }

    /// Objects in memory.
    pub fn loaded(&self) -> impl Iterator<Item = &Object> {
        self.slots.iter().flatten()
    }

    /// Lets objects leave the memory that may, those first that were not used since the last look at them,
    /// until it has so many. Stops after a few looks.
    #[inline]
    pub fn unload(&mut self, most: usize, may: impl Fn(&Object) -> bool) {
        for _ in 0..LOOKS {
            if self.slots.len() - self.unused.len() <= most {
                return;
            }
            self.hand = (self.hand + 1) % self.slots.len();
            let Some(object) = &mut self.slots[self.hand] else { continue };
            if std::mem::take(&mut object.is_used) || !may(object) {
                continue;
            }
            self.index.get_mut(&object.id).expect("it is in the index").slot = ABSENT;
            self.slots[self.hand] = None;
            self.unused.push(self.hand as u32);
        }
    }

    /// Takes an object out, for a while.
    pub fn take(&mut self, slot: u32) -> Object {
        self.slots[slot as usize].take().expect("an object")
    }

    pub fn put_back(&mut self, slot: u32, object: Object) {
        self.slots[slot as usize] = Some(object);
    }

    /// What the index on the flash says of an object.
    pub fn learn(&mut self, id: u64, place: u32, cost: u64) {
        let entry = Entry { place, cost, flash_cost: cost, slot: ABSENT };
        let before = self.index.insert(id, entry);
        assert!(before.is_none_or(|before| before.slot == ABSENT), "object {id} is in memory");
        self.charged = self.charged + cost - before.map_or(0, |before| before.cost);
    }

    /// An object is not there, as the flash says.
    pub fn forget(&mut self, id: u64) {
        if let Some(entry) = self.index.remove(&id) {
            self.charged -= entry.cost;
        }
    }

    /// An object is in memory from now on; it may be a new one.
    pub fn add(&mut self, object: Object) -> u32 {
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let new = Entry { place: NOWHERE, cost: 0, flash_cost: 0, slot };
        let entry = self.index.entry(object.id).or_insert(new);
        entry.slot = slot;
        self.slots[slot as usize] = Some(object);
        slot
    }

    /// Removes an object; its pages are the caller's to free.
    pub fn remove(&mut self, slot: u32) -> Object {
        let object = self.take(slot);
        self.unused.push(slot);
        let entry = self.index.remove(&object.id).expect("it is in the index");
        self.charged -= entry.cost;
        self.dirty_bytes -= object.dirty_bytes;
        self.caught_up(object.id);
        self.removals.remove(&object.id);
        self.moved.insert(object.id);
        object
    }

    /// Sets what an object is charged with, also as of its metadata.
    pub fn charge_known(&mut self, id: u64, cost: u64) {
        self.charge(id, cost);
        self.index.get_mut(&id).expect("it is in the index").flash_cost = cost;
    }

    /// Sets what an object is charged with.
    #[inline]
    pub fn charge(&mut self, id: u64, cost: u64) {
        let entry = self.index.get_mut(&id).expect("it is in the index");
        self.charged = self.charged + cost - entry.cost;
        entry.cost = cost;
    }

    /// The metadata of an object is elsewhere.
    pub fn moved_to(&mut self, id: u64, place: u32, flash_cost: u64) {
        let entry = self.index.get_mut(&id).expect("it is in the index");
        (entry.place, entry.flash_cost) = (place, flash_cost);
        self.moved.insert(id);
    }

    /// An object has something to flush.
    #[inline]
    pub fn touch(&mut self, slot: u32, at: SimTime) {
        let object = self.slots[slot as usize].as_mut().expect("an object");
        if object.dirty_since.is_none() {
            object.dirty_since = Some(at);
            self.queue.push_back((object.id, at));
        }
    }

    /// The object that has waited longest for a flush.
    pub fn oldest(&mut self) -> Option<(u64, SimTime)> {
        while let Some((id, since)) = self.queue.front().copied() {
            let slot = self.slot(id);
            if slot.is_some_and(|slot| self.get(slot).dirty_since == Some(since)) {
                return Some((id, since));
            }
            self.queue.pop_front();
        }
        None
    }

    /// The object that has waited longest, if that is too long.
    #[inline]
    pub fn overdue(&mut self, at: SimTime, after: u64) -> Option<u64> {
        let is_due = |since: SimTime| since.0.saturating_add(after) <= at.0;
        if !is_due(self.queue.front()?.1) {
            return None;
        }
        self.oldest().filter(|(_, since)| is_due(*since)).map(|(id, _)| id)
    }

    /// Back pointers say more of an object than its metadata, which takes so many pages.
    pub fn lags(&mut self, id: u64, pages: u64) {
        let before = self.lagging.insert(id, pages).unwrap_or(0);
        self.lag_pages = self.lag_pages + pages - before;
    }

    /// The metadata of an object says everything.
    pub fn caught_up(&mut self, id: u64) {
        self.lag_pages -= self.lagging.remove(&id).unwrap_or(0);
    }

    /// Memory in bytes, roughly.
    pub fn bytes(&self) -> u64 {
        // A node of the index is three quarters full.
        let entries = self.index.len() as u64 * (8 + size_of::<Entry>() as u64) * 4 / 3;
        entries + self.loaded().map(Object::bytes).sum::<u64>()
    }
}
