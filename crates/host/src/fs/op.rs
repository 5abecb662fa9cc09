//! What goes into the model: operations, options, errors.

use super::{BLOCK, Fit};
use nandscape_core::SimTime;

/// Last byte of a file that is believed.
const END_MAX: u64 = 1 << 48;

/// What a program asks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOpKind {
    /// A new file.
    Create,
    /// First sight of a file that was there before.
    Open,
    /// Write `len` bytes at `offset`.
    Write,
    /// Read.
    Read,
    /// Data and metadata to the device.
    Fsync,
    /// Data, and what is needed to find it.
    Fdatasync,
    /// Data of a range (all of it if `len` is 0), without a flush.
    SyncRange,
    /// New size in `offset`.
    Truncate,
    /// Reserve space.
    Allocate,
    /// Give space back.
    Punch,
    /// The next of the file's names.
    Rename,
    /// The last link is gone.
    Delete,
    /// Lifetime hint, 0 to 5, in `len`.
    Hint,
    /// A writable mapping: its stores are not known.
    MapWrite,
}

/// One file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FileOp {
    pub at: SimTime,
    pub kind: FileOpKind,
    pub writer: u32,
    /// Number of the file's life.
    pub file: u32,
    /// Byte, or new size.
    pub offset: u64,
    /// Bytes, or hint.
    pub len: u64,
}

/// What is under the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Below {
    /// A volume of blocks as ext4 has it: the model finds places and writes metadata.
    #[default]
    Ext4,
    /// The same with the data in the journal, too, as ext3 and ext4 have it with `data=journal`.
    DataJournal,
    /// The same without a journal, on a device that writes a transaction whole or not at all.
    Atomic,
    /// The same as XFS has it: allocation groups, and what is freed is not discarded.
    Xfs,
    /// A store of objects, one for each file, which does that itself.
    Objects,
}

/// How a transaction reaches the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transactions {
    /// Data at home, then the metadata in the journal.
    #[default]
    Ordered,
    /// Data and metadata in the journal, and both at home later.
    DataJournal,
    /// Data and metadata at home, by one atomic write of the device.
    Atomic,
}

/// How the model behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub struct FsOptions {
    /// What the requests are for.
    pub below: Below,
    /// Bytes of the volume; `None` is as many as are needed.
    pub size: Option<u64>,
    /// Where extents go.
    pub fit: Fit,
    /// Extents of at least so many bytes begin at a multiple of them: the stripe that `mke2fs` and `mkfs.xfs`
    /// take from what a device prefers.
    pub align: u64,
    /// Whether there is a page cache.
    pub write_back: bool,
    /// Dirty data older than this is written, in nanoseconds.
    pub expire_ns: u64,
    /// Between two looks, and between two commits of the journal, in nanoseconds.
    pub interval_ns: u64,
    /// Dirty bytes beyond which writing starts.
    pub dirty_limit: u64,
    /// Discard what is freed.
    pub discard: bool,
    /// Pass reads on to the device; otherwise the page cache is taken to hold everything.
    pub reads: bool,
    /// Bytes of the journal; `None` writes no metadata at all.
    pub journal: Option<u64>,
    /// What the journal is used for.
    pub transactions: Transactions,
    /// Largest request in bytes.
    pub largest_request: u64,
    /// Delete every file at the end.
    pub delete_at_end: bool,
}

impl FsOptions {
    /// What is usual over this.
    pub fn over(below: Below) -> Self {
        let usual = Self { below, ..Self::default() };
        match below {
            Below::Ext4 => usual,
            Below::DataJournal => Self { transactions: Transactions::DataJournal, ..usual },
            Below::Atomic => Self { transactions: Transactions::Atomic, ..usual },
            Below::Xfs => Self { fit: Fit::Groups, discard: false, ..usual },
            Below::Objects => Self { journal: None, ..usual },
        }
    }
}

impl Default for FsOptions {
    fn default() -> Self {
        Self {
            below: Below::Ext4,
            size: None,
            fit: Fit::First,
            align: BLOCK,
            write_back: true,
            expire_ns: 30_000_000_000,
            interval_ns: 5_000_000_000,
            dirty_limit: 256 << 20,
            discard: true,
            reads: false,
            journal: Some(16 << 20),
            transactions: Transactions::Ordered,
            largest_request: 1 << 20,
            delete_at_end: false,
        }
    }
}

/// Why the model refuses an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FsError {
    #[error(
        "the volume is full: {needed} more blocks of 4 KiB are needed, {free} are free; expected a larger size"
    )]
    Full { needed: u64, free: u64 },
    #[error("file {0} was neither created nor opened before: expected a create or open of it first")]
    UnknownFile(u32),
    #[error("file {0} exists or existed: expected a new number for every life of a file")]
    FileAgain(u32),
    #[error("offset {offset} + length {len}: expected an end below 2^48")]
    TooFar { offset: u64, len: u64 },
    #[error(transparent)]
    Hint(#[from] crate::hints::HintError),
}

pub(super) fn check_end(offset: u64, len: u64) -> Result<(), FsError> {
    let ends = offset.checked_add(len).is_some_and(|end| end < END_MAX);
    if ends { Ok(()) } else { Err(FsError::TooFar { offset, len }) }
}

/// First block of an operation's range, and one past its last.
pub(super) fn blocks_of(op: &FileOp) -> Result<(u64, u64), FsError> {
    check_end(op.offset, op.len)?;
    let from = op.offset / BLOCK;
    Ok((from, if op.len == 0 { from } else { (op.offset + op.len).div_ceil(BLOCK) }))
}
