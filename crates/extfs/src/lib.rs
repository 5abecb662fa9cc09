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
pub use streams::KindStreams;
pub use superblock::{Features, Superblock};

/// Why an image has no map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtError {
    /// A structure says what cannot be. Offsets are counted from the beginning of the file system.
    #[error("byte {offset}: {field} is {value}: expected {expected}")]
    Field {
        /// Where.
        offset: u64,
        /// Which field.
        field: &'static str,
        /// What it says.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// The image could not be read.
    #[error("byte {offset}: {message}")]
    Read {
        /// Where.
        offset: u64,
        /// Why.
        message: String,
    },
    /// More blocks are claimed by inodes than there are.
    #[error(
        "inode {inode}: inodes claim more than the {blocks} blocks there are: expected each block to have one owner (e2fsck repairs that)"
    )]
    Overlap {
        /// The inode at which it was found.
        inode: u32,
        /// Blocks of the file system.
        blocks: u64,
    },
}

impl ExtError {
    pub(crate) fn field(
        offset: u64,
        field: &'static str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Field { offset, field, value: value.to_string(), expected: expected.into() }
    }
}

/// Reads bytes of the file system: fills the buffer from an offset, or says why not.
pub type ReadAt<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), String> + 'a;
