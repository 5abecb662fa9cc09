//! The Streams directive: which stream resource a write goes to, and what hosts may ask about it.
//!
//! There is no command that opens a stream: the first write that names an id does. A resource is a number
//! from 0 to MSL - 1, and the translation layer's log of resource r is r + 1; log 0 takes what has no stream.
//!
//! Where the standard leaves the choice to the controller:
//! * the "arbitrary" id that makes room for another is the one whose last write is longest ago, among those
//!   of the same pool (the namespace's own allocation, or the shared resources);
//! * Allocate never takes a resource from an open stream of another namespace: it grants what is unused. The
//!   namespace's own open streams move in, those written last first; what does not fit is released;
//! * Release Resources leaves the streams open, on shared resources, of which there are enough then;
//! * Enable fails with Stream Resource Allocation Failed where no shared resource is left (NSSA = 0).
//!
//! Invariants: the NSA of all namespaces and NSSA sum to MSL; NSO is at most NSA where NSA is not 0; NSSO is
//! at most NSSA and is the sum of NSO where NSA is 0; no two open streams have the same resource.

mod parameters;
mod recency;

pub use parameters::{StreamsParameters, decode_status, encode_status};

use nandscape_core::{NvmeResult, NvmeStatus, state};
use recency::{Link, Recency};
use std::collections::{BTreeMap, VecDeque};

/// Most stream resources there can be.
pub const MSL_MAX: u16 = u16::MAX - 1;

/// What the device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// Streams open at a time, from 1 to [`MSL_MAX`].
    pub msl: u16,
    /// Best size of a write, in logical blocks.
    pub sws: u32,
    /// Stream granularity, in units of `sws`.
    pub sgs: u16,
    /// Hosts of a namespace share its ids (NSSC bit 0).
    pub shared_ids: bool,
    /// Only hosts with a Host Identifier may enable streams (NSSC bit 1).
    pub needs_host_id: bool,
}

/// Where a write goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Log of the translation layer.
    pub log: u16,
    /// The log holds data of another stream, so it must begin a new piece before this write.
    pub renew: bool,
}

/// Bytes and commands that were written to a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub bytes: u64,
    pub writes: u64,
}

/// Ids of one namespace and host (or of one namespace, where hosts share them).
#[derive(Debug)]
struct Space {
    /// Resources allocated exclusively.
    nsa: u16,
    /// Open ids in ascending order, with their resources.
    open: Vec<(u16, u16)>,
    /// Order of the last writes, while `nsa` is not 0.
    recency: Recency,
}

#[derive(Clone, Copy, Debug, Default)]
struct Resource {
    space: u32,
    id: u16,
    /// Number of its last write.
    last: u64,
    written: Written,
}

/// State of the Streams directive in a subsystem. Namespaces and hosts are numbered from 0 here.
#[derive(Debug)]
pub struct Streams {
    pub(super) config: StreamsConfig,
    hosts: usize,
    sets: usize,
    /// By namespace and host.
    enabled: Vec<bool>,
    spaces: Vec<Space>,
    resources: Vec<Resource>,
    links: Vec<Link>,
    free: VecDeque<u16>,
    shared: Recency,
    nssa: u16,
    nsso: u16,
    /// By set and resource: the log has been written.
    used: Vec<bool>,
    clock: u64,
    pub(super) opened: u64,
    pub(super) evicted: u64,
    /// What closed streams were written, by space and id, with the resource they had last.
    closed: BTreeMap<(u32, u16), (u16, Written)>,
}

state!(impl [] Streams {
    saved: free, shared, nssa, nsso, clock, opened, evicted, closed;
    tables: enabled, spaces, resources, links, used;
    fixed: config, hosts, sets;
});

state!(impl [] Written { saved: bytes, writes; });
state!(impl [] Space { saved: nsa, open, recency; });
state!(impl [] Resource { saved: space, id, last, written; });

impl Streams {
    /// All closed and disabled. `hosts` is the most there can be, `sets` the number of translation layers.
    pub fn new(config: StreamsConfig, hosts: u16, sets: u16) -> Self {
        assert!((1..=MSL_MAX).contains(&config.msl), "MSL of {} streams", config.msl);
        let msl = usize::from(config.msl);
        Self {
            config,
            hosts: usize::from(hosts),
            sets: usize::from(sets),
            enabled: Vec::new(),
            spaces: Vec::new(),
            resources: vec![Resource::default(); msl],
            links: vec![Link::FREE; msl],
            free: (0..config.msl).collect(),
            shared: Recency::EMPTY,
            nssa: config.msl,
            nsso: 0,
            used: vec![false; msl * usize::from(sets)],
            clock: 0,
            opened: 0,
            evicted: 0,
            closed: BTreeMap::new(),
        }
    }

