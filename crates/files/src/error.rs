//! Why a file cannot be a store.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// A file or block device that cannot be made or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Another process, or the kernel, uses it.
    #[error("{}: in use by {by}", path.display())]
    InUse {
        /// Path.
        path: PathBuf,
        /// By whom.
        by: &'static str,
    },
    /// It is not what was expected, or the operating system refused something: with the path and why.
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
