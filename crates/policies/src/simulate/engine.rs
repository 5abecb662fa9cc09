//! The loop, compiled for each policy.

use super::index::Index;
use super::{Counts, Request};
use crate::eviction::{Build, Eviction, EvictionSpec, Footprint, Visit, visit};
use crate::key::BlockKey;
use crate::map::Map;
use nandscape_core::Params;

/// A cache of one policy and size that requests are fed to.
pub trait Simulation: Send {
    /// Feeds the next requests.
    fn feed(&mut self, requests: &[Request]);

    /// What was counted so far.
    fn counts(&self) -> Counts;

    /// Memory held, in bytes.
    fn memory_bytes(&self) -> u64;

    /// Entries of the policy's tables that were written so far ([`Footprint::written`]).
    fn policy_writes(&self) -> u64;
}

/// A simulation of a policy by name.
///
/// # Errors
///
/// In words, if `slots` is 0 or above 2^30, or no multiple of the ways of `map`.
pub fn simulation(
    eviction: &EvictionSpec,
    slots: u32,
    map: Map,
    seed: u64,
) -> Result<Box<dyn Simulation>, String> {
    let ways = map.ways(slots);
    if slots == 0 || slots > 1 << 30 {
        return Err(format!("cache of {slots} blocks: expected 1 to 2^30"));
    }
    if ways == 0 || !slots.is_multiple_of(ways) {
        return Err(format!("cache of {slots} blocks: expected a multiple of the {ways} ways of a set"));
    }
    Ok(visit(eviction, Make { params: eviction.params(), slots, map, seed }))
}

struct Make<'a> {
    params: &'a Params,
    slots: u32,
    map: Map,
    seed: u64,
}

impl Visit for Make<'_> {
    type Output = Box<dyn Simulation>;

    fn visit<E: Build + Send + 'static>(self) -> Self::Output {
        let ways = self.map.ways(self.slots);
        let sets = self.slots / ways;
        let policy = |set: u32| E::new(ways, self.params, self.seed.wrapping_add(u64::from(set)));
        let state = State {
            index: Index::new(self.slots),
            keys: vec![0; self.slots as usize],
            counts: Counts::default(),
        };
        if self.map == Map::Full {
            return Box::new(Full { state, policy: policy(0), room: Room::new(0, ways) });
        }
        Box::new(Sets {
            state,
            policies: (0..sets).map(policy).collect(),
            rooms: (0..sets).map(|set| Room::new(set * ways, ways)).collect(),
            map: self.map,
        })
    }
}

/// What both kinds of map share.
struct State {
    index: Index,
    /// Key of each slot in use.
    keys: Vec<u64>,
    counts: Counts,
}

/// The slots of a set that are not in use.
struct Room {
    first: u32,
    /// Slots that were ever in use.
    touched: u32,
    ways: u32,
    /// Those given back by trims.
    freed: Vec<u32>,
}

impl Room {
    const fn new(first: u32, ways: u32) -> Self {
        Self { first, touched: 0, ways, freed: Vec::new() }
    }

    /// A slot, counted within the set.
    #[inline]
    fn take(&mut self) -> Option<u32> {
        if self.touched < self.ways {
            self.touched += 1;
            return Some(self.touched - 1);
        }
        self.freed.pop()
    }
}

impl State {
    #[inline]
    fn request<E: Eviction>(&mut self, request: Request, policy: &mut E, room: &mut Room) {
        let key = request.key();
        let found = self.index.find(key.0, &self.keys);
        if request.is_trim() {
            if let Some(slot) = found {
                self.trim(key, slot, policy, room);
            }
            return;
        }
        self.counts.accesses.count(request, found.is_some());
        match found {
            Some(slot) => policy.hit(slot - room.first),
            None => self.miss(key, policy, room),
        }
    }

    #[inline]
    fn miss<E: Eviction>(&mut self, key: BlockKey, policy: &mut E, room: &mut Room) {
        policy.miss(key);
        let slot = room.take().unwrap_or_else(|| {
            let slot = policy.evict(|_| true).expect("every slot is in use and may leave");
            let at = room.first + slot;
            let old = self.keys[at as usize];
            policy.evicted(slot, BlockKey(old));
            self.index.remove(old, at);
            self.counts.evictions += 1;
            self.counts.used -= 1;
            slot
        });
        let at = room.first + slot;
        self.keys[at as usize] = key.0;
        self.index.insert(key.0, at);
        self.counts.used += 1;
        policy.insert(slot, key);
    }

    #[cold]
    fn trim<E: Eviction>(&mut self, key: BlockKey, slot: u32, policy: &mut E, room: &mut Room) {
        self.index.remove(key.0, slot);
        policy.remove(slot - room.first);
        room.freed.push(slot - room.first);
        self.counts.trimmed += 1;
        self.counts.used -= 1;
    }

    fn memory_bytes(&self) -> u64 {
        self.index.memory_bytes() + (self.keys.capacity() * size_of::<u64>()) as u64
    }
}

struct Full<E> {
    state: State,
    policy: E,
    room: Room,
}

impl<E: Eviction + Send> Simulation for Full<E> {
    fn feed(&mut self, requests: &[Request]) {
        for request in requests {
            self.state.request(*request, &mut self.policy, &mut self.room);
        }
    }

    fn counts(&self) -> Counts {
        self.state.counts
    }

    fn memory_bytes(&self) -> u64 {
        self.state.memory_bytes() + self.policy.footprint().bytes
    }

    fn policy_writes(&self) -> u64 {
        self.policy.footprint().written
    }
}

struct Sets<E> {
    state: State,
    policies: Vec<E>,
    rooms: Vec<Room>,
    map: Map,
}

impl<E: Eviction> Sets<E> {
    fn footprint(&self) -> Footprint {
        self.policies.iter().map(Eviction::footprint).sum()
    }
}

impl<E: Eviction + Send> Simulation for Sets<E> {
    fn feed(&mut self, requests: &[Request]) {
        let sets = self.policies.len() as u32;
        for request in requests {
            let set = self.map.set(request.key(), sets) as usize;
            self.state.request(*request, &mut self.policies[set], &mut self.rooms[set]);
        }
    }

    fn counts(&self) -> Counts {
        self.state.counts
    }

    fn memory_bytes(&self) -> u64 {
        self.state.memory_bytes() + self.footprint().bytes
    }

    fn policy_writes(&self) -> u64 {
        self.footprint().written
    }
}
