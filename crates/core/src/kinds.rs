//! What a file system wrote for itself and what for its users, by kind of block: a part of what a served
//! device counts.

use serde::Serialize;

/// Writes to a namespace by what the blocks hold, since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindReport {
    /// The file system that was recognised, such as `ext4, 4096 B blocks`; absent while there is none.
    pub file_system: Option<String>,
    /// Every kind of block, written or not, in a fixed order.
    pub kinds: Vec<KindCount>,
    /// Bytes that were read from the device to learn what blocks hold.
    pub read_bytes: u64,
    /// Of these reads, those that failed.
    pub read_errors: u64,
    /// Why a recording with kinds has ended, where one was asked for and could not be written.
    pub recording_error: Option<String>,
}

/// Writes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// Name of the kind, such as `inode-table`.
    pub kind: &'static str,
    /// Stream that writes of this kind are given; 0 is none.
    pub stream: u16,
    /// Write requests with blocks of this kind. A request may have blocks of several.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
}
