//! Why an operation was done. "Every byte has a cause": the sums over causes equal the medium's
//! own counters.

use crate::{state, state_of_enum, words};
use serde::{Deserialize, Serialize};

/// The cause of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Cause {
    /// A host request, including the reads of its read-modify-writes.
    Host = 0,
    /// Garbage collection: moves and erases of victims.
    Gc = 1,
    /// Log-block merges, superblock remap copies and in-place rewrites.
    Merge = 2,
    /// Other metadata (checkpoints, journals).
    Meta = 3,
    /// Wear levelling.
    Wear = 4,
    /// Padding of zones that a host finished.
    Finish = 5,
    /// Cleaning by a file system of the host, over a device that may collect as well.
    Clean = 6,
    /// Moves from an SLC cache, and erases of its blocks.
    Fold = 7,
}

words!(pub Cause: Host = "host", Gc = "gc", Merge = "merge", Meta = "meta", Wear = "wear", Finish = "finish", Clean = "clean", Fold = "fold");

impl Cause {
    /// Whether a page that is programmed under it has new contents; under the others it is a copy.
    #[inline]
    pub const fn writes_anew(self) -> bool {
        matches!(self, Self::Host | Self::Meta)
    }
}

/// Numbers of flash operations: pages programmed, pages read, blocks erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpCounts {
    /// Pages programmed.
    pub programs: u64,
    /// Pages read.
    pub reads: u64,
    /// Blocks erased.
    pub erases: u64,
}

state!(impl [] OpCounts { saved: programs, reads, erases; });
state!(impl [] CauseTable { saved: rows; });
state_of_enum!(Cause: Host, Gc, Merge, Meta, Wear, Finish, Clean, Fold);

impl OpCounts {
    /// Adds another count to this one.
    pub fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.reads += other.reads;
        self.erases += other.erases;
    }
}

/// Operation counts by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseTable {
    rows: [OpCounts; Cause::ALL.len()],
}

impl CauseTable {
    /// The counts of one cause.
    pub const fn get(&self, cause: Cause) -> OpCounts {
        self.rows[cause as usize]
    }

    /// The counts of one cause, for counting.
    #[inline]
    pub fn row(&mut self, cause: Cause) -> &mut OpCounts {
        &mut self.rows[cause as usize]
    }

    /// Adds another table to this one.
    pub fn add(&mut self, other: &Self) {
        for (row, other) in self.rows.iter_mut().zip(other.rows) {
            row.add(other);
        }
    }

    /// The sum over all causes.
    pub fn total(&self) -> OpCounts {
        let mut total = OpCounts::default();
        for row in self.rows {
            total.add(row);
        }
        total
    }
}
