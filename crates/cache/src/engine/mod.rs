//! The cache itself: blocks of slow stores kept in the slots of a fast one.
//!
//! Four owners know what is to be done, and the engine does it in order:
//! * `directory`: which block is in which slot, which one leaves, and how much each volume may have;
//! * `durability`: the metadata, their commits, and what waits for these or for a flush of a disk;
//! * `writeback`: which dirty blocks go to the disk next, and in which writes;
//! * `timeline`: the stores, and when each step there may start.
//!
//! Invariants, checked by [`Cache::check_invariants`] and by the model tests:
//! * what is dirty is valid; what is not valid is not dirty and is up to date on the disk;
//! * a clean sub-block equals the disk's;
//! * every slot is free, used by one block of the index, or waits for a commit of the metadata (`limbo`);
//! * where metadata are not in place, no sub-block that a committed entry calls valid is overwritten; and
//!   none of a disk's copy that the disk would lose is relied on by a committed entry (`durability`);
//! * a dirty block is written to the disk only when its entry is committed, so that a loss of power never
//!   leaves a part of it there and the rest nowhere; and what else is written to the disk is announced by a
//!   commit if committed entries speak of its blocks (`durability`).
//!
//! All steps of a command take effect on the bytes when it is submitted; when each takes its time is the
//! business of `timeline`:
//! * a read waits for what it reads; what a disk read brings goes into its slot afterwards, and nobody waits
//!   for that;
//! * whatever comes to a slot that is being filled waits for the disk read, and to a block that is on its way
//!   to the disk, for that;
//! * a block leaves its slot when it is on the disk, or where a commit must come first, when that is durable;
//! * a commit is a flush of what it speaks of, the writes of the metadata, and a flush of these; one follows
//!   the other. Designs that flush nothing wait for the answers instead.

mod batches;
mod buffers;
mod cleaning;
mod commands;
mod commit;
mod counting;
mod degrade;
mod directory;
mod durability;
mod error;
mod failure;
mod given_up;
mod hole;
mod io;
mod judging;
mod lost;
mod memory;
mod open;
mod ordered;
mod quirks;
mod read;
mod report;
mod room;
mod setup;
mod standing;
mod subsystem;
mod timeline;
mod volumes;
mod write;
mod writeback;

pub use degrade::Health;
pub use error::{CacheError, Result};
pub use given_up::GiveUp;
pub use memory::Memory;
pub use open::{Disk, Identity, Started};
pub use setup::Setup;
pub use timeline::LateError;

use crate::counters::Counters;
use crate::metadata::{Entry, Metadata};
use crate::mode::Mode;
use crate::presets::Quirks;
use buffers::Buffers;
use counting::Meter;
use degrade::Failures;
use directory::{Bits, Directory, Log};
use durability::Durability;
use judging::Gate;
use nandscape_core::command::HostCounts;
use nandscape_core::{NamespaceInfo, Store};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;
use timeline::{FAST, Gather, Side, Timeline};
use writeback::Writeback;

/// A store that a cache may own.
pub type BoxedStore = Box<dyn Store + Send>;

struct Volume {
    unit: u32,
    host: HostCounts,
    /// The last write to the disk was refused.
    is_failing: bool,
    is_attached: bool,
}

/// A fast store in front of the slow stores of one or more volumes: puts what the directory, the durability,
/// the writeback and the timeline say in order, and moves the data.
pub struct Cache<E> {
    directory: Directory<E>,
    durability: Durability,
    writeback: Writeback,
    timeline: Timeline,
    volumes: Vec<Volume>,
    /// The volumes as a host sees them.
    infos: Vec<NamespaceInfo>,
    mode: Mode,
    quirks: Quirks,
    gate: Gate,
    failures: Failures,
    /// The first error that nobody has been told of.
    late_error: Option<LateError>,
    meter: Meter,
    buffers: Buffers,
    /// What the answer to the command under way waits for.
    answer: Gather,
    /// The command under way has written to its disk.
    has_written_disk: bool,
    /// Blocks that the write under way has thrown out, since the design does not cache such writes, and why.
    shunned: Vec<(u64, Bypass)>,
    fills: Vec<read::Fill>,
}

impl<E: Eviction> Cache<E> {
    /// A cache without volumes and without blocks. Every set has a policy of its own: `make` is given the
    /// slots of a set and a seed drawn from `setup`'s.
    pub fn new(
        fast: BoxedStore,
        metadata: Box<dyn Metadata + Send>,
        setup: &Setup,
        mut make: impl FnMut(u32, u64) -> E,
    ) -> Result<Self> {
        let shape = setup.shape(fast.as_ref())?;
        let log = setup.regions(fast.as_ref(), metadata.as_ref())?;
        let (sets, ways) = match &log {
            None => setup.sets(metadata.slots())?,
            Some(log) => (1, log.count() * log.per()),
        };
        let count = sets * ways;
        let data_at = log.as_ref().map_or_else(|| metadata.data_offset(0), |log| log.extent(0).offset);
        if log.is_none() {
            Setup::check_room(metadata.as_ref(), count, shape, fast.as_ref())?;
        }
        let members = log.as_ref().map_or(ways, Log::count);
        let policies = (0..sets).map(|set| make(members, setup.seed.wrapping_add(u64::from(set)))).collect();
        let keeps_bytes = fast.stores_bytes();
        let mut directory = Directory::new(shape, data_at, setup.map, ways, policies);
        directory.log = log;
        Ok(Self {
            directory,
            durability: Durability::new(metadata, count, setup.mode.makes_dirty()),
            writeback: Writeback::default(),
            timeline: Timeline::new(Side::new(fast)),
            volumes: Vec::new(),
            infos: Vec::new(),
            mode: setup.mode,
            quirks: Quirks::NONE,
            gate: Gate::default(),
            failures: Failures::default(),
            late_error: None,
            meter: Meter::default(),
            buffers: Buffers::new(keeps_bytes),
            answer: Gather::default(),
            has_written_disk: false,
            shunned: Vec::new(),
            fills: Vec::new(),
        })
    }

