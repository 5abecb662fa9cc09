//! Sets of operations, and what must be on the flash before what.

use nandscape_core::{BlockId, Oob, OutOfBand, Ppn};
use nandscape_media::{Breakable as _, Medium, Nand};
use std::sync::Arc;

/// A set of operation numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpSet(Arc<Vec<u64>>);

impl OpSet {
    /// Whether an operation is in it.
    pub fn contains(&self, op: usize) -> bool {
        self.0.get(op / 64).is_some_and(|word| word >> (op % 64) & 1 == 1)
    }

    /// Adds an operation.
    pub fn insert(&mut self, op: usize) {
        let words = Arc::make_mut(&mut self.0);
        if words.len() <= op / 64 {
            words.resize(op / 64 + 1, 0);
        }
        words[op / 64] |= 1 << (op % 64);
    }

    /// Adds all of another set.
    pub fn unite(&mut self, other: &Self) {
        if other.is_subset(self) {
            return;
        }
        let words = Arc::make_mut(&mut self.0);
        if words.len() < other.0.len() {
            words.resize(other.0.len(), 0);
        }
        for (word, more) in words.iter_mut().zip(other.0.iter()) {
            *word |= more;
        }
    }

    /// Whether every operation of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        let theirs = other.0.iter().copied().chain(std::iter::repeat(0));
        self.0.iter().zip(theirs).all(|(mine, theirs)| mine & !theirs == 0)
    }
}

#[derive(Clone, Debug)]
pub enum Change<O = Oob> {
    /// A page was programmed.
    Program {
        page: Ppn,
        oob: O,
        data: Option<Arc<[u8]>>,
    },
    Erase {
        block: BlockId,
    },
    /// A program failed and left a page that cannot be read.
    FailedProgram {
        page: Ppn,
    },
    /// An erase failed and left a block that cannot be read.
    FailedErase {
        block: BlockId,
    },
    MarkBad {
        block: BlockId,
    },
}

/// A change with what it stands on.
#[derive(Clone, Debug)]
pub struct Operation<O = Oob> {
    pub change: Change<O>,
    /// Every operation that is on the flash whenever this one is: what it waited for, and what was done to
    /// its block before.
    pub needs: OpSet,
}

impl<O: OutOfBand> Operation<O> {
    pub const fn is_erase(&self) -> bool {
        matches!(self.change, Change::Erase { .. })
    }

    pub fn apply(&self, nand: &mut Nand<O>) {
        let result = match &self.change {
            Change::Program { page, oob, data } => nand.program(*page, *oob, data.as_deref()),
            Change::Erase { block } => nand.erase(*block),
            Change::FailedProgram { page } => nand.tear_program(*page),
            Change::FailedErase { block } => {
                nand.tear_erase(*block);
                Ok(())
            }
            Change::MarkBad { block } => {
                nand.mark_bad(*block);
                Ok(())
            }
        };
        result.unwrap_or_else(|error| panic!("{self} was possible when it was recorded: {error}"));
    }

    /// Does half of it.
    pub fn tear(&self, nand: &mut Nand<O>) {
        match &self.change {
            Change::Program { page, .. } | Change::FailedProgram { page } => nand
                .tear_program(*page)
                .unwrap_or_else(|error| panic!("{self} was possible when it was recorded: {error}")),
            Change::Erase { block } | Change::FailedErase { block } => nand.tear_erase(*block),
            // A mark is there or not.
            Change::MarkBad { .. } => {}
        }
    }
}

impl<O: OutOfBand> std::fmt::Display for Operation<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.change {
            Change::Program { page, oob, .. } => write!(f, "program of page {} ({oob:?})", page.0),
            Change::Erase { block } => write!(f, "erase of block {}", block.0),
            Change::FailedProgram { page } => write!(f, "failing program of page {}", page.0),
            Change::FailedErase { block } => write!(f, "failing erase of block {}", block.0),
            Change::MarkBad { block } => write!(f, "bad mark of block {}", block.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ops: &[usize]) -> OpSet {
        let mut set = OpSet::default();
        for op in ops {
            set.insert(*op);
        }
        set
    }

    #[test]
    fn sets_grow_and_compare_across_words() {
        let mut a = set(&[1, 70]);
        assert!(a.contains(70) && !a.contains(71) && !a.contains(1000));
        assert!(set(&[1]).is_subset(&a) && !set(&[1, 200]).is_subset(&a));
        a.unite(&set(&[200]));
        assert!(set(&[1, 200]).is_subset(&a));
    }
}
