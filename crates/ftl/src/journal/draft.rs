//! Where a checkpoint is, and one that is being written.

use super::format::Kind;
use super::records::Record;
use super::shape::Table;

#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub generation: u64,
    /// Indices into the pool, in the order in which they were begun.
    pub blocks: Vec<usize>,
    /// Number of the next page.
    pub index: u32,
    /// Pages of records so far, each of which is there twice.
    pub parts: u32,
}

/// A checkpoint under way.
#[derive(Debug)]
pub(super) struct Draft {
    pub region: Region,
    pub header: Vec<u8>,
    /// The first sequence number after it began.
    pub start_seq: u64,
    pub table: Table,
    /// Kind and part of its next page: of the map, the first slice from here that is not empty.
    pub next: (Kind, u32),
    /// Pages of the map so far.
    pub slices: u32,
    /// Records since it began that are already in the region before.
    pub repeats: Vec<Record>,
    /// Programs between two of its pages.
    pub stride: u64,
}
