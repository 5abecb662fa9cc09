//! Flash kept in a file: [`ImageMedium`] is a [`nandscape_media::Medium`] whose state and bytes are in one
//! sparse file, described in docs/formats/image.md.
//!
//! Invariants:
//! * a process that is killed leaves each page as it was, programmed, or torn; never with wrong bytes;
//! * a machine that loses power leaves everything that [`nandscape_media::MediumState::sync`] covered as it
//!   was, and of later programs each one whole, absent or torn; an erase that was not covered has happened or
//!   not, and where it has not, the block still holds what it held;
//! * what is read was verified by its checksums.

mod blocks;
#[cfg(test)]
mod campaign_tests;
mod check;
#[cfg(test)]
mod damage_tests;
mod error;
mod file;
mod flash;
mod header;
mod hold;
mod layout;
mod locked;
mod mapping;
mod medium;
#[cfg(test)]
mod model;
#[cfg(test)]
mod power_tests;
mod record;
mod session;
mod snapshot;
mod start;
mod state;
mod store;
mod unfinished;

pub use check::{Contents, Findings, Problem};
pub use error::ImageError;
pub use header::Header;
pub use medium::{ImageFlash, ImageMedium};
pub use snapshot::{ImageHandle, Snapshot};
