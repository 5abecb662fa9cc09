//! Whether the host keeps the model's pace.

use crate::meter::Times;
use crate::request::{Request, Served};
use std::time::{Duration, Instant};

/// An answer that comes later than this after the model's completion counts as late. A sleeping thread wakes
/// up some 60 us after it asked to, so a smaller span would call every answer late that was waited for.
pub const LATE: Duration = Duration::from_micros(200);

/// Lateness of answers on a paced clock.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// How late each answer was; 0 for those in time.
    pub times: Times,
    pub answers: u64,
    /// Later than [`LATE`].
    pub late: u64,
}

impl Pace {
    /// A batch has run, whose answers are due as `due` says, where that is known. Those that were due before
    /// are late by now; the others are told of by [`Pace::sent`].
    pub fn ready(&mut self, batch: &[Request<'_>], due: impl Fn(&Served) -> Option<Instant>, end: Instant) {
        for served in batch.iter().filter_map(|request| request.outcome.as_ref().ok()) {
            self.answers += 1;
            if let Some(due) = due(served).filter(|due| *due < end) {
                self.record(end - due);
            }
        }
    }

    /// An answer was sent.
    pub fn sent(&mut self, due: Instant, now: Instant) {
        self.record(now.saturating_duration_since(due));
    }

    fn record(&mut self, late: Duration) {
        self.times.record(late.as_nanos() as u64);
        self.late += u64::from(late > LATE);
    }
}
