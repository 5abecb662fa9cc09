//! Why a file cannot be a store.

use std::io;
use std::path::{Path, PathBuf};

/// A file or block device that cannot be made or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused something.
    #[error("{}: {what}: {source}", path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// Another process, or the kernel, uses it.
    #[error("{}: in use by {by}", path.display())]
    InUse {
        /// Path.
        path: PathBuf,
        /// By whom.
        by: &'static str,
    },
    /// Neither a file nor a block device.
    #[error("{}: {found}: expected a file or a block device", path.display())]
    Kind {
        /// Path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// It has not the bytes that it should have.
    #[error("{}: {bytes} bytes: expected {expected}", path.display())]
    Size {
        /// Path.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What would do.
        expected: String,
    },
}

impl FileError {
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }
}
