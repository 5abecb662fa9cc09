//! `dm-zoned`: a block device over zones of which some are conventional, as software of the host, by the
//! rules of the Linux device mapper target of that name.
//!
//! The logical space is divided into chunks of the length of a zone. A chunk has a *data zone*, in which each
//! block has the place that it has in the chunk, and may have a *buffer zone* beside a sequential one. New
//! chunks get conventional zones, which take any write. A chunk in a sequential zone takes writes at the
//! write pointer; others go to its buffer, a conventional zone. Reclaim moves chunks to sequential zones and
//! empties buffers, so that conventional zones are free.
//!
//! Invariants:
//! * a block is valid in at most one zone of its chunk; valid blocks of a sequential zone are below its write
//!   pointer;
//! * blocks are overwritten in place in conventional zones only, by the host. Copies go to places that are
//!   not valid, and count once all of a zone is copied;
//! * the second set of metadata is written, and made durable with all data so far, before its superblock is,
//!   and that before the first set: at each moment one set is whole, the one with the higher generation or
//!   else the first;
//! * a commit begins when the one before it is durable;
//! * a zone that nothing is mapped to is used again or reset after a commit that says so;
//! * at most as many sequential zones are written in part as the device allows.
//!
//! Memory: a bit for each block of all zones, 8 B a chunk, some 50 B a zone.

mod config;
mod format;
mod lru;
mod metadata;
mod reclaim;
mod recover;
mod report;
mod requests;
mod sabotage;
mod zones;

pub use config::INFO;
pub use sabotage::Sabotage;

use crate::below::{Below, zoned};
use crate::error::HostFtlError;
use config::Config;
use format::{Chunk, Identity};
use metadata::Metadata;
use nandscape_core::command::HostCounts;
use nandscape_core::{
    FtlError, FtlStats, NamespaceError, NamespaceInfo, NamespaceResult, Params, RecoveryReport, Splitter,
    Subsystem, Token,
};
use reclaim::Reclaim;
use zones::Zones;

/// What never changes of a layer.
#[derive(Clone, Copy, Debug)]
struct Shape {
    identity: Identity,
    /// From the first byte of a zone to that of the next.
    zone_bytes: u64,
    /// Bytes of a chunk, and of a zone that can be written.
    chunk_bytes: u64,
    block_bytes: u64,
    /// Bytes by chunks, and by blocks.
    by_chunk: Splitter,
    by_block: Splitter,
    page_bytes: u32,
    capacity_bytes: u64,
    stores_data: bool,
}

impl Shape {
    /// The byte of a block of a zone.
    #[inline]
    const fn offset(&self, zone: u32, block: u32) -> u64 {
        zone as u64 * self.zone_bytes + block as u64 * self.block_bytes
    }

    /// Whether a zone is conventional.
    #[inline]
    const fn is_random(&self, zone: u32) -> bool {
        zone < self.identity.conventional
    }
}

/// A block device over the zoned namespace 0 of a subsystem, which has conventional zones.
pub struct DmZoned<S> {
    below: Below<S>,
    infos: [NamespaceInfo; 1],
    shape: Shape,
    chunks: Vec<Chunk>,
    zones: Zones,
    meta: Metadata,
    reclaim: Reclaim,
    /// Completes with all writes of data since the last commit.
    written: Token,
    stats: FtlStats,
    hosts: HostCounts,
    /// One block; empty where the device stores no data.
    buffer: Vec<u8>,
    recovery: RecoveryReport,
    /// Why nothing is written any more.
    stopped: Option<&'static str>,
    sabotage: Sabotage,
}

impl<S: Subsystem> DmZoned<S> {
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
        if zones.conventional == 0 {
            let reason = "none of its zones is conventional (zone.conventional)".to_owned();
            return Err(HostFtlError::Device { layer: INFO.name, reason });
        }
        let config = Config::new(params, &info, &zones)?;
        let identity = config.identity;
        let below = Below { device: below };
        let stores_data = below.flash().capabilities().stores_data;
        let shape = Shape {
            identity,
            zone_bytes: zones.size,
            chunk_bytes: zones.capacity,
            block_bytes: identity.block_bytes.into(),
            by_chunk: Splitter::new(zones.capacity),
            by_block: Splitter::new(identity.block_bytes.into()),
            page_bytes: info.page_bytes,
            capacity_bytes: u64::from(identity.chunks) * zones.capacity,
            stores_data,
        };
        let kept_bytes = if stores_data { identity.block_bytes } else { 0 };
        let mut this = Self {
            below,
            infos: [NamespaceInfo { capacity_bytes: shape.capacity_bytes, zones: None, ..info }],
            shape,
            chunks: vec![Chunk::UNMAPPED; identity.chunks as usize],
            zones: Zones::new(&identity, config.meta_zones, config.active),
            meta: Metadata::new(config.layout),
            reclaim: Reclaim::new(&config, kept_bytes),
            written: Token::NONE,
            stats: FtlStats::default(),
            hosts: HostCounts::default(),
            buffer: vec![0; kept_bytes as usize],
            recovery: RecoveryReport::default(),
            stopped: None,
            sabotage,
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

    fn full(&self, reason: &'static str) -> NamespaceError {
        let zone_blocks = u64::from(self.shape.identity.zone_blocks);
        FtlError::DeviceFull {
            reason,
            needed_pages: 1,
            free_pages: self.zones.free() * zone_blocks,
            live_pages: self.zones.valid_blocks(),
            total_pages: u64::from(self.shape.identity.zones) * zone_blocks,
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
