//! Why a run gave no result.

use crate::keys::ConfigError;
use nandscape_core::TraceError;
use nandscape_jobs::JobError;
use nandscape_sim::{JobsError, ReplayError};

/// A run that gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The workload is wrong.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The replay could not run.
    #[error("{label}: {error}")]
    Replay {
        /// Which run.
        label: String,
        /// Why.
        error: ReplayError,
    },
    /// The workload does not fit.
    #[error(
        "workload '{workload}' reaches byte {end} ({end_text}), but {ftl} offers only {capacity} bytes ({capacity_text}) on this device; \
         use a larger device, a lower ftl.op, or --remap dense"
    )]
    TooLarge {
        /// Which workload.
        workload: String,
        /// One past its last byte.
        end: u64,
        /// The same for people.
        end_text: String,
        /// Which translation layer.
        ftl: String,
        /// Its logical capacity.
        capacity: u64,
        /// The same for people.
        capacity_text: String,
    },
    /// The job file is wrong, or does not fit the device.
    #[error("{0}")]
    Jobs(String),
    /// Standard input can be read once.
    #[error("standard input ('-') is given as more than one workload: expected it once")]
    StdinTwice,
    /// Threads could not be started.
    #[error("cannot start {jobs} jobs: {message}")]
    Threads {
        /// How many.
        jobs: usize,
        /// Why.
        message: String,
    },
    /// A run of a published experiment ended with an error, so its counters are not those of the whole
    /// workload.
    #[error("{label}: {message}")]
    Failed {
        /// Which run.
        label: String,
        /// The error, with the failing request and the numbers.
        message: String,
    },
    /// Stopped from outside before there was a result.
    #[error("interrupted")]
    Interrupted,
}

impl From<JobError> for RunError {
    fn from(error: JobError) -> Self {
        Self::Jobs(error.to_string())
    }
}

impl From<JobsError> for RunError {
    fn from(error: JobsError) -> Self {
        Self::Jobs(error.to_string())
    }
}
