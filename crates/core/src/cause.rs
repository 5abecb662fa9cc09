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

/// What a medium that keeps bytes noticed of its own decay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MediumHealth {
    /// Reads refused since the start because a checksum of the data or of the OOB did not match.
    pub checksum_errors: u64,
    /// Reads refused since the start because the program of the page or the erase of its block was cut
    /// short.
    pub torn_pages: u64,
    /// Blocks that are bad now, from the factory or since.
    pub bad_blocks: u64,
}

crate::state!(impl [] MediumHealth { saved: checksum_errors, torn_pages, bad_blocks; });

/// What a medium counts by itself, apart from the causes of the device
/// ([`FlashState::counters`](crate::FlashState::counters)), so that one checks the other.
#[derive(Clone, Copy, Debug)]
pub struct MediumTally<'a> {
    /// Operations since the last reset.
    pub totals: OpCounts,
    /// What it noticed of its own decay; of the whole device where several sets share one.
    pub health: MediumHealth,
    /// Programs per page since the last reset, block-major, if it was asked to keep them.
    pub program_counts: Option<&'a [u32]>,
}
