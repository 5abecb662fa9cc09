//! What a start from flash found and did.

use serde::{Deserialize, Serialize};

/// How a device with a journal was opened. Counts are of this start alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// The device was shut down cleanly: nothing was written since the checkpoint.
    pub was_clean: bool,
    /// Generation of the checkpoint that was loaded; 0 on a device that never had one.
    pub checkpoint: u64,
    /// Map entries loaded from the checkpoint.
    pub map_entries: u64,
    /// Blocks that changed since the checkpoint, whose OOB was read.
    pub scanned_blocks: u64,
    /// Pages whose OOB was read.
    pub scanned_pages: u64,
    /// Pages whose program or erase was cut short, or that fail their checksum.
    pub torn_pages: u64,
    /// Records of dropped pages that were applied.
    pub drop_records: u64,
    /// Logical pages that hold data now.
    pub live_pages: u64,
    /// Blocks whose half-written copies the translation layer threw away.
    pub rolled_back_blocks: u64,
    /// Flash pages read of the journal and checkpoint.
    pub metadata_pages: u64,
}
