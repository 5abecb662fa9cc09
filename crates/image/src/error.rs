//! What can be wrong with an image.

use std::path::{Path, PathBuf};

/// An image that cannot be made or opened. Names the file and, where there is one, the offset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The operating system refused something.
    #[error("{}: {what}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
    /// A value is wrong.
    #[error("{}: offset {offset}: {what} is {found}: expected {expected}", path.display())]
    Corrupt {
        /// File.
        path: PathBuf,
        /// Byte of the file.
        offset: u64,
        /// What stands there.
        what: String,
        /// What was found.
        found: String,
        /// What would do.
        expected: String,
    },
    /// The file is in use, is no image or none that can be read, or what is asked of it cannot be.
    #[error("{}: {what}", path.display())]
    Unsuited {
        /// File.
        path: PathBuf,
        /// Why.
        what: String,
    },
}

impl ImageError {
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }

    pub(crate) fn unsuited(path: &Path, what: impl Into<String>) -> Self {
        Self::Unsuited { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn corrupt(
        path: &Path,
        offset: u64,
        what: impl Into<String>,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            offset,
            what: what.into(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}
