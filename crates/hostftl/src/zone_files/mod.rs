//! `zone-files`: a store of files over a zoned namespace, as software of the host. Extents in zones that are
//! chosen by lifetime, reclaim of zones, and a journal in zones of its own.
//!
//! Invariants:
//! * a place is live exactly when a file has it; its owner says which;
//! * bytes of the last unit of a file behind its size are zeroes, on the zones as in memory;
//! * a record is written once the data that it tells of is durable. So a start believes every record that it
//!   finds, wherever the write pointers are;
//! * all that changed of a file since its last record is in one record, with the objects that it replaces;
//! * a zone is reset only after the records of whatever made its units superfluous are durable, and a zone
//!   of the journal after the next snapshot is;
//! * the pages of the journal become durable in their order;
//! * the snapshot of all files fits in half of the zones for metadata, so that it can always be written
//!   beside the last one;
//! * of the units of all zones with data, live ones and those that files in memory need leave `reserve`
//!   zones' worth alone. So there is a zone with something to gain whenever space is short;
//! * at most `open_zones` zones with data are active, and one with metadata.
//!
//! Pace: while a victim has `left` of `picked` units to read, and `spare` units can be written by the host
//! before the floor is reached, `left / picked <= spare / (capacity - picked)` holds after each write. The
//! write completes once what was moved for it is moved.
//!
//! Memory: 8 B a place for owners, some 20 B a zone, some 150 B a file and 18 B a piece of one.
#![expect(clippy::inline_always, reason = "the path of every write")]

mod collect;
mod config;
mod files;
mod format;
mod log;
mod placement;
mod recover;
mod report;
mod requests;
mod sabotage;
mod space;
mod zones;

pub use config::INFO;
pub use sabotage::Sabotage;

use crate::below::{Below, zoned};
use crate::error::HostFtlError;
use collect::Collector;
use config::Config;
use files::{Files, Piece};
use log::Log;
use nandscape_core::command::HostCounts;
use nandscape_core::{
    Extent, FtlError, Hint, Issue, NamespaceError, NamespaceInfo, NamespaceResult, ObjectError, ObjectReport,
    Params, RecoveryReport, SimTime, Subsystem, Token,
};
use nandscape_ftl::victim::{VictimPolicy, VictimSetup};
use placement::Learned;
use space::{Owner, Space};

/// What never changes of a layer.
#[derive(Clone, Debug)]
struct Shape {
    config: Config,
    /// From the first byte of a zone to that of the next.
    zone_bytes: u64,
    page_bytes: u32,
    unit: u64,
    stores_data: bool,
    /// Units and pages of the journal survive a loss of power once their writes are complete.
    durable_writes: bool,
}

impl Shape {
    /// The first byte of a zone.
    #[inline]
    const fn start(&self, zone: u32) -> u64 {
        zone as u64 * self.zone_bytes
    }
}

/// Who writes units: for which file, or to move its data.
#[derive(Clone, Copy, Debug)]
struct Writer {
    slot: u32,
    hint: Hint,
    moves: bool,
}

/// A store of files over the zoned namespace 0 of a subsystem. It takes [`nandscape_core::ObjectCommand`]s,
/// and a flush of everything as a block command.
pub struct ZoneFiles<S> {
    below: Below<S>,
    infos: [NamespaceInfo; 1],
    shape: Shape,
    files: Files,
    space: Space,
    /// Units that files can have.
    capacity: u64,
    learned: Learned,
    victims: Box<dyn VictimPolicy>,
    collector: Collector,
    log: Log,
    /// Units written so far: the clock of lifetimes and of the victim policy.
    now: u64,
    /// Completes when the last records are durable.
    committed: Token,
    /// Completes when what was reclaimed for the write that is being submitted is.
    pace: Token,
    /// Counts since the last reset; what it says of the present is not kept.
    stats: ObjectReport,
    hosts: HostCounts,
    recovery: RecoveryReport,
    /// Why nothing is written any more.
    stopped: Option<&'static str>,
    sabotage: Sabotage,
}

impl<S: Subsystem> ZoneFiles<S> {
    /// A store over a namespace that is empty, or that holds what such a store wrote.
    ///
    /// # Errors
    ///
    /// Keys that do not fit the namespace, and zones that hold something else.
    pub fn new(below: S, params: &Params) -> Result<Self, HostFtlError> {
        Self::with_sabotage(below, params, Sabotage::None)
    }

