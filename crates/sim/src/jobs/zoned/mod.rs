//! Jobs with a `zonemode`: request by request in the order of fio 3.33, random numbers included.
//!
//! * `draws`: the random numbers.
//! * `offsets`: where a request would go, zones left out; request sizes.
//! * `table`: the zones of a namespace or file, shared by the jobs on it.
//! * `pending`, `adjust`: a request moves to where zones allow it; which zones are open, and when one is
//!   reset.
//! * `walker`: rounds through the region, directions, files; the requests themselves.

mod adjust;
mod draws;
mod offsets;
mod pending;
mod table;
mod walker;

pub(crate) use table::ZoneSet;
pub(crate) use walker::{Step, Walker};
