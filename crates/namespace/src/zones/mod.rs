//! Zoned namespaces: states, write pointers and limits of zones, and the wire forms of what is said of them.
//! What zones hold, and on which blocks, is not known here (NVMe ZNS 1.1).

mod layout;
mod table;
pub mod wire;

pub use layout::{RandomAreas, ZoneLayout};
pub use table::{Change, Written, ZoneTable};
