//! What can be wrong with an image.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// An image that cannot be made or opened: the operating system refused something, a value is wrong, the
/// file is in use or no image. The text names the file and, where there is one, the offset.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ImageError(String);

/// What an image gives, or why not.
pub(crate) type Result<T, E = ImageError> = std::result::Result<T, E>;

impl ImageError {
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::unsuited(path, format!("{what}: {error}"))
    }

    pub(crate) fn unsuited(path: &Path, what: impl Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }

    pub(crate) fn corrupt(
        path: &Path,
        offset: u64,
        what: impl Display,
        found: impl Display,
        expected: impl Display,
    ) -> Self {
        Self::unsuited(path, format!("offset {offset}: {what} is {found}: expected {expected}"))
    }
}
