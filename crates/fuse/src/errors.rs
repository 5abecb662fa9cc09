//! What goes wrong: in a request, as an error number; around the mount, as a message.

use nandscape_core::{Command, ErrorClass, NamespaceError, ObjectError};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// The error number that a client gets for an error of the stack; the one table from classes to numbers.
///
/// | class | number | what a file system makes of it |
/// |---|---|---|
/// | [`ErrorClass::Medium`] | `EIO` | fails the request |
/// | [`ErrorClass::Full`] | `ENOSPC` | fails the write, goes on |
/// | [`ErrorClass::ReadOnly`] | `EROFS` | stops writing |
/// | [`ErrorClass::Invalid`] | `EINVAL` | |
/// | [`ErrorClass::Unsupported`] | `EOPNOTSUPP` | does without |
pub const fn errno(class: ErrorClass) -> i32 {
    match class {
        ErrorClass::Medium => libc::EIO,
        ErrorClass::Full => libc::ENOSPC,
        ErrorClass::ReadOnly => libc::EROFS,
        ErrorClass::Invalid => libc::EINVAL,
        ErrorClass::Unsupported => libc::EOPNOTSUPP,
    }
}

/// The error number of a command's error: that of its class, but for the invalid ones that file systems have
/// a number of their own for.
pub(crate) fn errno_of(command: &Command, error: &NamespaceError) -> i32 {
    match error {
        NamespaceError::Object(ObjectError::TooLarge) => libc::EFBIG,
        _ => errno(ErrorClass::of(command, error)),
    }
}

/// A mount that cannot be made or undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum MountError {
    #[error("{0}")]
    Refused(String),
    #[error("--mount {}: expected a directory that is not in use, but nandscape serves it already", dir.display())]
    Served { dir: PathBuf },
    #[error("cannot mount {}: {error}{}", dir.display(), hint(error))]
    Mount { dir: PathBuf, error: io::Error },
    #[error("{} is busy: {}", dir.display(), if users.is_empty() { "by a process that cannot be seen from here".to_owned() } else { users.join(", ") })]
    Busy {
        dir: PathBuf,
        /// Who, as far as that can be found out: mounted loop devices, processes.
        users: Vec<String>,
    },
}

impl MountError {
    pub(crate) fn unmount(dir: &Path, error: impl Display) -> Self {
        Self::Refused(format!("cannot unmount {}: {error}", dir.display()))
    }
}

/// What to do about a refused mount.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (expected /dev/fuse: is the kernel module 'fuse' loaded?)",
        io::ErrorKind::PermissionDenied => " (expected root, or fusermount3 from the package fuse3)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_errors_has_its_number() {
        let wanted = [libc::EIO, libc::ENOSPC, libc::EROFS, libc::EINVAL, libc::EOPNOTSUPP];
        assert_eq!(ErrorClass::ALL.map(errno), wanted);
    }
}
