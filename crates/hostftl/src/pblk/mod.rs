//! `pblk`: a block device over the chunks of a namespace with vector access, as software of the host. A ring
//! buffer and a map in the host's memory, lines of a chunk of every parallel unit, metadata at both ends of a
//! line and beside each page.
//!
//! Invariants:
//! * all pages, of users and of collection, go through the ring and to the open line in one order, and what
//!   lies beside each page says which it is: its line's use and its number there;
//! * a place is valid exactly when the map, or the slot that the map points to, has it;
//! * a line is erased only when every page of the ring so far, and every drop, is durable: whatever made its
//!   pages superfluous outlives them. Lines are erased one after the other in time;
//! * a line is written only when all of its chunks are erased;
//! * the end metadata of a line comes after all of its pages are durable;
//! * a page of drops is moved, without what was written since, as long as a line that is not erased may have
//!   older copies of what it drops.
//!
//! A chunk in which a program failed takes no more pages; its line goes on without it, has no end metadata
//! and is collected before others.

mod collect;
mod config;
mod drops;
mod format;
mod lines;
mod recover;
mod report;
mod requests;
mod ring;
mod sabotage;
mod write;

pub use config::INFO;
pub use sabotage::Sabotage;

use crate::below::Below;
use crate::error::HostFtlError;
use collect::Collector;
use config::Config;
use drops::Drops;
use format::Identity;
use lines::Lines;
use nandscape_core::command::HostCounts;
use nandscape_core::vector::{Stripes, VectorGeometry};
use nandscape_core::{
    FtlError, FtlStats, Lpn, NamespaceError, NamespaceInfo, NamespaceResult, Params, Ppn, RecoveryReport,
    Subsystem,
};
use nandscape_ftl::page_map::{Blocks, Map};
use nandscape_ftl::victim::{BlockState, VictimPolicy, VictimSetup};
use ring::{Ring, slot_of};
use std::collections::BTreeSet;

/// What a page of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Kind {
    /// A page of a user.
    User = 1,
    /// The same, moved.
    Gc = 2,
    /// Drops of pages.
    Drops = 3,
    /// A page whose data could not be read when it was to be moved.
    Lost = 4,
    Pad = 5,
    /// Metadata of the line.
    Start = 6,
    End = 7,
}

impl Kind {
    const ALL: [Self; 7] = [Self::User, Self::Gc, Self::Drops, Self::Lost, Self::Pad, Self::Start, Self::End];

    fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }
}

/// What never changes of a layer. Counts of pages unless said otherwise.
#[derive(Clone, Copy, Debug)]
struct Shape {
    identity: Identity,
    geometry: VectorGeometry,
    /// The smallest write.
    row: u32,
    chunk_pages: u32,
    end_pages: u32,
    capacity_bytes: u64,
    stores_data: bool,
}

impl Shape {
    const fn units(&self) -> u32 {
        self.geometry.all_units()
    }

    const fn page_sectors(&self) -> u32 {
        self.geometry.pages.sectors
    }

    /// The order in which a line with so many chunks is written.
    fn stripes(&self, chunks: u32) -> Stripes {
        let stripe = (self.geometry.write_best / self.page_sectors()).min(self.chunk_pages);
        Stripes { chunks, sectors: self.chunk_pages, stripe }
    }
}

/// A block device over the chunks of namespace 0 of a subsystem.
pub struct Pblk<S> {
    below: Below<S>,
    infos: [NamespaceInfo; 1],
    shape: Shape,
    map: Map,
    /// By place: the page that was written there last, [`Lpn::META`] for drops.
    owners: Vec<Lpn>,
    /// Valid pages and state of each line.
    blocks: Blocks,
    lines: Lines,
    victims: Box<dyn VictimPolicy>,
    collector: Collector,
    ring: Ring,
    drops: Drops,
    /// Pages whose data is lost.
    lost: BTreeSet<u32>,
    /// Pages written so far: the clock of the victim policy.
    now: u64,
    stats: FtlStats,
    hosts: HostCounts,
    /// A page; empty where the device stores no data.
    buffer: Vec<u8>,
    recovery: RecoveryReport,
    /// Why nothing is written any more.
    stopped: Option<&'static str>,
    sabotage: Sabotage,
}

