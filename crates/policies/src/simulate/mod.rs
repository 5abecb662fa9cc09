//! Eviction policies alone over a stream of requests: hits and misses, nothing else.
//!
//! One unit of the cache for each request ([`Request`]); a [`Splitter`] makes them of block requests. The
//! cache starts empty, nothing warms it up, and every miss is admitted. Memory is proportional to the size of
//! the cache, whatever the length of the stream; only [`NextUses`] needs the whole of it.

pub mod advice;
mod belady;
pub mod curve;
mod distance;
mod document;
mod engine;
mod index;
mod sample;
mod split;

pub use belady::{BELADY, NextUses};
pub use distance::StackDistances;
pub use document::Row;
pub use engine::{Simulation, simulation};
pub use sample::Sampler;
pub use split::{MAX_VOLUMES, Splitter, Units};

use crate::key::BlockKey;
use nandscape_core::TraceOp;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// A request for one unit of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Request(u64);

impl Request {
    const READ: u64 = 0;
    const WRITE: u64 = 1;
    const TRIM: u64 = 2;
    const SHIFT: u32 = 62;

    /// A request for `key`, whose volume is below [`MAX_VOLUMES`]. A flush asks for nothing and an
    /// operation of zones for no block: neither must be given. What is written as zeroes is dropped like
    /// what is trimmed.
    #[inline]
    pub const fn new(key: BlockKey, op: TraceOp) -> Self {
        debug_assert!(key.0 >> Self::SHIFT == 0);
        let op = match op {
            TraceOp::Read => Self::READ,
            TraceOp::Write => Self::WRITE,
            _ => Self::TRIM,
        };
        Self(op << Self::SHIFT | key.0)
    }

    /// Which block.
    #[inline]
    pub const fn key(self) -> BlockKey {
        BlockKey(self.0 & ((1 << Self::SHIFT) - 1))
    }

    #[inline]
    const fn op(self) -> u64 {
        self.0 >> Self::SHIFT
    }

    #[inline]
    const fn is_write(self) -> bool {
        self.op() == Self::WRITE
    }

    #[inline]
    const fn is_trim(self) -> bool {
        self.op() == Self::TRIM
    }
}

/// Reads and writes of units of a cache, by what it had. Trims are none. In documents the sums and the miss
/// ratio come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Units read that were cached.
    pub read_hits: u64,
    /// Units read that were not.
    pub read_misses: u64,
    /// Units written that were cached.
    pub write_hits: u64,
    /// Units written that were not.
    pub write_misses: u64,
}

impl Accesses {
    /// Requests for one unit each.
    pub const fn requests(&self) -> u64 {
        self.hits() + self.misses()
    }

    /// Those that were cached.
    pub const fn hits(&self) -> u64 {
        self.read_hits + self.write_hits
    }

    /// Those that were not.
    pub const fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }

    /// Misses over requests; 0 without requests.
    pub fn miss_ratio(&self) -> f64 {
        self.misses() as f64 / self.requests().max(1) as f64
    }

    /// Counts a request as a miss, as it is without a cache. Trims are none.
    #[inline]
    pub fn miss(&mut self, request: Request) {
        if !request.is_trim() {
            self.count(request, false);
        }
    }

    #[inline]
    fn count(&mut self, request: Request, is_hit: bool) {
        let counter = match (request.is_write(), is_hit) {
            (false, true) => &mut self.read_hits,
            (false, false) => &mut self.read_misses,
            (true, true) => &mut self.write_hits,
            (true, false) => &mut self.write_misses,
        };
        *counter += 1;
    }
}

impl Serialize for Accesses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Accesses", 7)?;
        out.serialize_field("hits", &self.hits())?;
        out.serialize_field("misses", &self.misses())?;
        out.serialize_field("miss_ratio", &self.miss_ratio())?;
        out.serialize_field("read_hits", &self.read_hits)?;
        out.serialize_field("read_misses", &self.read_misses)?;
        out.serialize_field("write_hits", &self.write_hits)?;
        out.serialize_field("write_misses", &self.write_misses)?;
        out.end()
    }
}

/// What a simulation counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Reads and writes.
    #[serde(flatten)]
    pub accesses: Accesses,
    /// Blocks that left for others.
    pub evictions: u64,
    /// Cached blocks that were trimmed.
    pub trimmed: u64,
    /// Slots in use at the end.
    #[serde(rename = "used_blocks")]
    pub used: u64,
}
