//! What each block of an ext2, ext3 or ext4 file system holds.
//!
//! * [`classify`]: the map of a whole image.
//! * [`LiveMap`]: the same kept up to date from the writes that pass, and [`Classified`]: a subsystem that
//!   gives every write the stream of what it holds (FStream: [streams-article 2]).
//!
//! Everything that is read may be damaged or made to do harm: numbers are checked against the size of the
//! image before they are used, every mapping block is visited once, and no more blocks are claimed than
//! exist.

mod bytes;
mod classified;
mod classify;
mod group;
mod inode;
mod journal;
mod kind;
mod live;
mod streams;
mod superblock;
mod walk;

pub use classified::{Classified, KindSink};
pub use classify::{FileSystemMap, KindTotal, Run, classify};
pub use kind::Kind;
pub use live::LiveMap;
use std::fmt::Display;
pub use streams::KindStreams;
pub use superblock::{Features, Superblock};

/// Why an image has no map: it cannot be read, or says what cannot be. The text names the byte, counted from
/// the beginning of the file system, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExtError(String);

impl ExtError {
    pub(crate) fn field(offset: u64, field: &str, value: impl Display, expected: impl Display) -> Self {
        Self(format!("byte {offset}: {field} is {value}: expected {expected}"))
    }

    pub(crate) fn read(offset: u64, message: &str) -> Self {
        Self(format!("byte {offset}: {message}"))
    }
}

/// Reads bytes of the file system: fills the buffer from an offset, or says why not.
pub type ReadAt<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), String> + 'a;
