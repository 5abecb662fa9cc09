//! How the model's time runs while a stack is served.

/// The rule by which a request is given the model's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// As fast as the host can. The model is a closed loop, as in a replay: `depth` requests are outstanding,
    /// and the next is issued the moment one of them completes *in the model*. What the model says is
    /// then a function of the requests and their order alone, not of how the host happened to schedule
    /// its threads. Two things are waited for as real clients wait: a flush is issued when everything
    /// before it has completed, and what follows it when it has. While no request comes for [`crate::QUIET`]
    /// of real time, the model's time goes on with the real clock, so that background work is done as it
    /// would be.
    Free {
        /// Outstanding requests, from 1.
        depth: u32,
    },
    /// With real time: a request is issued when it really arrives, and should be answered when the model
    /// completes it.
    Paced,
    /// With real time, and answers are given as soon as the host has them. For stores that take real time
    /// themselves, such as files: what ages and rates depend on is the time that really passes.
    Real,
}

/// Outstanding requests of a free clock where nothing else is said, as in a replay.
pub const DEFAULT_DEPTH: u32 = 32;

impl Clock {
    /// Time runs with the requests, [`DEFAULT_DEPTH`] of them outstanding.
    pub const fn free() -> Self {
        Self::Free { depth: DEFAULT_DEPTH }
    }

    /// Whether the model's time is the real one.
    pub(crate) const fn is_real(self) -> bool {
        matches!(self, Self::Paced | Self::Real)
    }
}
