//! What the engine is told of steps.

use super::moment::{LateError, Notice};
use nandscape_core::SimTime;
use std::collections::VecDeque;

/// What has happened since the engine was last told.
#[derive(Default)]
pub struct News {
    /// Slots whose filling has begun.
    pub filled: Vec<u32>,
    /// Errors at starts.
    pub errors: Vec<LateError>,
    /// What the engine is to be told of, and when it was.
    noticed: VecDeque<(Notice, SimTime)>,
    /// Among these is one that lets the engine begin something, so that time must not go on before.
    pub must_stop: bool,
}

impl News {
    pub fn tell(&mut self, notice: Notice, at: SimTime) {
        self.noticed.push_back((notice, at));
        self.must_stop |= matches!(notice, Notice::Cleaned(_) | Notice::Committed);
    }

    /// What the engine is to be told of.
    pub fn take_noticed(&mut self) -> Option<(Notice, SimTime)> {
        self.must_stop = false;
        self.noticed.pop_front()
    }

    /// Whether the engine is to be told of something.
    #[inline]
    pub fn has_noticed(&self) -> bool {
        !self.noticed.is_empty()
    }

    /// Slots whose filling has begun since they were last asked for.
    pub fn take_filled(&mut self) -> Option<u32> {
        self.filled.pop()
    }

    /// Errors at starts since they were last asked for.
    pub fn take_errors(&mut self) -> std::vec::Drain<'_, LateError> {
        self.errors.drain(..)
    }

    pub const fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.noticed.capacity() * size_of::<(Notice, SimTime)>()) as u64
    }
}
