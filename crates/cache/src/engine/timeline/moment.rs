//! Moments: when something is done, and what waits for it.

use nandscape_core::{BlockCommand, Op, SimTime, StoreError, Token};
use nandscape_policies::BlockKey;

/// Bits of the generation of a step: a token keeps one bit for itself.
pub const GENERATIONS: u32 = 1 << 31;

/// A step that was put into a [`Slab`]. Once the step has ended it says nothing more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepId {
    pub index: u32,
    pub generation: u32,
}

impl StepId {
    const MARK: u64 = 1 << 63;

    /// As a token, never that of a time.
    pub const fn to_token(self) -> u64 {
        Self::MARK | (self.generation as u64) << 32 | self.index as u64
    }

    /// The step of a token, if it is one.
    pub const fn of_token(token: u64) -> Option<Self> {
        if token & Self::MARK == 0 {
            return None;
        }
        Some(Self { index: token as u32, generation: (token >> 32) as u32 & (GENERATIONS - 1) })
    }
}

/// When something is done: at a time, or with a step of which nobody knows yet. As a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment(pub u64);

impl Moment {
    /// Before anything else.
    pub const PAST: Self = Self(0);

    /// When an answer is given.
    pub const fn of(token: Token) -> Self {
        Self(token.0)
    }

    pub const fn at(time: SimTime) -> Self {
        Self(time.0)
    }

    pub const fn step(id: StepId) -> Self {
        Self(id.to_token())
    }
}

/// The moment at which several things are done, of which more may come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gather {
    /// The latest of those whose time is known.
    pub at: SimTime,
    /// The others: one of them, or a join of them.
    pub step: Option<StepId>,
    /// Whether `step` is a join that nobody else knows.
    pub is_open: bool,
}

/// What has to wait for a moment: steps on a slot, or disk accesses to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u64);

impl Place {
    const SLOT: u64 = 1 << 63;
    const TAKING: u64 = 1 << 62;

    pub const fn slot(slot: u32) -> Self {
        Self(Self::SLOT | slot as u64)
    }

    /// A slot for another block than the one that it has.
    pub const fn taking(slot: u32) -> Self {
        Self(Self::TAKING | slot as u64)
    }

    pub const fn block(key: BlockKey) -> Self {
        Self(key.0)
    }
}

/// What the engine is to be told of when a moment is past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The answer with this number of the meter's is given.
    Answer(u32),
    /// So many blocks that cleaning has written are on the disk.
    Cleaned(u32),
    /// A commit is done for which others wait that are to be made as one.
    Committed,
    /// A host's read or write of the fast store that began at this time has ended.
    Served(Op, SimTime),
}

/// A step that a store refused when it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateError {
    /// The volume whose disk it was; `None` for the fast store.
    pub volume: Option<u16>,
    /// What was to be done there.
    pub command: BlockCommand,
    /// When.
    pub at: SimTime,
    /// Why not.
    pub error: StoreError,
}
