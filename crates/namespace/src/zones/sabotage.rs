//! Ways to break zones, to test the tests.

/// What a zoned namespace does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// A reset erases blocks before its record is on flash.
    EraseBeforeRecord,
    /// What comes after a record does not wait until the buffer of the device has written it.
    RecordWithoutBarrier,
    /// A start takes the last programmed page of a zone instead of the first that is missing.
    LastPage,
    /// A start takes a replacement block whose copies are incomplete.
    IncompleteCopies,
    /// A flush does not log what is held.
    FlushWithoutHeld,
    /// A flush does not wait for programs under way that hold answered data, or lie before it.
    FlushWithoutWait,
    /// A snapshot does not wait for the programs of pages that the run before it held.
    SnapshotWithoutWait,
    /// Padding does not wait for the record of what ends its zone.
    PadWithoutRecord,
    /// Padding before a reset counts as written after it.
    PadAfterReset,
    /// A start leaves the pages behind the first missing one on flash.
    KeepDiscarded,
    /// Programs do not wait for what the start did.
    ProgramBeforeStart,
    /// A block in which a program failed is marked bad while copies of it are under way.
    MarkAtOnce,
}

impl Sabotage {
    /// Every way to break them.
    pub const ALL: [Self; 12] = [
        Self::EraseBeforeRecord,
        Self::RecordWithoutBarrier,
        Self::LastPage,
        Self::IncompleteCopies,
        Self::FlushWithoutHeld,
        Self::FlushWithoutWait,
        Self::SnapshotWithoutWait,
        Self::PadWithoutRecord,
        Self::PadAfterReset,
        Self::KeepDiscarded,
        Self::ProgramBeforeStart,
        Self::MarkAtOnce,
    ];
}
