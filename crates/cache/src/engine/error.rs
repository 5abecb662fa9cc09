//! Why a cache refuses something or could not fulfil it.

use nandscape_core::{Extent, StoreError};

/// What went wrong, and on which side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The fast store.
    #[error("cache device: {0}")]
    Fast(#[source] StoreError),
    /// The slow store of a volume.
    #[error("disk of volume {volume}: {source}")]
    Slow {
        /// The volume.
        volume: u16,
        /// What it said.
        #[source]
        source: StoreError,
    },
    /// There is no such volume.
    #[error("no volume {0}")]
    NoVolume(u16),
    /// The command reaches past the end of the volume, or has no length.
    #[error("{} bytes at offset {} of volume {volume}: expected 1 byte or more within its {capacity} bytes", extent.len, extent.offset)]
    OutOfRange {
        /// The volume.
        volume: u16,
        /// What was asked for.
        extent: Extent,
        /// Capacity in bytes.
        capacity: u64,
    },
    /// Not whole blocks of both stores.
    #[error("{} bytes at offset {}: expected multiples of {unit}", extent.len, extent.offset)]
    Unaligned {
        /// What was asked for.
        extent: Extent,
        /// The larger of both stores' blocks.
        unit: u32,
    },
    /// The payload is missing, of the wrong length, or the wrong one for the command.
    #[error("expected a payload of {expected} bytes for this command, got {got}")]
    Payload {
        /// Length of the command.
        expected: u64,
        /// Length of what came; 0 if none or one of the wrong direction.
        got: u64,
    },
    /// A cache cannot be made of these parts.
    #[error("{what} = {value}: expected {expected}")]
    Setup {
        /// What does not fit.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What would.
        expected: String,
    },
}
