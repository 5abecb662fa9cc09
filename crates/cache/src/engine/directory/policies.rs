//! The eviction policies: which block leaves, and other policies while blocks are cached.

use super::Directory;
use crate::presets::Victims;
use nandscape_policies::eviction::Eviction;

/// Blocks that are dirty, or whose disk would still lose them, and are passed over in search of one that may
/// leave at once.
const PASSED_OVER: u32 = 64;

impl<E: Eviction> Directory<E> {
    /// A slot of a set whose block the policy lets go, of this volume if one is named; `None` if none may
    /// leave. `is_failing`: the disk of a volume does not take what is dirty, so that it stays. `is_late`: a
    /// slot's disk would still lose what it has.
    pub fn choose_victim(
        &mut self,
        set: u32,
        owner: Option<u16>,
        victims: Victims,
        is_failing: impl Fn(u16) -> bool,
        is_late: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let base = self.slots.base(set);
        let (pinned, slots) = (&self.pinned, &self.slots);
        let may_clean = |local: u32| {
            // Most of those that are passed over are dirty.
            let slot = base + local;
            let is_owned = || owner.is_none_or(|owner| slots.key(slot).volume() == owner);
            slots.dirty_bits(slot) == 0 && !pinned.has(slot) && is_owned()
        };
        let may = |local: u32| {
            let (slot, volume) = (base + local, slots.key(base + local).volume());
            let is_stuck = slots.dirty_bits(slot) != 0 && is_failing(volume);
            !pinned.has(slot) && !is_stuck && owner.is_none_or(|owner| volume == owner)
        };
        let mut passed_over = 0;
        let may_soon = |local: u32| {
            let is_settled = slots.dirty_bits(base + local) == 0 && !is_late(base + local);
            let is_chosen = may(local) && (is_settled || passed_over == PASSED_OVER);
            passed_over += u32::from(!is_settled && !is_chosen);
            is_chosen
        };
        let policy = &mut self.policies[set as usize];
        let chosen = match victims {
            Victims::Any => policy.evict(may),
            // Those that are passed over are seen again, when the policy has gone round.
            Victims::PreferClean => policy.evict(may_soon).or_else(|| policy.evict(may)),
            Victims::CleanFirst => policy.evict(may_clean).or_else(|| policy.evict(may)),
            Victims::CleanOnly => policy.evict(may_clean),
        };
        chosen.map(|local| base + local)
    }

    /// Visits the slots of a set, free ones too, in about the order in which their blocks would leave, until
    /// `each` says `false`.
    pub fn coldest(&self, set: u32, each: &mut dyn FnMut(u32) -> bool) {
        let policy = &self.policies[set as usize];
        let Some(log) = &self.log else {
            let base = self.slots.base(set);
            policy.coldest(&mut |local| each(base + local));
            return;
        };
        let leaving = log.leaving().map(|leaving| log.slots(leaving.region));
        if leaving.is_some_and(|mut slots| !slots.all(&mut *each)) {
            return;
        }
        policy.coldest(&mut |region| log.slots(region).all(&mut *each));
    }

    /// See [`crate::Cache::set_evictions`].
    pub fn set_evictions(&mut self, mut make: impl FnMut(u32, u64) -> E, seed: u64) {
        if self.log.is_some() {
            self.relist_regions(make, seed);
            self.moved = self.moves();
            return;
        }
        let ways = self.ways();
        for set in 0..self.policies.len() as u32 {
            let base = self.slots.base(set);
            let is_in_use = |local: u32| self.slots.valid(base + local) != 0;
            let (mut order, mut is_seen) = (Vec::new(), vec![false; ways as usize]);
            self.policies[set as usize].coldest(&mut |local| {
                if !std::mem::replace(&mut is_seen[local as usize], true) && is_in_use(local) {
                    order.push(local);
                }
                true
            });
            // A policy need not have an order.
            order.extend((0..ways).filter(|local| !is_seen[*local as usize] && is_in_use(*local)));
            let used = (0..ways).filter(|local| is_in_use(*local)).count();
            debug_assert_eq!(order.len(), used, "blocks of set {set}, coldest first");
            let mut policy = make(ways, seed.wrapping_add(u64::from(set)));
            for local in order {
                policy.insert(local, self.slots.key(base + local));
            }
            self.policies[set as usize] = policy;
        }
        self.moved = self.moves();
    }

    /// Slots of blocks that the policies favour.
    pub fn favoured(&self) -> u64 {
        let members: u64 = self.policies.iter().map(|policy| u64::from(policy.favoured())).sum();
        members * self.log.as_ref().map_or(1, |log| u64::from(log.per()))
    }

    /// Blocks that the policies have favoured, and taken that back from, since the last reset.
    pub fn moves_since(&self) -> (u64, u64) {
        let (favoured, back) = self.moves();
        (favoured - self.moved.0, back - self.moved.1)
    }

    /// Counts those from now on.
    pub fn reset_moves(&mut self) {
        self.moved = self.moves();
    }

    fn moves(&self) -> (u64, u64) {
        let moves = self.policies.iter().map(Eviction::moves);
        moves.fold((0, 0), |sum, moves| (sum.0 + moves.0, sum.1 + moves.1))
    }
}
