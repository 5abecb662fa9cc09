//! What becomes of errors that a store gives only when a step is started, after the command that wanted it
//! was taken.
//!
//! A store below which state and time are one (flash without bytes) refuses a step when its time has come.
//! Whatever waits for that step ends then, without having been done; so an answer that waits for it is given,
//! and is not true. The error is kept: the next flush of any volume fails with it, as the next `fsync` does
//! after an error in the background.

use super::timeline::LateError;
use super::{Cache, CacheError};
use nandscape_core::{BlockCommand, Op};
use nandscape_policies::eviction::Eviction;

impl<E> Cache<E> {
    /// The first of the errors at starts that no flush has told yet.
    pub const fn late_error(&self) -> Option<&LateError> {
        self.late_error.as_ref()
    }
}

impl<E: Eviction> Cache<E> {
    /// Some steps were refused when they were started.
    #[cold]
    pub(super) fn note_late_errors(&mut self) {
        let is_bypassed = self.failures.bypassed.is_some();
        for error in self.timeline.news.take_errors().filter(|error| error.volume.is_some() || !is_bypassed) {
            if error.volume.is_some() && error.command.op == Op::Flush {
                self.durability.late.distrust();
            }
            self.late_error.get_or_insert(error);
        }
    }

    /// An error of background work that no command asked for; kept as those are.
    #[cold]
    pub(super) fn keep_error(&mut self, error: CacheError) {
        let (volume, error) = match error {
            CacheError::Fast(error) => (None, error),
            CacheError::Slow { volume, source } => (Some(volume), source),
            error => unreachable!("only a store fails without a command: {error}"),
        };
        let command = BlockCommand::FLUSH;
        self.late_error.get_or_insert(LateError { volume, command, at: self.timeline.now(), error });
    }

    pub(super) fn take_late_error(&mut self) -> Option<CacheError> {
        let LateError { volume, error, .. } = self.late_error.take()?;
        Some(match volume {
            None => CacheError::Fast(error),
            Some(volume) => CacheError::Slow { volume, source: error },
        })
    }
}
