//! Promises that are broken on purpose, to see whether the crash suite notices.

/// What a layer does wrong.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// A zone is reset before the records of what was moved are written.
    ResetBeforeRecords,
    /// A zone is reset without waiting until what was moved is durable.
    ResetWithoutWait,
    /// A flush writes no records.
    FlushWithoutRecords,
    /// A checkpoint ends without waiting for the data that it tells of.
    EndWithoutWait,
    /// A start believes records of data that is not there.
    BelieveAllRecords,
    /// A start that ignored records leaves them in the log, to be found again.
    KeepIgnoredRecords,
    /// A zone with data is written before those before it in its log are durable.
    OpenWithoutOrder,
    /// A zone of the log is written before the one before it is durable.
    LogWithoutOrder,
}

impl Sabotage {
    /// All that a cut can bring to light.
    pub const ALL: [Self; 8] = [
        Self::ResetBeforeRecords,
        Self::ResetWithoutWait,
        Self::FlushWithoutRecords,
        Self::EndWithoutWait,
        Self::BelieveAllRecords,
        Self::KeepIgnoredRecords,
        Self::OpenWithoutOrder,
        Self::LogWithoutOrder,
    ];
}
