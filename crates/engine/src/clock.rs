//! The model's time while a stack is served.

use nandscape_core::SimTime;
use std::time::Instant;

/// How the model's time runs.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// As fast as the host can: a batch is issued when the one before it has completed in the model, so what the model says of
    /// latency is what a device would do whose client sends a batch at a time.
    Free {
        /// Completion of everything before.
        now: SimTime,
    },
    /// With real time: a request is issued when it really arrives, and should be answered when the model completes it.
    Paced {
        /// When the model's time was 0.
        start: Instant,
    },
}

impl Clock {
    /// Time runs with the requests.
    pub const fn free() -> Self {
        Self::Free { now: SimTime(0) }
    }

    /// Time runs with the real clock, from now.
    pub fn paced() -> Self {
        Self::Paced { start: Instant::now() }
    }

    /// The model's time at which a batch that arrives now is issued.
    pub fn issue(&self) -> SimTime {
        match self {
            Self::Free { now } => *now,
            Self::Paced { start } => SimTime(start.elapsed().as_nanos() as u64),
        }
    }

    /// A request completed in the model.
    pub fn completed(&mut self, at: SimTime) {
        if let Self::Free { now } = self {
            *now = (*now).max(at);
        }
    }
}
