//! A request of a job.

use nandscape_core::Extent;
use nandscape_jobs::Direction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub namespace: u32,
    pub direction: Direction,
    pub extent: Extent,
    pub hint: u16,
    /// The zone that it keeps other jobs out of.
    pub zone: Option<ZoneUse>,
}

/// The zone that a request under way keeps other jobs out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneUse {
    /// Index into the sets of zones.
    pub set: u32,
    pub zone: u32,
    /// It is a write up to the end of the zone.
    pub fills: bool,
}