    /// A namespace has been created.
    pub(super) fn add_namespace(&mut self, namespace: u32) {
        let pairs = (namespace as usize + 1) * self.hosts;
        if self.enabled.len() < pairs {
            self.enabled.resize(pairs, false);
            let empty = || Space { nsa: 0, open: Vec::new(), recency: Recency::EMPTY };
            self.spaces.resize_with(pairs, empty);
        }
    }

    fn pair(&self, namespace: u32, host: u16) -> usize {
        namespace as usize * self.hosts + usize::from(host)
    }

    fn space(&self, namespace: u32, host: u16) -> usize {
        self.pair(namespace, if self.config.shared_ids { 0 } else { host })
    }

    /// Whether streams are enabled for this namespace and host.
    pub fn is_enabled(&self, namespace: u32, host: u16) -> bool {
        self.enabled[self.pair(namespace, host)]
    }

    /// Whether streams could be enabled now: that takes a shared resource, or an existing allocation.
    pub(super) fn can_enable(&self, namespace: u32, host: u16) -> bool {
        self.is_enabled(namespace, host) || self.nssa > 0 || self.spaces[self.space(namespace, host)].nsa > 0
    }

    /// Enables; the caller has asked [`Streams::can_enable`].
    pub(super) fn enable(&mut self, namespace: u32, host: u16) {
        let pair = self.pair(namespace, host);
        self.enabled[pair] = true;
    }

    /// Disables. Ids and resources go with the last host that uses them.
    pub(super) fn disable(&mut self, namespace: u32, host: u16) {
        let pair = self.pair(namespace, host);
        if !std::mem::take(&mut self.enabled[pair]) {
            return;
        }
        let first = self.pair(namespace, 0);
        let is_used = self.config.shared_ids && self.enabled[first..first + self.hosts].contains(&true);
        if !is_used {
            let space = self.space(namespace, host);
            self.close_all(space);
            self.release_space(space);
        }
    }

    /// Releases the ids of a namespace, of all hosts (Format NVM).
    pub(super) fn release_ids(&mut self, namespace: u32) {
        let first = self.pair(namespace, 0);
        for space in first..first + self.hosts {
            self.close_all(space);
        }
    }

    /// Releases ids and resources of a namespace, of all hosts (write protection).
    pub(super) fn release_namespace(&mut self, namespace: u32) {
        let first = self.pair(namespace, 0);
        for space in first..first + self.hosts {
            self.close_all(space);
            self.release_space(space);
        }
    }

    pub(super) fn remove_namespace(&mut self, namespace: u32) {
        self.release_namespace(namespace);
        let first = self.pair(namespace, 0);
        self.enabled[first..first + self.hosts].fill(false);
    }

    /// Return Parameters; without a namespace only what concerns the subsystem.
    pub fn parameters(&self, of: Option<(u32, u16)>) -> StreamsParameters {
        let config = &self.config;
        let (nsa, nso) = of.map_or((0, 0), |(namespace, host)| {
            let space = &self.spaces[self.space(namespace, host)];
            (space.nsa, space.open.len() as u16)
        });
        let is_one = of.is_some();
        StreamsParameters {
            msl: config.msl,
            nssa: self.nssa,
            nsso: self.nsso,
            nssc: u8::from(config.shared_ids) | u8::from(config.needs_host_id) << 1,
            sws: if is_one { config.sws } else { 0 },
            sgs: if is_one { config.sgs } else { 0 },
            nsa,
            nso,
        }
    }

    /// Open ids in ascending order; without a namespace those of the subsystem that use shared resources,
    /// where an id that several namespaces use comes several times.
    pub fn open_ids(&self, of: Option<(u32, u16)>) -> Vec<u16> {
        if let Some((namespace, host)) = of {
            return self.spaces[self.space(namespace, host)].open.iter().map(|(id, _)| *id).collect();
        }
        let shared = self.spaces.iter().filter(|space| space.nsa == 0);
        let mut ids: Vec<u16> = shared.flat_map(|space| space.open.iter().map(|(id, _)| *id)).collect();
        ids.sort_unstable();
        ids
    }

