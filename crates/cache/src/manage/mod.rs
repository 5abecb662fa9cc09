//! What is done to a cache that nobody uses: volumes come and go, settings change, dirty blocks go to their
//! disks.
//!
//! A command that is cut short at any of its writes has left the state before it or the one after it, but for
//! what it does over and over until it is done: blocks that are copied to a disk and are dirty no more. Three
//! things make it so:
//! * volumes and settings change by one write of the superblock, whose other copy stays ([`change_root`]);
//! * dirty blocks are copied first, and are clean in the metadata only after a flush of the disk;
//! * the mark of a disk ([`stamp`]) is there before the volume is in the superblock, and goes after it.

mod commands;
mod copying;
mod counts;
mod damage;
mod fingerprint;
mod given_up;
mod held;
pub mod stamp;
#[cfg(test)]
mod tests;
mod watch;

pub use commands::{
    Attach, attach, begin, check, clean, copy_dirty, create, detach, end, forget, free_id, remove, resize,
    salvage, set, set_open, take_up,
};
pub use counts::{Counts, GivenUp};
pub use damage::{begin_dirty, check as check_lost, discard_lost};
pub use fingerprint::fingerprint;
pub use given_up::{Recorder, given_up};
pub use held::{Held, Usage, change_root, look};
pub use stamp::{Beside, Change, DiskState, Mark, Verdict};
pub use watch::Watch;

use crate::metadata::{Area, MetadataError};
use nandscape_core::{StoreError, StoreResult};

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ManageError {
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error("the fast store: {0}")]
    Fast(#[source] StoreError),
    #[error("the disk of volume {volume}: {source}")]
    Disk {
        volume: u16,
        #[source]
        source: StoreError,
    },
    #[error(
        "a cache is there already, with {volumes} volumes and {dirty_bytes} bytes that the disks do not have: expected none"
    )]
    Exists { volumes: usize, dirty_bytes: u64 },
    #[error("the stamp of volume {volume}: {source}")]
    Stamp {
        volume: u16,
        #[source]
        source: StoreError,
    },
    #[error(
        "something is there already, at byte {offset}, such as a file system: expected nothing but zeroes"
    )]
    NotBlank {
        /// First byte that is not zero, of those looked at.
        offset: u64,
    },
    #[error("not the disk of volume {volume}: {change}")]
    WrongDisk { volume: u16, change: Change },
    #[error("the disk has a cache already, {}: expected none", stamp::hex(cache))]
    Taken { cache: [u8; 16] },
    #[error("no volume {0}")]
    NoVolume(u16),
    #[error(
        "the disk of volume {volume} was used without its cache: {change}; the cache has {dirty_bytes} bytes that the disk does not have, which may not fit any more"
    )]
    Changed { volume: u16, change: Change, dirty_bytes: u64 },
    #[error("the disk of volume {volume}: {given_up}")]
    GivenUp { volume: u16, given_up: GivenUp },
    #[error(
        "the disk of volume {0} may have newer data than the cache that was given up, and which was not recorded: expected the data to go to a file"
    )]
    Unrecorded(u16),
    /// Metadata is damaged where it may have named dirty blocks, so that the disk may be older than what was
    /// flushed.
    #[error(
        "metadata of the cache is damaged: blocks of volume {volume} that its disk does not have may be missing; 'cache salvage' writes what is left"
    )]
    Damaged { volume: u16 },
    #[error(
        "flushed writes to volume {volume} may be lost: a session of the cache was cut short, and its metadata ('at-removal') has none of the blocks that were dirty; '--discard-lost' goes on without them"
    )]
    LostSession { volume: u16 },
    #[error("{0}")]
    Refused(String),
    #[error(
        "the disk of volume {volume} has {bytes} bytes: expected at least {needed}, since the cache holds a block that ends there"
    )]
    TooSmall { volume: u16, bytes: u64, needed: u64 },
}

/// What a command gives, or why it was not carried out.
pub type Result<T, E = ManageError> = std::result::Result<T, E>;

impl ManageError {
    /// The number of the volume that it is about.
    pub const fn volume(&self) -> Option<u16> {
        match self {
            Self::Disk { volume, .. }
            | Self::Stamp { volume, .. }
            | Self::WrongDisk { volume, .. }
            | Self::Changed { volume, .. }
            | Self::TooSmall { volume, .. }
            | Self::GivenUp { volume, .. }
            | Self::Unrecorded(volume)
            | Self::Damaged { volume }
            | Self::LostSession { volume }
            | Self::NoVolume(volume) => Some(*volume),
            _ => None,
        }
    }
}

/// A disk as commands see it.
pub trait Disk: Area {
    /// When it was written to last, in nanoseconds since 1970; `None` where nobody keeps that.
    fn changed_ns(&mut self) -> StoreResult<Option<u64>>;

    /// What lies beside it.
    fn beside(&mut self) -> StoreResult<Beside>;

    /// Puts a mark beside it, all or nothing and durable; `None` takes it away. Of no effect where there is
    /// no place.
    fn put_mark(&mut self, mark: Option<&Mark>) -> StoreResult<()>;

    /// Shows that the session is still going on.
    fn sign_of_life(&mut self) -> StoreResult<()>;

    /// When that was done last, in nanoseconds since 1970.
    fn alive_ns(&mut self) -> StoreResult<Option<u64>>;
}

/// Told of bytes that are done, and of all there are.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);
