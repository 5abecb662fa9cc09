//! A request of a job.

use nandscape_core::{Extent, Op};
use nandscape_jobs::Direction;
use std::num::NonZeroU32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub namespace: u32,
    pub direction: Direction,
    pub extent: Extent,
    pub hint: u16,
    /// A trim is one that makes bytes read as zeroes.
    pub zeroes: bool,
    /// The zone that it keeps other jobs out of.
    pub zone: Option<ZoneUse>,
}

impl Request {
    pub const fn empty(namespace: u32) -> Self {
        Self {
            namespace,
            direction: Direction::Read,
            extent: Extent::new(0, 0),
            hint: 0,
            zeroes: false,
            zone: None,
        }
    }

    pub const fn op(&self) -> Op {
        match self.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim if self.zeroes => Op::WriteZeroes,
            Direction::Trim => Op::Trim,
        }
    }
}

/// The zone that a request under way keeps other jobs out of. Small, since every request has room for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneUse {
    /// Index into the sets of zones, plus one.
    set: NonZeroU32,
    /// Twice the zone, plus one for a write up to its end.
    zone: u32,
}

impl ZoneUse {
    /// By a request that `fills` the zone or not.
    pub fn new(set: u32, zone: u32, fills: bool) -> Self {
        assert!(zone < 1 << 31, "zone {zone}");
        Self { set: NonZeroU32::MIN.saturating_add(set), zone: zone << 1 | u32::from(fills) }
    }

    pub const fn set(self) -> usize {
        self.set.get() as usize - 1
    }

    pub const fn zone(self) -> u32 {
        self.zone >> 1
    }

    pub const fn fills(self) -> bool {
        self.zone & 1 == 1
    }
}
