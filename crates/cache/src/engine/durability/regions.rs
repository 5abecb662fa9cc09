//! Clean blocks that a loss of power would leave older than the disk.
//!
//! A committed entry says that a block is clean. If the disk gets something newer past the cache, and power
//! is lost before the next commit, the cache serves the older version, which is allowed as long as nothing
//! was flushed, until the block is evicted, and then the newer one, which is not. A commit before each such
//! write would prevent it. Instead the volumes are divided into 64 classes of regions, and each commit names
//! those in which such writes may follow it; after a loss of power their clean blocks count as dirty. So only
//! the first write into a class waits for a commit.

use super::Durability;
use crate::engine::directory::Directory;
use crate::engine::timeline::Moment;
use crate::metadata::region;
use nandscape_core::Extent;
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;

/// Commits after which a class that is not written to any more is given up; twice as many at most.
const ROUND: u32 = 16;

/// Which classes were written to past the cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Regions {
    now: u64,
    before: u64,
    /// As the last commit has it.
    committed: u64,
    commits: u32,
}

impl Regions {
    /// As a cache is found.
    pub const fn found(committed: u64) -> Self {
        Self { now: committed, before: 0, committed, commits: 0 }
    }

    /// What the next commit is to say.
    pub const fn next(&self) -> u64 {
        self.now | self.before
    }

    /// The commit is durable that said so.
    pub const fn commit(&mut self, said: u64) {
        self.committed = said;
        self.commits += 1;
        if self.commits >= ROUND {
            (self.before, self.now, self.commits) = (self.now, 0, 0);
        }
    }

    /// Nothing is in doubt any more.
    pub const fn forget(&mut self) {
        (self.now, self.before) = (0, 0);
    }
}

/// When a disk may get something that did not come from a dirty block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    After(Moment),
    /// After a commit that is made now.
    Commit,
}

impl Durability {
    /// Before the disk gets something that did not come from a dirty block whose entry is committed. Says
    /// when it may.
    pub fn guard<E: Eviction>(&mut self, directory: &Directory<E>, volume: u16, extent: Extent) -> Guard {
        if !self.rules.keeps_clean {
            return Guard::After(Moment::PAST);
        }
        let (first, end) = directory.shape.blocks(extent);
        let mut at_risk = 0;
        // Of blocks that leave with a commit under way the last one may still speak, until that one is
        // durable.
        let mut is_leaving = false;
        if end - first > u64::from(directory.slots.count()) {
            (at_risk, is_leaving) = (u64::MAX, true);
        } else {
            for key in (first..end).map(|block| BlockKey::new(volume, block)) {
                let slot = directory.find(key);
                // A slot that is not committed yet may be so by the time the command has changed it, with
                // what it held before.
                let place = self.reuse.place_of(key);
                if slot.is_some() || self.reuse.left.has(place) {
                    at_risk |= region(key);
                }
                is_leaving |= self.reuse.leaving.has(place);
            }
        }
        self.regions.now |= at_risk;
        if at_risk & !self.regions.committed != 0 {
            Guard::Commit
        } else if at_risk != 0 || is_leaving {
            // It is committed, but perhaps not yet durable.
            Guard::After(self.commits.last)
        } else {
            Guard::After(Moment::PAST)
        }
    }
}
