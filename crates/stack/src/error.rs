//! Why a run gave no result.

use crate::keys::ConfigError;
use nandscape_core::{StateError, TraceError};
use nandscape_jobs::JobError;
use nandscape_sim::jobs::PlanError;
use nandscape_sim::{JobsError, ReplayError};
use std::path::PathBuf;

/// A run that gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("{label}: {error}")]
    Replay { label: String, error: ReplayError },
    #[error(
        "workload '{workload}' reaches byte {end} ({end_text}), but {ftl} offers only {capacity} bytes ({capacity_text}) on this device; \
         use a larger device, a lower ftl.op, or --remap dense"
    )]
    TooLarge {
        workload: String,
        end: u64,
        end_text: String,
        ftl: String,
        capacity: u64,
        capacity_text: String,
    },
    #[error("{0}")]
    Jobs(String),
    #[error("standard input ('-') can be read once: expected it as one workload, with one seed")]
    StdinTwice,
    #[error("{}: {error}", file.display())]
    State { file: PathBuf, error: StateError },
    #[error("cannot start {jobs} jobs: {message}")]
    Threads { jobs: usize, message: String },
    #[error("{label}: {message}")]
    Failed {
        label: String,
        /// The error, with the failing request and the numbers.
        message: String,
    },
    #[error("interrupted")]
    Interrupted,
}

impl From<JobError> for RunError {
    fn from(error: JobError) -> Self {
        Self::Jobs(error.to_string())
    }
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> Self {
        Self::Jobs(error.to_string())
    }
}

impl From<JobsError> for RunError {
    fn from(error: JobsError) -> Self {
        match error {
            JobsError::Recording(error) => Self::Trace(error),
            error => Self::Jobs(error.to_string()),
        }
    }
}
