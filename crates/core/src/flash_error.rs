//! What flash refuses, and why.

use crate::addr::{BlockId, Lpn, Ppn};

/// What a medium can refuse. The first three are ordinary events of flash; the others are bugs of the caller
/// that the medium refuses to hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FlashError {
    /// The page cannot be corrected by ECC, its checksum is wrong, or its program or erase was cut short.
    #[error("uncorrectable read of page {}", page.0)]
    Uncorrectable { page: Ppn },
    /// The page was programmed, and whose data it holds is not known any more: its OOB is damaged, and
    /// neither a program nor an erase that was cut short explains that.
    #[error("the OOB of page {} is damaged", page.0)]
    Damaged { page: Ppn },
    /// The program operation failed; the block should be retired. Whether the page now counts as programmed,
    /// [`BlockState::is_programmed`](crate::BlockState::is_programmed) says; nothing can be read from it.
    #[error("program of page {} failed", page.0)]
    ProgramFailed { page: Ppn },
    /// The erase failed; the block should be retired. What it held may be gone.
    #[error("erase of block {} failed", block.0)]
    EraseFailed { block: BlockId },
    #[error("block {} has reached its endurance of {endurance} erases", block.0)]
    WornOut { block: BlockId, endurance: u32 },
    #[error("block {} is bad", block.0)]
    BadBlock { block: BlockId },
    #[error("page {} programmed twice without an erase", page.0)]
    NotErased { page: Ppn },
    /// A later page of the block has been programmed already, or an earlier one has not.
    #[error("page {} programmed out of order (next page of the block is {expected})", page.0)]
    OutOfOrder {
        page: Ppn,
        /// Index in the block of the page that may be programmed.
        expected: u32,
    },
    #[error("read of page {}, which is erased", page.0)]
    Erased { page: Ppn },
    /// The device takes no more programs and erases: its own metadata has no room left, or what it is kept on
    /// failed.
    #[error("the device is read-only: {reason}")]
    ReadOnly { reason: &'static str },
    /// Refused by a journal on the device, not by the medium.
    #[error(transparent)]
    Journal(#[from] JournalRefusal),
    /// A fault that was asked for, and that no medium has of itself.
    #[error(transparent)]
    Injected(#[from] InjectedFault),
    #[error("address {address} outside the device ({limit})")]
    OutOfRange { address: u64, limit: u64 },
}

/// What a journal on the device refuses: it would lose data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum JournalRefusal {
    #[error("block {} still holds the newest data of {pages} logical page(s)", block.0)]
    HoldsData {
        block: BlockId,
        /// Logical pages whose newest data is there.
        pages: u32,
    },
    /// A copy of a logical page that holds nothing, or no such copy where one was said to be.
    #[error("page {} is no copy of the newest data of logical page {}", page.0, lpn.0)]
    NoCopy { lpn: Lpn, page: Ppn },
}

/// Faults that are asked for and have no likeness among the errors of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum InjectedFault {
    #[error("the power was cut at operation {operation}")]
    PowerLost {
        /// The program or erase at which it was, counted from the start.
        operation: u64,
    },
}
