//! Why a namespace or a store refuses a command. [`crate::ErrorClass`] says what they mean to a host.

use crate::addr::Extent;
use crate::ftl::FtlError;
use crate::object::ObjectError;
use crate::vector::VectorError;
use crate::zone::ZoneError;

/// Why a namespace refuses a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NamespaceError {
    #[error(transparent)]
    Ftl(#[from] FtlError),
    #[error("{place}, for {} bytes at offset {}: {source}", extent.len, extent.offset)]
    Store {
        /// Which store, such as the device of a cache, or the disk of a volume by its name.
        place: String,
        extent: Extent,
        /// What the store said; offsets are its own.
        source: StoreError,
    },
    /// Acknowledged bytes were lost with a device that failed. They can be written anew.
    #[error("request {extent}: {} bytes at offset {} were lost with the cache device", lost.len, lost.offset)]
    Lost {
        extent: Extent,
        /// The first of its lost bytes that are in one piece.
        lost: Extent,
    },
    /// The command makes no sense: its extent, or the length of its payload.
    #[error("request {extent}: expected {expected}")]
    Refused { extent: Extent, expected: String },
    #[error("{command} is not supported by this namespace")]
    NotSupported { command: &'static str },
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// Nothing was done.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// Nothing was done.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// What a namespace gives, or why it refused or failed.
pub type NamespaceResult<T> = Result<T, NamespaceError>;

/// Why a store refuses a command, or could not fulfil it. Nothing was changed, unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StoreError {
    #[error("{len} bytes at offset {offset} reach past the end at {capacity}")]
    OutOfRange { offset: u64, len: u64, capacity: u64 },
    #[error("{len} bytes at offset {offset} are not whole blocks of {block} bytes")]
    Unaligned { offset: u64, len: u64, block: u32 },
    /// The bytes of this extent cannot be read or written. What a failed write left there is unknown.
    #[error("input/output error at offset {offset}, {len} bytes: {detail}")]
    Io { offset: u64, len: u64, detail: String },
    #[error("takes no more writes: {detail}")]
    ReadOnly { detail: String },
    #[error("the device is gone: {detail}")]
    Gone { detail: String },
}

/// What a store gives, or why it refused or failed.
pub type StoreResult<T> = Result<T, StoreError>;
