//! Another eviction policy while blocks are cached.

use super::Cache;
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Who chooses what leaves from now on: `make` is given the slots of a set and a seed. The blocks that
    /// are cached come to it in the order in which they would have left; what else the policy before it
    /// remembered, such as how often they were asked for, is forgotten, and so is what it counted.
    pub fn set_evictions(&mut self, mut make: impl FnMut(u32, u64) -> E, seed: u64) {
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
            let mut policy = make(ways, seed.wrapping_add(u64::from(set)));
            for local in order {
                policy.insert(local, self.slots.key(base + local));
            }
            self.policies[set as usize] = policy;
        }
        self.moved = self.moves();
    }
}
