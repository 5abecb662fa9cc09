//! Translation layers of the host: software that makes a block device of another kind of device.
//!
//! [`zone_map`] is a page map over a zoned namespace. A layer talks to the device below by commands alone; it
//! knows nothing of the flash there.

mod below;
mod error;
pub mod zone_map;

pub use error::HostFtlError;
pub use zone_map::ZoneMap;
