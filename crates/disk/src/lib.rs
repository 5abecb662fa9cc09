//! Stores that are no flash, in virtual time: what a cache has behind it, or in front.
//!
//! * [`ram`]: a RAM disk whose pages are allocated when they are first written;
//! * [`disk`]: arm, rotation, zones, a queue that is reordered, read-ahead, a write cache;
//! * [`rated`]: a drive of which four rates are known.
//!
//! [`joined`] makes several of them one. [`registry`] has them by name, with parameters, and presets.
//! [`decorate`] has stores around stores: cuts of power and errors at any operation. [`mod@measure`] runs a
//! benchmark on any store.
//!
//! Each keeps bytes or only its state, as it is made ([`Keep`]). None reads a clock: a run is a function of
//! parameters and commands.

mod base;
mod contents;
pub mod decorate;
pub mod disk;
pub mod joined;
pub mod measure;
pub mod ram;
pub mod rated;
pub mod registry;

pub use contents::{Keep, PAGE_BYTES};
pub use disk::Disk;
pub use disk::mechanics::SECTOR_BYTES;
pub use joined::{Joined, Layout};
pub use ram::RamDisk;
pub use rated::RatedDrive;

/// Time of a transfer, rounded up to whole nanoseconds.
pub(crate) const fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    ((bytes as u128 * 1_000_000_000).div_ceil(bytes_per_s as u128)) as u64
}
