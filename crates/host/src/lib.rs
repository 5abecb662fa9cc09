//! Host software above a flash device: who chooses the stream of a write, and how files become blocks.
//!
//! * [`policy`]: stream policies, one file each, in a registry: from Linux write hints to an oracle.
//! * [`Assigned`]: a policy around any workload; it sets `IoRecord::hint` and counts per stream.
//! * [`Live`]: a policy in front of a served device.
//! * [`hints`]: the calls by which programs give hints, and which hint a write ends up with.
//! * [`merge`]: the block layer's merging of neighbouring requests, never across streams.
//! * [`fs`]: a small file system model (page cache, extents, journal): file operations become requests.
//!
//! Everything is a function of its input: no clock, no random map order.

mod assign;
pub mod fs;
pub mod hints;
mod live;
pub mod merge;
pub mod policy;
mod table;

pub use assign::Assigned;
pub use hints::WriteHint;
pub use live::Live;
pub use merge::Merged;
pub use policy::{POLICIES, PolicySetup};
