//! Zoned namespaces: states, write pointers and limits of zones, and the wire forms of what is said of them.
//! What zones hold, and on which blocks, is not known here (NVMe ZNS 1.1).

mod body;
mod held;
mod layout;
mod log;
mod metadata;
mod namespace;
mod pool;
mod recover;
mod report;
mod setup;
mod stripes;
mod table;
mod tag;
pub mod wire;

pub use body::FlashRules;
pub use layout::{RandomAreas, ZoneLayout};
pub use namespace::ZonedNamespace;
pub use recover::ZoneStartError;
pub use setup::{CommandTimes, ZoneSetup};
pub use stripes::ZoneStripes;
pub use table::{Change, Restored, Written, ZoneTable};
pub use tag::{ImpliedOob, ZoneOob, ZoneTag};