    /// Adds a volume over this store and gives its number. To hosts the volumes are `vol1`, `vol2` and so on;
    /// see [`Cache::rename`].
    pub fn attach(&mut self, disk: BoxedStore) -> Result<u16> {
        let capacity = disk.capacity_bytes();
        let fast = self.timeline.side(FAST);
        Setup::check_disk(disk.as_ref(), self.directory.shape, fast, self.volumes.len())?;
        let unit = disk.block_bytes().max(fast.unit);
        let volume = Volume { unit, host: HostCounts::default(), is_failing: false, is_attached: true };
        let vacancy = self.vacancy();
        let number = vacancy.unwrap_or(self.volumes.len() as u16);
        self.directory.attach(number, capacity).ok_or_else(|| Setup::too_many_blocks(capacity))?;
        self.durability.attach(number);
        if vacancy.is_some() {
            self.volumes[usize::from(number)] = volume;
            self.infos[usize::from(number)].capacity_bytes = capacity;
            *self.timeline.side_mut(number + 1) = Side::new(disk);
            *self.meter.of(number) = Counters::default();
            return Ok(number);
        }
        self.volumes.push(volume);
        self.infos.push(NamespaceInfo {
            name: format!("vol{}", self.volumes.len()),
            capacity_bytes: capacity,
            page_bytes: self.directory.shape.block_bytes(),
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: false,
        });
        self.timeline.add(Side::new(disk));
        self.meter.attach();
        Ok(self.volumes.len() as u16 - 1)
    }

    /// Names a volume anew.
    pub fn rename(&mut self, volume: u16, name: &str) {
        name.clone_into(&mut self.infos[usize::from(volume)].name);
    }

    /// Puts back what the metadata knew of slots when they were opened, before the first command. The order
    /// is that in which the eviction policy sees the blocks. Gives those that cannot be: a slot or block
    /// that was named before, that is not there, or not for each other.
    pub fn restore(&mut self, entries: impl IntoIterator<Item = (u32, Entry)>) -> Vec<(u32, Entry)> {
        let mut refused = Vec::new();
        let mut taken = Bits::new(self.directory.slots.count());
        for (slot, entry) in entries {
            if slot >= self.directory.slots.count() || taken.has(slot) || !self.directory.suits(slot, entry) {
                refused.push((slot, entry));
                continue;
            }
            taken.set(slot);
            self.directory.settle(slot, entry.key);
            self.directory.slots.set_bits(slot, entry.valid, entry.dirty);
            if self.durability.rules.defers_reuse {
                self.durability.reuse.committed.set(slot);
            }
        }
        if self.directory.log.is_some() {
            self.find_regions();
        } else {
            self.directory.slots.list_free(&taken);
        }
        refused
    }

    /// The mode. What is in force is [`Mode::PassThrough`] once the fast store is used no more
    /// ([`Cache::health`]).
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    const fn active_mode(&self) -> Mode {
        if self.failures.bypassed.is_some() { Mode::PassThrough } else { self.mode }
    }

    /// Commands from now on follow another mode. Blocks that are dirty stay so until they are cleaned
    /// ([`Cache::clean`]) or evicted, and are served from the cache meanwhile.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.durability.makes_dirty = self.active_mode().makes_dirty();
    }

    /// Dirty blocks.
    pub const fn dirty(&self) -> u32 {
        self.directory.slots.dirty
    }

    /// Blocks that are cached.
    pub fn used(&self) -> u32 {
        self.directory.slots.used - self.durability.reuse.limbo.len() as u32 - self.directory.gone()
    }

    /// Slots there are.
    pub const fn slots(&self) -> u32 {
        self.directory.slots.count()
    }

    /// Slots of a set; all of them where there is one set only.
    pub fn ways(&self) -> u32 {
        self.directory.ways()
    }

    /// What is known of a block; `None` if it is not cached.
    pub fn entry(&self, key: BlockKey) -> Option<Entry> {
        self.directory.find(key).map(|slot| self.directory.slots.entry(slot))
    }

    /// What hosts asked of a volume. Pages are cache blocks.
    pub fn host_counts(&self, volume: u16) -> HostCounts {
        self.volumes[usize::from(volume)].host
    }

    /// Commands that went to the fast store.
    pub fn fast_counts(&self) -> HostCounts {
        self.timeline.side(FAST).store.counts()
    }

    /// Commands that went to the disk of a volume.
    pub fn disk_counts(&self, volume: u16) -> HostCounts {
        self.timeline.side(volume + 1).store.counts()
    }

    /// Checks the invariants between index, slots and free lists; panics with the values. For tests.
    pub fn check_invariants(&self) {
        self.directory.check(self.durability.reuse.limbo.len() as u32);
        self.timeline.check();
        for (volume, counters) in self.meter.counters.volumes.iter().enumerate() {
            assert_eq!(counters.check(), Ok(()), "volume {volume}");
        }
    }
}
