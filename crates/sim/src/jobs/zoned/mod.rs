//! Jobs with a `zonemode`: request by request in the order of fio 3.33, random numbers included.
//!
//! * `draws`: the random numbers.
//! * `offsets`: where a request would go, zones left out; request sizes.
//! * `table`: the zones of a namespace or file, shared by the jobs on it.
//! * `adjust`: a request moves to where zones allow it; which zones are open, and when one is reset.
//! * `walker`: rounds through the region, directions, files; the requests themselves.

mod adjust;
mod draws;
mod offsets;
mod table;
mod walker;

pub(crate) use offsets::FilePlan;
pub(crate) use table::{ZoneSet, ZonesPlan};
pub(crate) use walker::{Step, WalkPlan, Walker};

/// The zone that a request under way keeps other jobs out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneUse {
    /// Index into the sets of zones.
    pub set: u32,
    pub zone: u32,
    /// It is a write up to the end of the zone.
    pub fills: bool,
}
