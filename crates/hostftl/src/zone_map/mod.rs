//! `zone-map`: a block device over a zoned namespace, as software of the host. One map entry for each unit,
//! append-only logs in zones, over-provisioning, collection of zones, and metadata in zones of its own.
//!
//! Invariants:
//! * a place is valid exactly when the map points to it; its owner is then the unit that does;
//! * victims are sealed zones only; a zone is sealed when its last unit is written;
//! * a zone is reset only after everything that was written or recorded before is durable: whatever made its
//!   units superfluous outlives them;
//! * a record may be durable before the data that it is about. A start ignores records of places at or above
//!   the write pointer of their zone, and then writes a checkpoint before anything is written to such places;
//! * a zone with data is written once the zone before it in its log is durable, or the one before that where
//!   the device allows enough active zones: so a loss of power leaves no more of them than can be active, and
//!   the device finishes none, whose write pointer would be unknown;
//! * records of places in a zone come after its reset is durable: what it held before is not taken for what
//!   they tell of;
//! * the pages of the log become durable in their order, and the last page of a checkpoint after all data
//!   that the checkpoint tells of;
//! * at most `host_logs + 1` zones with data are active, and one with metadata.
//!
//! Pace: while a victim has `left` of `picked` units to read, and `spare` units can be written by the host
//! before the floor is reached, `left / picked <= spare / (capacity - picked)` holds after each write. So a
//! victim is empty when the last unit above the floor is written, and no write waits for a whole victim.
//! Units are written a step after they were read, and a zone is reset when what it waits for is complete:
//! operations that wait would hold up others on their dies.
//!
//! Memory: 4 B a unit for the map, 4 B a place for owners, a bit a place, some 20 B a zone.
#![expect(clippy::inline_always, reason = "the path of every page")]

mod collect;
mod config;
mod format;
mod log;
mod recover;
mod report;
mod requests;
mod sabotage;
mod space;
mod zones;

pub use config::{INFO, STREAMS};
pub use sabotage::Sabotage;

use crate::below::{Below, zoned};
use crate::error::HostFtlError;
use collect::Collector;
use config::Config;
use format::{Identity, LOST};
use log::Log;
use nandscape_core::command::HostCounts;
use nandscape_core::{
    Extent, FtlError, FtlStats, Issue, Lpn, NamespaceError, NamespaceInfo, NamespaceResult, Params, Ppn,
    RecoveryReport, SimTime, Subsystem, Token,
};
use nandscape_ftl::page_map::{Ahead, Blocks, Map};
use nandscape_ftl::victim::{BlockState, VictimPolicy, VictimSetup};
use space::{NO_ZONE, Space};

/// What never changes of a layer.
#[derive(Clone, Copy, Debug)]
struct Shape {
    identity: Identity,
    /// From the first byte of a zone to that of the next.
    zone_bytes: u64,
    page_bytes: u32,
    unit_bytes: u32,
    /// log2 of the bytes of a unit; 64 if they are no power of two.
    unit_shift: u32,
    capacity_bytes: u64,
    stores_data: bool,
}

impl Shape {
    /// The first byte of a zone.
    #[inline]
    const fn start(&self, zone: u32) -> u64 {
        zone as u64 * self.zone_bytes
    }
}

/// A block device over the zoned namespace 0 of a subsystem.
pub struct ZoneMap<S> {
    below: Below<S>,
    infos: [NamespaceInfo; 1],
    shape: Shape,
    map: Map,
    ahead: Ahead,
    /// By place: the unit that was written there last.
    owners: Vec<Lpn>,
    /// Valid units and state of each zone.
    zones: Blocks,
    space: Space,
    victims: Box<dyn VictimPolicy>,
    collector: Collector,
    log: Log,
    /// Units written so far: the clock of the victim policy.
    now: u64,
    /// Completes when everything that was written or recorded before the last commit is durable.
    committed: Token,
    stats: FtlStats,
    hosts: HostCounts,
    /// One unit; empty where the device stores no data.
    buffer: Vec<u8>,
    recovery: RecoveryReport,
    /// Why nothing is written any more.
    stopped: Option<&'static str>,
    sabotage: Sabotage,
}

impl<S: Subsystem> ZoneMap<S> {
    /// A layer over a namespace that is empty, or that holds what such a layer wrote.
    ///
    /// # Errors
    ///
    /// Keys that do not fit the namespace, and zones that hold something else.
    pub fn new(below: S, params: &Params) -> Result<Self, HostFtlError> {
        Self::with_sabotage(below, params, Sabotage::None)
    }