    /// Allocates resources exclusively; gives how many.
    pub(super) fn allocate(&mut self, namespace: u32, host: u16, requested: u16) -> NvmeResult<u16> {
        let index = self.space(namespace, host);
        let own = self.spaces[index].open.len() as u16;
        if requested == 0 || self.spaces[index].nsa > 0 {
            return Err(NvmeStatus::InvalidField);
        }
        if self.nssa == 0 {
            return Err(NvmeStatus::StreamResources);
        }
        let granted = requested.min(self.nssa - (self.nsso - own));
        if granted == 0 {
            return Ok(0);
        }
        let mine = |resource: &u16| self.resources[usize::from(*resource)].space as usize == index;
        let moved: Vec<u16> = self.shared.iter(&self.links).filter(mine).collect();
        for resource in moved {
            self.shared.remove(&mut self.links, resource);
            self.spaces[index].recency.push(&mut self.links, resource);
        }
        self.nssa -= granted;
        self.nsso -= own;
        self.spaces[index].nsa = granted;
        while self.spaces[index].open.len() > usize::from(granted) {
            let oldest = self.spaces[index].recency.oldest().expect("a space with open streams");
            self.close(oldest);
        }
        Ok(granted)
    }

    /// Releases an id; one that is not open is no error.
    pub(super) fn release_id(&mut self, namespace: u32, host: u16, id: u16) {
        let space = &self.spaces[self.space(namespace, host)];
        if let Ok(at) = space.open.binary_search_by_key(&id, |(id, _)| *id) {
            self.close(space.open[at].1);
        }
    }

    /// Gives back what was allocated exclusively.
    pub(super) fn release_resources(&mut self, namespace: u32, host: u16) {
        self.release_space(self.space(namespace, host));
    }

    fn release_space(&mut self, index: usize) {
        let space = &mut self.spaces[index];
        if space.nsa == 0 {
            return;
        }
        self.nssa += std::mem::take(&mut space.nsa);
        self.nsso += space.open.len() as u16;
        // Both pools are in order of the last write; so must be what they become together.
        let own = std::mem::replace(&mut space.recency, Recency::EMPTY);
        let mut all: Vec<u16> = own.iter(&self.links).chain(self.shared.iter(&self.links)).collect();
        all.sort_unstable_by_key(|resource| self.resources[usize::from(*resource)].last);
        self.shared = Recency::EMPTY;
        for resource in all {
            self.shared.push(&mut self.links, resource);
        }
    }

    fn close_all(&mut self, index: usize) {
        while let Some((_, resource)) = self.spaces[index].open.last().copied() {
            self.close(resource);
        }
    }

    fn close(&mut self, resource: u16) {
        let Resource { space, id, written, .. } = std::mem::take(&mut self.resources[usize::from(resource)]);
        let pool = &mut self.spaces[space as usize];
        let at = pool.open.binary_search_by_key(&id, |(id, _)| *id).expect("an open stream is in its space");
        pool.open.remove(at);
        if pool.nsa > 0 {
            pool.recency.remove(&mut self.links, resource);
        } else {
            self.nsso -= 1;
            self.shared.remove(&mut self.links, resource);
        }
        self.free.push_back(resource);
        let total = self.closed.entry((space, id)).or_default();
        total.0 = resource;
        total.1.bytes += written.bytes;
        total.1.writes += written.writes;
    }

