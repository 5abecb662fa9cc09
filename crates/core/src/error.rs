//! Why a namespace or a store refuses a command. [`crate::ErrorClass`] says what they mean to a host.

use crate::addr::Extent;
use crate::ftl::FtlError;

/// Why a namespace refuses a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// From the translation layer.
    #[error(transparent)]
    Ftl(#[from] FtlError),
    /// A store below failed, or refuses what it was asked for.
    #[error("{place}, for {} bytes at offset {}: {source}", extent.len, extent.offset)]
    Store {
        /// Which store, such as the device of a cache, or the disk of a volume by its name.
        place: String,
        /// What was asked of the namespace.
        extent: Extent,
        /// What the store said; offsets are its own.
        source: StoreError,
    },
    /// Acknowledged bytes were lost with a device that failed. They can be written anew.
    #[error("request {extent}: {} bytes at offset {} were lost with the cache device", lost.len, lost.offset)]
    Lost {
        /// The request.
        extent: Extent,
        /// The first of its lost bytes that are in one piece.
        lost: Extent,
    },
    /// The command makes no sense: its extent, or the length of its payload.
    #[error("request {extent}: expected {expected}")]
    Refused {
        /// The request.
        extent: Extent,
        /// What would do.
        expected: String,
    },
    /// This namespace does not do that.
    #[error("{command} is not supported by this namespace")]
    NotSupported {
        /// What was asked for ([`crate::Command::name`]).
        command: &'static str,
    },
}

/// Why a store refuses a command, or could not fulfil it. Nothing was changed, unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The command reaches past the end.
    #[error("{len} bytes at offset {offset} reach past the end at {capacity}")]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Capacity in bytes.
        capacity: u64,
    },
    /// Not a whole number of blocks.
    #[error("{len} bytes at offset {offset} are not whole blocks of {block} bytes")]
    Unaligned {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Block in bytes.
        block: u32,
    },
    /// The bytes of this extent cannot be read or written. What a failed write left there is unknown.
    #[error("input/output error at offset {offset}, {len} bytes: {detail}")]
    Io {
        /// First byte that is affected.
        offset: u64,
        /// Bytes that are affected.
        len: u64,
        /// What the device said.
        detail: String,
    },
    /// Takes no more writes.
    #[error("takes no more writes: {detail}")]
    ReadOnly {
        /// Why.
        detail: String,
    },
    /// The device is gone: nothing works any more.
    #[error("the device is gone: {detail}")]
    Gone {
        /// Why.
        detail: String,
    },
}
