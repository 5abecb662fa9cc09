//! Why a sweep gave no results.

use nandscape_report::ReportError;
use nandscape_stack::RunError;

/// A sweep that cannot be run, or not go on. A run that fails is no error of the sweep.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SweepError {
    #[error("{path}: {message}")]
    Io { path: String, message: String },
    #[error("{path}: {message}")]
    Syntax { path: String, message: String },
    #[error("{path}: {key}: {message}")]
    Key {
        path: String,
        key: String,
        /// What is wrong and what was expected.
        message: String,
    },
    #[error("{folder}: {message}")]
    Folder { folder: String, message: String },
    #[error(transparent)]
    Write(#[from] ReportError),
    #[error(transparent)]
    Run(#[from] RunError),
}
