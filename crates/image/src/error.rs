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
    /// Another process serves the image.
    #[error("{}: the image is in use by another process", path.display())]
    Locked {
        /// File.
        path: PathBuf,
    },
    /// No image at all.
    #[error("{}: offset 0: not an image of nandscape", path.display())]
    NoImage {
        /// File.
        path: PathBuf,
    },
    /// A snapshot that was cut short.
    #[error("{}: an unfinished snapshot: expected a finished one; delete this file", path.display())]
    Unfinished {
        /// File.
        path: PathBuf,
    },
    /// A part of the tables could not be read while they were in use.
    #[error(
        "{}: a part of the tables could not be read or written: the file was truncated, or its file system is full or failed",
        path.display()
    )]
    TablesLost {
        /// File.
        path: PathBuf,
    },
    /// A newer program made it.
    #[error(
        "{}: offset 16: the image has format version {version}: expected version {} or earlier; a newer nandscape made it",
        path.display(), crate::layout::VERSION
    )]
    Version {
        /// File.
        path: PathBuf,
        /// Its version.
        version: u32,
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
    /// The image is to be made of something that an image cannot hold.
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