    /// Where a write with this id goes; `None` for the log without a stream. Opens the stream; never fails.
    #[inline]
    pub fn route(&mut self, namespace: u32, host: u16, set: u16, id: u16, bytes: u64) -> Option<Route> {
        if id == 0 || !self.is_enabled(namespace, host) {
            return None;
        }
        let index = self.space(namespace, host);
        let space = &self.spaces[index];
        let (resource, is_first) = match space.open.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => {
                let resource = space.open[at].1;
                self.touch(index, resource);
                (resource, false)
            }
            Err(_) => (self.open(index, id)?, true),
        };
        self.clock += 1;
        let entry = &mut self.resources[usize::from(resource)];
        entry.last = self.clock;
        entry.written.bytes += bytes;
        entry.written.writes += 1;
        let used = &mut self.used[usize::from(set) * self.resources.len() + usize::from(resource)];
        let renew = std::mem::replace(used, true) && is_first;
        Some(Route { log: resource + 1, renew })
    }

    #[inline]
    fn touch(&mut self, index: usize, resource: u16) {
        let space = &mut self.spaces[index];
        let list = if space.nsa > 0 { &mut space.recency } else { &mut self.shared };
        if list.newest != resource {
            list.remove(&mut self.links, resource);
            list.push(&mut self.links, resource);
        }
    }

    /// Opens a stream, if need be in place of another; `None` if every resource is allocated elsewhere.
    fn open(&mut self, index: usize, id: u16) -> Option<u16> {
        let Space { nsa, ref open, recency } = self.spaces[index];
        let victim = if nsa > 0 {
            (open.len() >= usize::from(nsa)).then(|| recency.oldest())
        } else if self.nssa == 0 {
            return None;
        } else {
            (self.nsso >= self.nssa).then(|| self.shared.oldest())
        };
        if let Some(victim) = victim {
            self.close(victim.expect("a full pool has a stream"));
            self.evicted += 1;
        }
        let resource = self.free.pop_front().expect("pools are never larger than the device");
        let space = &mut self.spaces[index];
        let at = space.open.partition_point(|(other, _)| *other < id);
        space.open.insert(at, (id, resource));
        if nsa > 0 {
            space.recency.push(&mut self.links, resource);
        } else {
            self.nsso += 1;
            self.shared.push(&mut self.links, resource);
        }
        self.resources[usize::from(resource)] = Resource { space: index as u32, id, ..Resource::default() };
        self.opened += 1;
        Some(resource)
    }

    /// The log of a route could not begin a new piece: the stream is released and the write has none.
    pub(super) fn give_up(&mut self, log: u16, bytes: u64) {
        let entry = &mut self.resources[usize::from(log - 1)];
        entry.written.bytes -= bytes;
        entry.written.writes -= 1;
        self.close(log - 1);
    }

    /// Counts start anew; open streams stay open.
    pub(super) fn reset_counts(&mut self) {
        (self.opened, self.evicted) = (0, 0);
        self.closed.clear();
        for resource in &mut self.resources {
            resource.written = Written::default();
        }
    }

    /// Namespace, id, log, open and written of every stream since the last reset; by namespace, host and id.
    pub(super) fn written(&self) -> Vec<(u32, u16, u16, bool, Written)> {
        let closed = self.closed.iter();
        let closed = closed.map(|(key, (resource, written))| (*key, (*resource, false, *written)));
        let mut all: BTreeMap<(u32, u16), (u16, bool, Written)> = closed.collect();
        for (index, space) in self.spaces.iter().enumerate() {
            for (id, resource) in &space.open {
                let written = self.resources[usize::from(*resource)].written;
                let total = all.entry((index as u32, *id)).or_default();
                (total.0, total.1) = (*resource, true);
                total.2.bytes += written.bytes;
                total.2.writes += written.writes;
            }
        }
        all.retain(|_, (_, _, written)| written.writes > 0);
        let hosts = self.hosts as u32;
        let all = all.into_iter();
        all.map(|((space, id), (log, is_open, written))| (space / hosts, id, log + 1, is_open, written))
            .collect()
    }

    /// Panics if an invariant does not hold. For tests.
    pub fn check_invariants(&self) {
        let allocated: u32 = self.spaces.iter().map(|space| u32::from(space.nsa)).sum();
        assert_eq!(allocated + u32::from(self.nssa), u32::from(self.config.msl), "NSA and NSSA sum to MSL");
        let shared: usize =
            self.spaces.iter().filter(|space| space.nsa == 0).map(|space| space.open.len()).sum();
        assert_eq!(shared, usize::from(self.nsso), "NSSO is the sum of NSO on shared resources");
        assert!(self.nsso <= self.nssa, "NSSO {} of NSSA {}", self.nsso, self.nssa);
        assert_eq!(self.shared.iter(&self.links).count(), shared, "order of shared resources");
        let mut seen = vec![false; self.resources.len()];
        for (index, space) in self.spaces.iter().enumerate() {
            assert!(space.nsa == 0 || space.open.len() <= usize::from(space.nsa), "NSO of space {index}");
            assert!(space.open.is_sorted_by(|a, b| a.0 < b.0), "ids of space {index}");
            let own = space.recency.iter(&self.links).count();
            assert_eq!(own, if space.nsa > 0 { space.open.len() } else { 0 }, "order of space {index}");
            for (id, resource) in &space.open {
                let entry = &self.resources[usize::from(*resource)];
                assert_eq!((entry.space as usize, entry.id), (index, *id), "resource {resource}");
                let is_second = std::mem::replace(&mut seen[usize::from(*resource)], true);
                assert!(!is_second, "resource {resource} twice");
            }
        }
        for list in self.spaces.iter().map(|space| space.recency).chain([self.shared]) {
            let last = |resource| self.resources[usize::from(resource)].last;
            assert!(list.iter(&self.links).map(last).is_sorted(), "order of last writes");
        }
        let open = seen.iter().filter(|open| **open).count();
        assert_eq!(open + self.free.len(), self.resources.len(), "every resource is open or free");
        assert_eq!(self.used.len(), self.resources.len() * self.sets, "one mark a set and resource");
    }
}
