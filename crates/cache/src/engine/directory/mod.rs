//! Which block is in which slot: the index, the slots, the policies that choose what leaves, and how much
//! each volume may have.
//!
//! * Every slot is free, is used by one block of the index, waits for a commit, or is retired.
//! * What is dirty is valid.

mod coming;
mod index;
mod log;
mod policies;
mod shape;
mod shares;
mod slots;
mod spaces;
#[cfg(test)]
mod tests;

pub(super) use log::{Leaving, Log};
pub(super) use shape::{Piece, Shape};
pub(super) use shares::Share;
pub(super) use slots::{Bits, Slots};
pub(super) use spaces::{SPACE, SPACES, STEP};

use crate::metadata::Entry;
use coming::Coming;
use index::Index;
use nandscape_core::{Allocation, Extent};
use nandscape_policies::BlockKey;
use nandscape_policies::Map;
use nandscape_policies::eviction::Eviction;
use slots::Pins;

/// Blocks and slots.
pub(super) struct Directory<E> {
    pub shape: Shape,
    /// First byte of the first slot's data.
    pub data_at: u64,
    map: Map,
    pub index: Index,
    pub slots: Slots,
    /// Of each set.
    pub policies: Vec<E>,
    /// Slots that the command under way needs where they are.
    pub pinned: Pins,
    /// Of each volume.
    pub shares: Vec<Share>,
    /// Slots that are used at most; [`u32::MAX`] if all of them may be.
    limit: u32,
    /// Favoured and back again ([`Eviction::moves`]) at the last reset.
    moved: (u64, u64),
    /// Slots that are used no more, and how many of them wait for no commit.
    retired: Option<Bits>,
    pub withdrawn: u32,
    coming: Coming,
    /// Where the store is written in order. There is one set then, and its policy chooses among regions.
    pub log: Option<Log>,
}

impl<E: Eviction> Directory<E> {
    /// Sets of free slots, with a policy for each.
    pub fn new(shape: Shape, data_at: u64, map: Map, ways: u32, policies: Vec<E>) -> Self {
        let slots = Slots::new(policies.len() as u32, ways, shape.subs());
        Self {
            shape,
            data_at,
            map,
            index: Index::new(slots.count()),
            slots,
            policies,
            pinned: Pins::none(),
            shares: Vec::new(),
            limit: u32::MAX,
            moved: (0, 0),
            retired: None,
            withdrawn: 0,
            coming: Coming::new(),
            log: None,
        }
    }

    /// A volume of so many bytes has this number from now on, which is that of another one or the next.
    /// `None`, and nothing done, if there are no keys for its blocks.
    pub fn attach(&mut self, volume: u16, capacity: u64) -> Option<()> {
        let share = self.shares.get(usize::from(volume)).copied().unwrap_or_default();
        assert_eq!(share.held, 0, "slots of volume {volume}, which is made anew");
        self.slots.assign(volume, capacity.div_ceil(u64::from(self.shape.block_bytes())))?;
        self.shares.resize_with(self.shares.len().max(usize::from(volume) + 1), Share::default);
        self.shares[usize::from(volume)] = Share { capacity, ..Share::default() };
        Some(())
    }

    /// A volume of which no slot has a block is taken off.
    pub fn detach(&mut self, volume: u16) {
        self.slots.release(volume);
        let share = &mut self.shares[usize::from(volume)];
        assert_eq!(share.held, 0, "slots of volume {volume}, which is taken off");
        (share.quota, share.capacity) = (None, 0);
    }

    pub const fn sets(&self) -> u32 {
        self.policies.len() as u32
    }

    /// Slots of a set.
    pub const fn ways(&self) -> u32 {
        self.slots.count() / self.sets()
    }

    pub fn set(&self, key: BlockKey) -> u32 {
        self.map.set(key, self.sets())
    }

    /// The slot of a block.
    #[inline]
    pub fn find(&self, key: BlockKey) -> Option<u32> {
        self.index.find(key, &self.slots)
    }

    /// The policy that a slot belongs to, and the slot's number there.
    pub fn policy(&mut self, slot: u32) -> (&mut E, u32) {
        let set = self.slots.set_of(slot);
        (&mut self.policies[set as usize], slot - self.slots.base(set))
    }

    /// Where bytes of a slot lie on the fast store.
    pub fn place(&self, slot: u32, start: u32, end: u32) -> Extent {
        let first = match &self.log {
            None => self.data_at + self.shape.offset(slot.into()),
            Some(log) => log.offset(slot, self.shape.block_bytes()),
        };
        Extent::new(first + u64::from(start), u64::from(end - start))
    }

