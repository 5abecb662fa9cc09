//! Why a journal cannot be opened, and how it is made.

use nandscape_core::FlashError;

/// A device whose journal cannot be opened or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum JournalError {
    #[error(
        "the journal needs {needed} blocks: expected a device with more good blocks than that, this one has {good}"
    )]
    TooSmall {
        /// Blocks that it would keep for itself.
        needed: u32,
        good: u32,
    },
    #[error("{0}")]
    Unsuited(String),
    #[error(
        "block {block} holds data, but the flash has no complete checkpoint: expected a device that a journal was kept on from the beginning"
    )]
    NoCheckpoint { block: u32 },
    /// A page of the newest checkpoint or of its journal cannot be read.
    #[error("page {page} of checkpoint {generation} is damaged: expected what was written, found {found}")]
    Damaged {
        generation: u64,
        /// Which page of the device, or its number in the checkpoint if it was not found.
        page: u64,
        found: &'static str,
    },
    #[error(
        "page {page} was programmed after checkpoint {generation} and its OOB is damaged: expected a record of it, without which the newest \
         data of no logical page is certain"
    )]
    Unknown {
        /// The checkpoint that the start begins with; 0 for none.
        generation: u64,
        page: u32,
    },
    #[error(transparent)]
    Flash(#[from] FlashError),
}

/// What a start of a journal gives, or why it cannot be opened.
pub(super) type Result<T, E = JournalError> = std::result::Result<T, E>;

impl JournalError {
    /// The journal is that of a device of another shape.
    pub(super) fn foreign(what: &str, found: u32, expected: u32) -> Self {
        Self::Unsuited(format!(
            "the journal on the flash is of another device: {what} {found}, expected {expected}"
        ))
    }
}

/// How a journal is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalOptions {
    /// Programs between the beginnings of two checkpoints. Absent: a quarter of the device's pages, but at
    /// most 400,000, so that a start reads the OOB of at most that many and an eighth more.
    pub interval: Option<u64>,
    /// Pages for records (dropped pages) in each region. Absent: as many as a checkpoint has. Of an existing
    /// journal the number only says when the next checkpoint is due; its blocks stay those it was made
    /// with.
    pub record_pages: Option<u32>,
    /// Breaks something, so that a test can show that it would be noticed.
    #[doc(hidden)]
    pub sabotage: Sabotage,
}

/// What a test breaks on purpose.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sabotage {
    #[default]
    None,
    /// A start ignores records of dropped pages.
    IgnoreDrops,
    /// Erases do not wait for the programs before them.
    EraseWithoutWait,
    /// Erases do not wait until records of dropped pages are written.
    EraseBeforeJournal,
    /// A start takes the oldest version of a page among those written since the checkpoint.
    OldestVersion,
    /// The last page of a checkpoint does not wait for the programs whose places it tells.
    EndWithoutWait,
    /// Flushes do not write the records of dropped pages.
    FlushWithoutJournal,
    /// A start does not look at what was written since the checkpoint.
    IgnoreScan,
    /// A new checkpoint does not repeat the records made since it began.
    ForgetRepeats,
    /// A checkpoint does not tell which of the journal's own blocks have failed.
    ForgetFailed,
    RecordsOnce,
    /// A start that cannot use the newest checkpoint does not look at what it says was dropped.
    IgnoreHeld,
    /// A start that cannot use the newest checkpoint does not look at the records after it.
    IgnoreLater,
}

impl Sabotage {
    /// Ways to break it that a loss of power shows.
    pub const BY_CUTS: [Self; 8] = [
        Self::IgnoreDrops,
        Self::EraseWithoutWait,
        Self::EraseBeforeJournal,
        Self::OldestVersion,
        Self::EndWithoutWait,
        Self::FlushWithoutJournal,
        Self::IgnoreScan,
        Self::ForgetRepeats,
    ];

    /// Ways to break it that damaged pages of the journal show.
    pub const BY_DAMAGE: [Self; 3] = [Self::RecordsOnce, Self::IgnoreHeld, Self::IgnoreLater];
}