impl<S: Subsystem> Pblk<S> {
    /// A layer over chunks that are free, or that hold what such a layer wrote.
    ///
    /// # Errors
    ///
    /// A subsystem without vector access or OOB of the host's; keys that do not fit; lines of another layer.
    pub fn new(below: S, params: &Params) -> Result<Self, HostFtlError> {
        Self::with_sabotage(below, params, Sabotage::None)
    }

    /// A layer that breaks one of its promises, for tests of the tests.
    #[doc(hidden)]
    pub fn with_sabotage(device: S, params: &Params, sabotage: Sabotage) -> Result<Self, HostFtlError> {
        let mut below = Below { device };
        let lacks = |reason: &str| HostFtlError::Device { layer: INFO.name, reason: reason.to_owned() };
        let geometry = below.geometry().ok_or_else(|| lacks("it has no vector access"))?;
        if !geometry.keeps_host_oob {
            return Err(lacks("it keeps nothing of the host's beside its pages"));
        }
        let config = Config::new(params, &geometry)?;
        let identity = config.identity;
        let info = below.device.namespaces()[0].clone();
        let stores_data = below.flash().capabilities().stores_data;
        let page_bytes = identity.page_bytes;
        let capacity_bytes = u64::from(identity.logical_pages) * u64::from(page_bytes);
        let shape = Shape {
            identity,
            geometry,
            row: geometry.write_min / geometry.pages.sectors,
            chunk_pages: geometry.sectors / geometry.pages.sectors,
            end_pages: config.end_pages,
            capacity_bytes,
            stores_data,
        };
        let (lines, line_pages) = (identity.lines, identity.line_pages);
        let setup = VictimSetup { blocks: lines, pages_per_block: line_pages, domain: 0, params };
        let mut this = Self {
            below,
            infos: [NamespaceInfo { capacity_bytes, page_bytes, zones: None, ..info }],
            map: Map::new(identity.logical_pages),
            owners: vec![Lpn::NONE; lines as usize * line_pages as usize],
            blocks: Blocks::new(lines, line_pages),
            lines: Lines::new(&shape, config.gc_low),
            victims: (config.victim.build)(&setup),
            collector: Collector::new(&config),
            ring: Ring::new(config.ring, page_bytes, stores_data),
            drops: Drops::default(),
            lost: BTreeSet::new(),
            now: 0,
            stats: FtlStats::default(),
            hosts: HostCounts::default(),
            buffer: vec![0; if stores_data { page_bytes as usize } else { 0 }],
            recovery: RecoveryReport::default(),
            stopped: None,
            sabotage,
            shape,
        };
        this.start()?;
        Ok(this)
    }

    /// Where a map entry lies on the flash; `None` as long as it is in the ring alone.
    #[inline]
    fn place_of(&self, entry: Ppn) -> Option<Ppn> {
        let place = match slot_of(entry) {
            Some(slot) => self.ring.slots[slot].place,
            None => entry,
        };
        place.is_some().then_some(place)
    }

    /// What a map entry pointed to is superfluous.
    #[inline]
    fn invalidate(&mut self, entry: Ppn) {
        if let Some(place) = self.place_of(entry) {
            self.clear(place);
        }
    }

    fn clear(&mut self, place: Ppn) {
        let line = self.blocks.block_of(place);
        let info = self.blocks.clear(place, line);
        if info.state == BlockState::Sealed {
            self.victims.invalidated(line, info.valid, self.now);
        }
    }

    fn full(&self, reason: &'static str) -> NamespaceError {
        let Identity { lines, line_pages, .. } = self.shape.identity;
        FtlError::DeviceFull {
            reason,
            needed_pages: 1,
            free_pages: self.lines.free.len() as u64 * u64::from(line_pages),
            live_pages: self.map.live,
            total_pages: u64::from(lines) * u64::from(line_pages),
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