    /// Where bytes of a block lie on its disk.
    pub fn on_disk(&self, key: BlockKey, start: u32, end: u32) -> Extent {
        Extent::new(self.shape.offset(key.block()) + u64::from(start), u64::from(end - start))
    }

    pub fn capacity(&self, volume: u16) -> u64 {
        self.shares[usize::from(volume)].capacity
    }

    /// Bytes of a block that exist: all but in a volume's last block.
    pub fn limit(&self, key: BlockKey) -> u32 {
        let rest = self.capacity(key.volume()) - self.shape.offset(key.block());
        rest.min(u64::from(self.shape.block_bytes())) as u32
    }

    /// The part of an extent of a volume in a block that it touches.
    pub fn piece(&self, volume: u16, extent: Extent, block: u64) -> Piece {
        self.shape.piece(extent, block, self.capacity(volume))
    }

    /// The next sub-blocks of a block that go to the disk in one write, as their place in it and as bits, and
    /// the rest: from the first dirty one to the last, if all between are there, and otherwise a run of dirty
    /// ones.
    pub fn next_dirty_run(&self, slot: u32, dirty: u16) -> Option<((u32, u32), u16, u16)> {
        if dirty == 0 {
            return None;
        }
        let limit = self.limit(self.slots.key(slot));
        let span = (u16::MAX << dirty.trailing_zeros()) & (u16::MAX >> dirty.leading_zeros());
        let set = if span & !self.slots.valid(slot) == 0 { span } else { dirty };
        let (start, end, others) = self.shape.run(set, limit)?;
        let mask = set & !others;
        Some(((start, end), mask, dirty & !mask))
    }

    /// A slot that was taken gets a block, of which nothing is there yet.
    pub fn settle(&mut self, slot: u32, key: BlockKey) {
        debug_assert_eq!(
            self.slots.set_of(slot),
            self.set(key),
            "the set of slot {slot}, which {key:?} gets"
        );
        self.slots.set_key(slot, key);
        self.index.insert(key, slot, &self.slots);
        self.shares[usize::from(key.volume())].held += 1;
        if self.log.is_none() {
            let (policy, local) = self.policy(slot);
            policy.insert(local, key);
        }
    }

    /// Undoes [`Directory::settle`] of a block of which nothing came.
    pub fn unsettle(&mut self, slot: u32) {
        self.take_out(slot);
        self.drop_from_policy(slot);
        self.give(slot);
    }

    /// A slot's block is no longer found or counted, and the policy has let it go. What the slot's record
    /// says stays; gives it.
    pub fn take_out(&mut self, slot: u32) -> Entry {
        let old = self.slots.entry(slot);
        self.index.remove(old.key, &self.slots);
        let share = &mut self.shares[usize::from(old.key.volume())];
        assert!(share.held > 0, "slot {slot} held {old:?} of a volume without slots");
        share.held -= 1;
        old
    }

    /// A slot's block leaves though its policy did not choose it.
    pub fn drop_from_policy(&mut self, slot: u32) {
        if self.log.is_none() {
            let (policy, local) = self.policy(slot);
            policy.remove(local);
        }
    }

    /// A block goes to another slot of its set, whose record names it already.
    pub fn relabel(&mut self, from: u32, to: u32) {
        let (source, target) = (self.slots.set_of(from), self.slots.set_of(to));
        assert_eq!(source, target, "the sets of slots {from} and {to}");
        self.index.replace(self.slots.key(from), to, &self.slots);
        if self.log.is_none() {
            let target = to - self.slots.base(self.slots.set_of(to));
            let (policy, source) = self.policy(from);
            policy.relabel(source, target);
        }
    }

    /// Slots in which nothing is, and that nothing may take: those that are used no more, and those that wait
    /// for their region.
    pub fn gone(&self) -> u32 {
        self.withdrawn + self.log.as_ref().map_or(0, Log::dead)
    }

    /// Slots with blocks, and those that wait for a commit.
    pub fn in_use(&self) -> u32 {
        self.slots.used - self.log.as_ref().map_or(0, Log::dead)
    }

    /// A slot is free, if it may be used.
    pub fn give(&mut self, slot: u32) {
        if self.log.is_some() {
            self.give_in_order(slot);
        } else if self.retired.as_ref().is_some_and(|retired| retired.has(slot)) {
            self.withdrawn += 1;
            assert!(self.withdrawn <= self.slots.count(), "slot {slot} is withdrawn twice");
            self.slots.set_bits(slot, 0, 0);
        } else {
            self.slots.give(slot);
        }
    }

