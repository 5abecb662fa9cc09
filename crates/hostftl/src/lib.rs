//! Translation layers of the host: software that makes a block device of another kind of device.
//!
//! [`zone_map`] is a page map over a zoned namespace, [`dm_zoned`] one of whole zones over a namespace with
//! conventional zones. A layer talks to the device below by commands alone; it
//! knows nothing of the flash there.

mod below;
pub mod dm_zoned;
mod error;
pub mod zone_map;

pub use dm_zoned::DmZoned;
pub use error::HostFtlError;
pub use zone_map::ZoneMap;