    /// A layer that breaks one of its promises, for tests of the tests.
    #[doc(hidden)]
    pub fn with_sabotage(mut below: S, params: &Params, sabotage: Sabotage) -> Result<Self, HostFtlError> {
        let (info, zones) = zoned(INFO.name, &mut below)?;
        if zones.conventional > 0 {
            let reason =
                format!("{} of its zones are conventional, and it writes none of these", zones.conventional);
            return Err(HostFtlError::Device { layer: INFO.name, reason });
        }
        let config = Config::new(params, &info, &zones)?;
        let identity = config.identity;
        let below = Below { device: below };
        let stores_data = below.flash().capabilities().stores_data;
        let unit_bytes = identity.unit_bytes;
        let shape = Shape {
            identity,
            zone_bytes: zones.size,
            page_bytes: info.page_bytes,
            unit_bytes,
            unit_shift: if unit_bytes.is_power_of_two() { unit_bytes.trailing_zeros() } else { 64 },
            capacity_bytes: u64::from(identity.logical_units) * u64::from(unit_bytes),
            stores_data,
        };
        let setup =
            VictimSetup { blocks: identity.zones, pages_per_block: identity.zone_units, domain: 0, params };
        let host_logs = usize::from(config.host_logs);
        let mut this = Self {
            below,
            infos: [NamespaceInfo { capacity_bytes: shape.capacity_bytes, zones: None, ..info }],
            map: Map::new(identity.logical_units),
            ahead: Ahead::default(),
            owners: vec![Lpn::NONE; identity.zones as usize * identity.zone_units as usize],
            zones: Blocks::new(identity.zones, identity.zone_units),
            space: Space {
                overlaps: config.overlaps,
                ..Space::new(identity.zone_units, identity.zones, host_logs, config.has_gc_log, config.gc_low)
            },
            victims: (config.victim.build)(&setup),
            collector: Collector::new(&config, if stores_data { unit_bytes } else { 0 }),
            log: Log::new(&identity, info.page_bytes, zones.capacity),
            now: 0,
            committed: Token::NONE,
            stats: FtlStats::default(),
            hosts: HostCounts::default(),
            buffer: vec![0; if stores_data { unit_bytes as usize } else { 0 }],
            recovery: RecoveryReport::default(),
            stopped: None,
            sabotage,
            shape,
        };
        this.start()?;
        Ok(this)
    }

    /// What the start from the zones found and did.
    pub const fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// The subsystem below.
    pub const fn below(&self) -> &S {
        &self.below.device
    }

    /// Writes units at the frontier of a log, at most as many as its zone has room for; their places become
    /// valid. Returns the first place, and how many they are. The caller maps them.
    #[inline(always)]
    fn append(
        &mut self,
        log: usize,
        units: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> NamespaceResult<(Ppn, u32, Token)> {
        loop {
            if self.space.frontiers[log].room() == 0 {
                self.open_zone(log, issue.at)?;
            }
            let frontier = self.space.frontiers[log];
            let units = units.min(frontier.room());
            let unit_bytes = u64::from(self.shape.unit_bytes);
            let offset = self.shape.start(frontier.zone) + u64::from(frontier.next) * unit_bytes;
            let bytes = u64::from(units) * unit_bytes;
            let mut issue = issue;
            if frontier.after != Token::NONE {
                issue.after = self.below.device.join(issue.after, frontier.after);
            }
            let part = data.map(|data| &data[..bytes as usize]);
            match self.below.write(Extent::new(offset, bytes), part, issue) {
                Ok(done) => {
                    let place = self.space.place(log);
                    self.zones.set_run(place, units, frontier.zone);
                    let done_so_far = self.below.device.join(frontier.done, done);
                    self.space.advance(log, units, done_so_far);
                    self.now += u64::from(units);
                    if frontier.room() == units {
                        self.seal_frontier(log);
                    }
                    return Ok((place, units, done));
                }
                Err(error) => self.write_failed(log, error, issue.at)?,
            }
        }
    }

    /// Points a unit to a new place and drops the old one, which is what the map has, if there is one.
    #[inline(always)]
    fn remap(&mut self, lpn: Lpn, place: Ppn, old: Ppn, at: SimTime) -> NamespaceResult<()> {
        self.map.set(lpn, place, old);
        self.owners[place.index()] = lpn;
        self.stats.map_updates += 1;
        if old.0 < LOST.0 {
            self.invalidate(old);
        }
        self.record(lpn, place, at)
    }

    #[inline(always)]
    fn invalidate(&mut self, place: Ppn) {
        let zone = self.zones.block_of(place);
        let info = self.zones.clear(place, zone);
        if info.state == BlockState::Sealed {
            self.victims.invalidated(zone, info.valid, self.now);
        }
    }

    /// The zone of a log is full: a candidate from now on.
    fn seal_frontier(&mut self, log: usize) {
        let zone = self.space.close(log);
        self.seal(zone);
    }

    fn seal(&mut self, zone: u32) {
        let info = &mut self.zones.infos[zone as usize];
        assert!(
            zone >= self.shape.identity.ring && info.state != BlockState::Sealed,
            "zone {zone}: {info:?}"
        );
        info.state = BlockState::Sealed;
        self.victims.sealed(zone, info.valid, self.now);
    }

    fn full(&self, reason: &'static str, needed_units: u64) -> NamespaceError {
        let identity = self.shape.identity;
        FtlError::DeviceFull {
            reason,
            needed_pages: needed_units,
            free_pages: self.space.free_units,
            live_pages: self.map.live,
            total_pages: u64::from(identity.zones) * u64::from(identity.zone_units),
        }
        .into()
    }

    fn refuse_if_stopped(&self) -> NamespaceResult<()> {
        self.stopped.map_or(Ok(()), |reason| Err(FtlError::ReadOnly { reason }.into()))
    }

    /// Takes no more writes from now on.
    #[cold]
    fn stop(&mut self, reason: &'static str) -> NamespaceError {
        let reason = *self.stopped.get_or_insert(reason);
        FtlError::ReadOnly { reason }.into()
    }
}
