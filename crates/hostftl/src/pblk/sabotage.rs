//! Promises that are broken on purpose, to see whether the crash suite notices.

/// What a layer does wrong.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// A line is erased without waiting until what was moved is durable.
    ResetWithoutWait,
    /// A line is written before all of its chunks are erased.
    WriteBeforeReset,
    /// The end metadata of a line does not wait for its data.
    EndWithoutWait,
    /// A flush leaves the ring as it is.
    FlushWithoutRing,
    /// A flush writes no drops.
    FlushWithoutDrops,
    /// Collection forgets the drops of a victim.
    ForgetDrops,
    /// A start applies lines in the order of their numbers.
    IgnoreSequence,
    /// A start that goes on with a line counts its pages from 0 again.
    RestartIndex,
}

impl Sabotage {
    /// All that a cut can bring to light.
    pub const ALL: [Self; 8] = [
        Self::ResetWithoutWait,
        Self::WriteBeforeReset,
        Self::EndWithoutWait,
        Self::FlushWithoutRing,
        Self::FlushWithoutDrops,
        Self::ForgetDrops,
        Self::IgnoreSequence,
        Self::RestartIndex,
    ];
}
