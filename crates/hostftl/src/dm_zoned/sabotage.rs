//! Promises that are broken on purpose, to see whether the crash suite notices.

/// What a layer does wrong.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// A flush writes no metadata.
    FlushWithoutCommit,
    /// The superblock of the second set is written without waiting for data and metadata.
    SuperblockWithoutWait,
    /// The first set is written without waiting for the second.
    SetsTogether,
    /// A commit begins before the one before it is complete.
    CommitsTogether,
    /// A conventional zone is used again before it is durable that nothing is mapped there.
    ReuseWithoutCommit,
    /// A sequential zone is reset before that is durable.
    ResetWithoutCommit,
    /// A start leaves the sets different.
    KeepDifferences,
}

impl Sabotage {
    /// All that a cut can bring to light.
    pub const ALL: [Self; 7] = [
        Self::FlushWithoutCommit,
        Self::SuperblockWithoutWait,
        Self::SetsTogether,
        Self::CommitsTogether,
        Self::ReuseWithoutCommit,
        Self::ResetWithoutCommit,
        Self::KeepDifferences,
    ];
}
