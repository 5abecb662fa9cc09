//! Translation layers of the host: software that makes a block device, or a store of files, of another kind
//! of device.
//!
//! [`zone_map`] is a page map over a zoned namespace, [`dm_zoned`] a map of whole zones over one with
//! conventional zones, [`zone_files`] a store of files over one, [`chunk_zones`] a zoned namespace over
//! chunks of vector access, [`pblk`] a block device over chunks. A layer talks to the device below by
//! commands alone; it knows nothing of the flash there.

mod below;
pub mod chunk_flash;
pub mod chunk_zones;
pub mod dm_zoned;
mod error;
pub mod f2fs;
mod pages;
pub mod pblk;
pub mod zone_files;
pub mod zone_map;

pub use chunk_flash::ChunkFlash;
pub use chunk_zones::ChunkZones;
pub use dm_zoned::DmZoned;
pub use error::HostFtlError;
pub use f2fs::F2fs;
pub use pblk::Pblk;
pub use zone_files::ZoneFiles;
pub use zone_map::ZoneMap;
