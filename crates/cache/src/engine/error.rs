//! Why a cache refuses something or could not fulfil it.

use crate::metadata::MetadataError;
use nandscape_core::{Extent, NamespaceError, StoreError};

/// What went wrong, and on which side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CacheError {
    #[error("cache device: {0}")]
    Fast(#[source] StoreError),
    #[error("disk of volume {volume}: {source}")]
    Slow {
        volume: u16,
        #[source]
        source: StoreError,
    },
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error("{0}")]
    Disks(String),
    /// These bytes were dirty in a cache device that failed.
    #[error("{} bytes at offset {} of volume {volume} were lost with the cache device", extent.len, extent.offset)]
    Lost {
        volume: u16,
        /// What was lost of what was asked for: the first of it that is in one piece.
        extent: Extent,
    },
    #[error("no volume {0}")]
    NoVolume(u16),
    #[error("{} bytes at offset {} of volume {volume}: expected 1 byte or more within its {capacity} bytes", extent.len, extent.offset)]
    OutOfRange { volume: u16, extent: Extent, capacity: u64 },
    #[error("{} bytes at offset {}: expected multiples of {unit}", extent.len, extent.offset)]
    Unaligned { extent: Extent, unit: u32 },
    #[error("expected a payload of {expected} bytes for this command, got {got}")]
    Payload {
        expected: u64,
        /// Length of what came; 0 if none or one of the wrong direction.
        got: u64,
    },
    #[error("{what} = {value}: expected {expected}")]
    Setup { what: &'static str, value: u64, expected: String },
}

/// What a cache gives, or why not.
pub type Result<T, E = CacheError> = std::result::Result<T, E>;

impl CacheError {
    /// An error of the store with this number: 0 is the fast one, then come the disks.
    pub(super) const fn of_side(side: u16, error: StoreError) -> Self {
        match side {
            0 => Self::Fast(error),
            disk => Self::Slow { volume: disk - 1, source: error },
        }
    }

    /// What a host is told of it that asked for `extent` (of no bytes where nobody asked). `name` gives the
    /// name of a volume.
    pub fn refusal(self, extent: Extent, name: impl FnOnce(u16) -> String) -> NamespaceError {
        let store = |place, source| NamespaceError::Store { place, extent, source };
        let refused = |expected| NamespaceError::Refused { extent, expected };
        match self {
            Self::Fast(source) => store("cache device".to_owned(), source),
            Self::Slow { volume, source } => store(format!("disk of {}", name(volume)), source),
            Self::OutOfRange { capacity, .. } => refused(format!("1 byte or more within {capacity} bytes")),
            Self::Unaligned { unit, .. } => refused(format!("multiples of {unit} bytes")),
            Self::Payload { expected, got } => {
                refused(format!("a payload of {expected} bytes, and not of {got}"))
            }
            Self::NoVolume(number) => refused(format!("a volume of this cache, and not number {number}")),
            Self::Lost { extent: lost, .. } => NamespaceError::Lost { extent, lost },
            // Of an opening or a change of the cache: no command of a client gives rise to them.
            error @ (Self::Metadata(_) | Self::Disks(_) | Self::Setup { .. }) => {
                let source =
                    StoreError::Io { offset: extent.offset, len: extent.len, detail: error.to_string() };
                store("cache".to_owned(), source)
            }
        }
    }
}