    /// A slot is used no more, from when it is free.
    pub fn retire(&mut self, slot: u32) {
        let count = self.slots.count();
        assert!(slot < count, "slot {slot} of {count} is retired");
        if self.log.is_some() {
            self.retire_region(slot);
            return;
        }
        let retired = self.retired.get_or_insert_with(|| Bits::new(count));
        if !retired.has(slot) {
            retired.set(slot);
            if self.slots.withdraw(slot) {
                self.withdrawn += 1;
            }
        }
    }

    /// Nothing is pinned any more.
    pub fn unpin_all(&mut self) {
        self.pinned = Pins::none();
    }

    /// Slots with bytes in a range of the fast store; none if part of it is metadata.
    pub fn slots_in(&self, extent: Extent) -> std::ops::Range<u32> {
        let (first, block) = (self.data_at, u64::from(self.shape.block_bytes()));
        if extent.offset < first || extent.len == 0 {
            return 0..0;
        }
        if let Some(log) = &self.log {
            let (first, last) = (extent.offset, extent.end() - 1);
            let slot = |offset: u64| log.slot_at(offset, block as u32);
            return slot(first)..slot(last).saturating_add(1).min(self.slots.count());
        }
        let slot = |offset: u64| u32::try_from((offset - first) / block).unwrap_or(u32::MAX);
        slot(extent.offset).min(self.slots.count())
            ..slot(extent.end() - 1).saturating_add(1).min(self.slots.count())
    }

    /// Whether a slot can have this entry, of a block that no other slot has.
    pub fn suits(&self, slot: u32, entry: Entry) -> bool {
        self.shares.get(usize::from(entry.key.volume())).is_some_and(|share| {
            entry.valid != 0
                && entry.dirty & !entry.valid == 0
                && self.shape.offset(entry.key.block()) < share.capacity
                && self.slots.set_of(slot) == self.set(entry.key)
                && self.find(entry.key).is_none()
        })
    }

    /// Whether the first byte of an extent is anywhere, in a slot or on the disk, and how far this goes on.
    pub fn allocated(
        &self,
        volume: u16,
        extent: Extent,
        on_disk: impl FnOnce(Extent) -> Allocation,
    ) -> Allocation {
        let (first, end) = self.shape.blocks(extent);
        let has_slot = |block| self.find(BlockKey::new(volume, block)).is_some();
        let until = |block| self.shape.offset(block).min(extent.end()) - extent.offset;
        let cached = (first..end).take_while(|block| has_slot(*block)).count() as u64;
        if cached > 0 {
            return Allocation { is_mapped: true, bytes: until(first + cached) };
        }
        let disk = on_disk(extent);
        if disk.is_mapped {
            return disk;
        }
        let (_, end) = self.shape.blocks(Extent::new(extent.offset, disk.bytes));
        let next = if end - first <= u64::from(self.slots.count()) {
            (first..end).find(|block| has_slot(*block))
        } else {
            let entries = (0..self.slots.count()).map(|slot| self.slots.entry(slot));
            let keys = entries.filter(|entry| entry.valid != 0).map(|entry| entry.key);
            let later = keys.filter(|key| key.volume() == volume && key.block() > first);
            later.map(BlockKey::block).min()
        };
        Allocation { bytes: next.map_or(disk.bytes, |block| until(block).min(disk.bytes)), ..disk }
    }

    /// Checks index, slots and free lists, of which so many slots wait for a commit; panics with the values.
    /// For tests.
    pub fn check(&self, waiting: u32) {
        let (mut used, mut dirty, mut dirty_subs) = (0, 0, 0);
        for slot in 0..self.slots.count() {
            assert!(!self.pinned.has(slot), "slot {slot} is pinned between commands");
            let entry = self.slots.entry(slot);
            assert_eq!(entry.dirty & !entry.valid, 0, "slot {slot}: {entry:?}");
            if entry.valid != 0 {
                assert_eq!(self.find(entry.key), Some(slot), "slot {slot}: {entry:?}");
                assert_eq!(self.set(entry.key), self.slots.set_of(slot), "{entry:?}");
                used += 1;
                dirty += u32::from(entry.dirty != 0);
                dirty_subs += u64::from(entry.dirty.count_ones());
            }
        }
        assert_eq!(self.index.count(), used as usize, "blocks in the index");
        self.check_regions(waiting);
        let free = self.log.as_ref().map_or_else(|| self.slots.free_count(), Log::unused);
        let gone = waiting + self.gone();
        assert_eq!(used + free + gone, self.slots.count(), "{used} used, {free} free");
        assert_eq!((used, dirty), (self.slots.used - gone, self.slots.dirty));
        assert_eq!(dirty_subs, self.slots.dirty_subs, "dirty sub-blocks");
        let held: u32 = self.shares.iter().map(|share| share.held).sum();
        assert_eq!(held, used, "blocks of all volumes");
    }
}
