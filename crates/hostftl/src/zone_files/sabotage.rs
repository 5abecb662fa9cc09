//! Promises that are broken on purpose, to see whether the crash suite notices.

/// What a layer does wrong.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// A zone is reset before the records of what freed it are durable.
    ResetBeforeRecords,
    /// Records are written without waiting for the data that they tell of.
    RecordsBeforeData,
    /// A flush writes no records.
    FlushWithoutRecords,
    /// The zones of a generation are reset before the next snapshot is durable.
    RollWithoutWait,
    /// A start takes a snapshot that is not complete.
    BelievePartialSnapshots,
    /// A replacement is two records: the deletion, and some time later the object.
    ReplaceInTwo,
}

impl Sabotage {
    /// All that a cut can bring to light.
    pub const ALL: [Self; 6] = [
        Self::ResetBeforeRecords,
        Self::RecordsBeforeData,
        Self::FlushWithoutRecords,
        Self::RollWithoutWait,
        Self::BelievePartialSnapshots,
        Self::ReplaceInTwo,
    ];
}
