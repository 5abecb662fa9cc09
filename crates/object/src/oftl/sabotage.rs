//! Promises that can be broken on purpose.

/// A broken promise, for tests of the tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// None is broken.
    #[default]
    None,
    /// Incomplete writes are taken for complete ones.
    PartialWrites,
    /// A flush does not wait.
    EarlyFlush,
    /// A block is erased before its copies are durable.
    EarlyErase,
    /// A block is programmed before a root says so.
    EarlyProgram,
    /// Deletions are not made durable before blocks are erased.
    ForgottenDeletions,
    /// Back pointers of the update window are not read.
    NoReplay,
    /// A start goes on behind writes that are not complete.
    LeavesGaps,
    /// Objects leave the memory before their metadata says what back pointers do.
    EarlyUnload,
}

impl Sabotage {
    /// Those that cuts anywhere find soon; tests of their own find the others.
    pub const ALL: [Self; 5] =
        [Self::PartialWrites, Self::EarlyFlush, Self::EarlyErase, Self::EarlyProgram, Self::NoReplay];
}
