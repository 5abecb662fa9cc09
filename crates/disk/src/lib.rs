//! Stores that are no flash, in virtual time: what a cache has behind it, or in front.
//!
//! * [`ram`]: a RAM disk whose pages are allocated when they are first written;
//! * `disk`: arm, rotation, zones, a queue that is reordered, read-ahead, a write cache;
//! * [`rated`]: a drive of which four rates are known.
//!
//! [`Joined`] makes several of them one. [`registry`] has them by name, with parameters, and presets.
//! [`decorate`] adds cuts of power and errors at any operation.
//!
//! Each keeps its bytes or only state ([`Keep`]). None reads a clock: parameters and commands decide a run.

mod base;
mod contents;
pub mod decorate;
mod disk;
mod joined;
pub mod ram;
pub mod rated;
pub mod registry;

pub use contents::Keep;
pub use joined::{Joined, Layout};
pub use ram::RamDisk;

/// Time of a transfer, rounded up to whole nanoseconds.
pub(crate) const fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    ((bytes as u128 * 1_000_000_000).div_ceil(bytes_per_s as u128)) as u64
}
