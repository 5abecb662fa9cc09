//! Which blocks a plan means.

use super::Writeback;
use crate::dirty::DirtyIndex;
use crate::engine::directory::Directory;
use nandscape_policies::BlockKey;
use nandscape_policies::cleaning::{Needs, Order, Plan};
use nandscape_policies::eviction::Eviction;

/// Slots that are looked at for each block in the order of eviction, before the rest is taken in the order of
/// the disk.
const LOOKED_AT: usize = 64;

impl Writeback {
    /// Blocks that a plan means, in the order of the disk, and how many of them were found before the one
    /// that the write was begun for. The list is given back ([`Writeback::chosen`]).
    pub fn choose<E: Eviction>(
        &mut self,
        directory: &Directory<E>,
        plan: &Plan,
        needs: Needs,
    ) -> (Vec<u32>, u32) {
        let mut slots = std::mem::take(&mut self.chosen);
        slots.clear();
        let most = plan.blocks as usize;
        let mut front = 0;
        match plan.order {
            Order::Oldest => {
                let most = most.min(plan.writes as usize);
                let all = self.index(needs).into_iter().flat_map(DirtyIndex::by_age);
                let old = all.take_while(|(_, at)| plan.until.is_none_or(|until| *at <= until));
                let old = old.map(|(slot, _)| slot);
                slots.extend(
                    old.filter(|slot| plan.set.is_none_or(|set| directory.slots.set_of(*slot) == set))
                        .take(most),
                );
            }
            Order::Eviction => {
                self.choose_coldest(directory, plan, needs, &mut slots);
                if slots.is_empty() {
                    front = self.choose_on_disk(directory, plan, needs, &mut slots);
                }
            }
            Order::Disk => front = self.choose_on_disk(directory, plan, needs, &mut slots),
        }
        if plan.order != Order::Disk {
            slots.sort_unstable_by_key(|slot| directory.slots.key(*slot));
        }
        (slots, front)
    }

    fn is_old(&self, plan: &Plan, needs: Needs, slot: u32) -> bool {
        let since = self.index(needs).and_then(|index| index.since(slot));
        plan.until.is_none_or(|until| since.is_none_or(|since| since <= until))
    }

    /// Runs of neighbours from the hand on, going round. Gives how many blocks lie before the ones that the
    /// runs were found by.
    fn choose_on_disk<E: Eviction>(
        &mut self,
        directory: &Directory<E>,
        plan: &Plan,
        needs: Needs,
        slots: &mut Vec<u32>,
    ) -> u32 {
        if let Some(set) = plan.set {
            self.choose_in_set(directory, plan, needs, set, slots);
            return 0;
        }
        let Some(dirty) = &self.dirty else { return 0 };
        let mut front = 0;
        let mut seen = 0;
        let mut room = plan.blocks;
        while room > 0 && seen < dirty.len() {
            let Some(key) = dirty.next_on_disk(self.next_key) else { break };
            let Some((first, length)) = dirty.run(key, room) else { break };
            seen += length;
            self.next_key = BlockKey(first.0 + u64::from(length));
            front += (key.0 - first.0) as u32;
            let keys = (first.0..first.0 + u64::from(length)).map(BlockKey);
            let found = keys.filter_map(|key| directory.find(key));
            let before = slots.len();
            slots.extend(found.filter(|slot| self.is_old(plan, needs, *slot)));
            room -= ((slots.len() - before) as u32).min(room);
        }
        front
    }

    /// The dirty blocks of a set from the hand on, going round.
    fn choose_in_set<E: Eviction>(
        &mut self,
        directory: &Directory<E>,
        plan: &Plan,
        needs: Needs,
        set: u32,
        slots: &mut Vec<u32>,
    ) {
        let base = directory.slots.base(set);
        let ways = directory.ways();
        let is_chosen =
            |slot: &u32| directory.slots.dirty_bits(*slot) != 0 && self.is_old(plan, needs, *slot);
        slots.extend((base..base + ways).filter(is_chosen));
        let round = |slot: &u32| {
            let key = directory.slots.key(*slot);
            (key < self.next_key, key)
        };
        let most = plan.blocks as usize;
        // A plan is of few blocks of a set that may be full of them.
        if most < slots.len() {
            slots.select_nth_unstable_by_key(most, round);
            slots.truncate(most);
        }
        slots.sort_unstable_by_key(round);
        if let Some(last) = slots.last() {
            self.next_key = BlockKey(directory.slots.key(*last).0 + 1);
        }
    }

    /// Those that the eviction policy would let go next; of several sets, from one after the other.
    fn choose_coldest<E: Eviction>(
        &mut self,
        directory: &Directory<E>,
        plan: &Plan,
        needs: Needs,
        slots: &mut Vec<u32>,
    ) {
        let sets = directory.sets();
        let most = plan.blocks as usize;
        let mut left = LOOKED_AT * most + 1024;
        for _ in 0..sets {
            let set = plan.set.unwrap_or(self.next_set);
            self.next_set = (set + 1) % sets;
            if self.dirty.as_ref().is_some_and(|dirty| dirty.len_of_set(set) > 0) {
                directory.coldest(set, &mut |slot| {
                    if directory.slots.dirty_bits(slot) != 0 && self.is_old(plan, needs, slot) {
                        slots.push(slot);
                    }
                    left -= 1;
                    slots.len() < most && left > 0
                });
            }
            if slots.len() >= most || left == 0 || plan.set.is_some() {
                break;
            }
        }
    }
}