    /// A store that breaks one of its promises, for tests of the tests.
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
        let setup =
            VictimSetup { blocks: identity.zones, pages_per_block: identity.zone_units, domain: 0, params };
        let unit = u64::from(identity.unit_bytes);
        let places = (identity.zones, identity.ring, identity.zone_units);
        let mut this = Self {
            below,
            infos: [NamespaceInfo { zones: None, objects: true, ..info.clone() }],
            files: Files::default(),
            space: Space::new(places, config.frontiers, config.floor_units, config.gc_low),
            capacity: 0,
            learned: Learned::default(),
            victims: (config.victim.build)(&setup),
            collector: Collector::new(&config, if stores_data { identity.unit_bytes } else { 0 }),
            log: Log::new(info.page_bytes, zones.capacity, stores_data),
            now: 0,
            committed: Token::NONE,
            pace: Token::NONE,
            stats: ObjectReport::default(),
            hosts: HostCounts::default(),
            recovery: RecoveryReport::default(),
            stopped: None,
            sabotage,
            shape: Shape {
                config,
                zone_bytes: zones.size,
                page_bytes: info.page_bytes,
                unit,
                stores_data,
                durable_writes: zones.durable_pages && unit == u64::from(info.page_bytes),
            },
        };
        this.start()?;
        for (_, file) in this.files.iter() {
            this.learned.sized(file.hint, file.stored);
        }
        this.infos[0].capacity_bytes = this.capacity * unit;
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

    /// Writes units of a file to an open zone, at most as many as it has room for. Returns how many; they are
    /// live, and the file has them.
    #[inline(always)]
    fn append(
        &mut self,
        writer: Writer,
        (at, units): (u32, u32),
        data: Option<&[u8]>,
        issue: Issue,
    ) -> NamespaceResult<(u32, Token)> {
        loop {
            let index = self.frontier(writer, issue.at)?;
            let frontier = self.space.frontiers[index];
            let units = units.min(frontier.room());
            let bytes = u64::from(units) * self.shape.unit;
            let offset = self.shape.start(frontier.zone) + u64::from(frontier.next) * self.shape.unit;
            let mut issue = issue;
            if frontier.after != Token::NONE {
                issue.after = self.below.device.join(issue.after, frontier.after);
            }
            let part = data.map(|data| &data[..bytes as usize]);
            match self.below.write(Extent::new(offset, bytes), part, issue) {
                Ok(done) => {
                    let so_far = self.below.device.join(frontier.done, done);
                    let owner = Owner { file: writer.slot, unit: at };
                    let place = self.space.written(index, units, owner, (so_far, self.now));
                    self.now += u64::from(units);
                    let file = self.files.get_mut(writer.slot);
                    file.done = self.below.device.join(file.done, so_far);
                    let (space, victims, now) = (&mut self.space, &mut *self.victims, self.now);
                    self.files.place(writer.slot, at, Piece { place, units }, |old| {
                        space.invalidate(old, victims, now);
                    });
                    if frontier.room() == units {
                        self.seal_frontier(index);
                    }
                    return Ok((units, done));
                }
                Err(error) => self.write_failed(index, error, issue.at)?,
            }
        }
    }

    /// Live units of a file are dropped.
    fn unmap(&mut self, slot: u32, from: u32, to: u32) {
        let (space, victims, now) = (&mut self.space, &mut *self.victims, self.now);
        self.files.unmap(slot, from, to, |piece| space.invalidate(piece, victims, now));
    }

    /// The first byte of a place in the zoned namespace.
    #[inline]
    fn offset(&self, place: u32) -> u64 {
        let zone = self.space.zone_of(place);
        let index = place - self.space.first_of(zone);
        self.shape.start(zone) + u64::from(index) * self.shape.unit
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

    /// There has to be room for so many more units, and in the metadata for so many bytes.
    #[inline]
    fn check_room(&self, units: u64, record_bytes: u64) -> NamespaceResult<()> {
        if units > 0 && self.space.live + self.files.owed + units > self.capacity {
            return Err(ObjectError::Full.into());
        }
        if self.files.record_bytes + record_bytes > self.shape.config.meta_bytes {
            return Err(ObjectError::TooMany.into());
        }
        Ok(())
    }

    /// Ends a command: what it emptied is reclaimed.
    #[inline]
    fn settle(&mut self, at: SimTime) -> NamespaceResult<()> {
        if !self.space.emptied.is_empty() {
            self.reclaim_emptied(at)?;
        }
        if !self.space.collected.is_empty() || !self.log.stale.is_empty() {
            self.reset_in_time(at)?;
        }
        let is_much = self.files.changes > log::MOST_CHANGES || self.log.records.len > log::MOST_BYTES;
        if is_much || self.files.dirty.len() > log::MOST_DIRTY {
            self.commit(None, at)?;
        }
        Ok(())
    }
}
