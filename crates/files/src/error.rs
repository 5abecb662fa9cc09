//! Why a file cannot be a store.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// A file or block device that cannot be made or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FileError {
    #[error("{}: in use by {by}", path.display())]
    InUse { path: PathBuf, by: &'static str },
    #[error("{0}")]
    Refused(String),
}

impl FileError {
    pub(crate) fn refused(path: &Path, detail: impl Display) -> Self {
        Self::Refused(format!("{}: {detail}", path.display()))
    }

    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::refused(path, format!("{what}: {error}"))
    }
}
