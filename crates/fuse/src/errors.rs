//! What goes wrong: in a request, as an error number; around the mount, as a message.

use nandscape_core::{FlashError, FtlError, NamespaceError, StoreError};
use std::io;
use std::path::PathBuf;

/// The error number that a client gets for an error of the stack; the one table of both.
///
/// | error | number | what a file system makes of it |
/// |---|---|---|
/// | no room that could be collected | `ENOSPC` | fails the write, goes on |
/// | blocks have failed until too few were left, or the device's own metadata has no room | `EROFS` | stops writing |
/// | outside the namespace, or not whole blocks of it | `EINVAL` | |
/// | not a command of this namespace | `EOPNOTSUPP` | does without |
/// | uncorrectable read, failed program or erase, anything else of the medium | `EIO` | fails the request |
pub const fn errno(error: &NamespaceError) -> i32 {
    match error {
        NamespaceError::NotSupported { .. } => libc::EOPNOTSUPP,
        NamespaceError::Ftl(FtlError::DeviceFull { .. }) => libc::ENOSPC,
        NamespaceError::Ftl(FtlError::ReadOnly { .. } | FtlError::Flash(FlashError::ReadOnly { .. }))
        | NamespaceError::Store { source: StoreError::ReadOnly { .. }, .. } => libc::EROFS,
        NamespaceError::Ftl(FtlError::OutOfRange { .. }) | NamespaceError::Refused { .. } => libc::EINVAL,
        _ => libc::EIO,
    }
}

/// A mount that cannot be made or undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The name of a namespace cannot be a file's.
    #[error(
        "namespace '{name}' cannot be a file: expected a name without '/' that is neither empty, '.' nor '..'"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Something is wrong with the directory.
    #[error("--mount {}: {error}", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The directory is served already.
    #[error("--mount {}: expected a directory that is not in use, but nandscape serves it already", dir.display())]
    Served {
        /// The directory.
        dir: PathBuf,
    },
    /// FUSE refuses the mount.
    #[error("cannot mount {}: {error}{}", dir.display(), hint(error))]
    Mount {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Somebody uses the mount.
    #[error("{} is busy: {}", dir.display(), if users.is_empty() { "by a process that cannot be seen from here".to_owned() } else { users.join(", ") })]
    Busy {
        /// The directory.
        dir: PathBuf,
        /// Who, as far as that can be found out: mounted loop devices, processes.
        users: Vec<String>,
    },
    /// The mount cannot be undone for another reason.
    #[error("cannot unmount {}: {error}", dir.display())]
    Unmount {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A loop device of an earlier server is in use.
    #[error(
        "{} of an earlier server on {} is still in use by {}: unmount that first",
        device.display(),
        dir.display(),
        users.join(", ")
    )]
    Leftover {
        /// The loop device.
        device: PathBuf,
        /// The directory.
        dir: PathBuf,
        /// Who uses it.
        users: Vec<String>,
    },
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
    use nandscape_core::{Extent, Op, Ppn};

    #[test]
    fn every_error_of_the_stack_has_the_number_of_its_meaning() {
        let full = FtlError::DeviceFull {
            reason: "test",
            needed_pages: 1,
            free_pages: 0,
            live_pages: 1,
            total_pages: 1,
        };
        let outside = FtlError::OutOfRange { extent: Extent::new(0, 1), capacity_bytes: 0 };
        let store =
            |source| NamespaceError::Store { place: "disk".to_owned(), extent: Extent::new(0, 1), source };
        let cases: [(NamespaceError, i32); 10] = [
            (store(StoreError::ReadOnly { detail: String::new() }), libc::EROFS),
            (store(StoreError::Gone { detail: String::new() }), libc::EIO),
            (NamespaceError::Refused { extent: Extent::new(0, 1), expected: String::new() }, libc::EINVAL),
            (full.into(), libc::ENOSPC),
            (outside.into(), libc::EINVAL),
            (FtlError::ReadOnly { reason: "test" }.into(), libc::EROFS),
            (FtlError::Flash(FlashError::ReadOnly { reason: "test" }).into(), libc::EROFS),
            (FtlError::Flash(FlashError::Uncorrectable { page: Ppn(1) }).into(), libc::EIO),
            (FtlError::Flash(FlashError::ProgramFailed { page: Ppn(1) }).into(), libc::EIO),
            (NamespaceError::NotSupported { op: Op::Flush }, libc::EOPNOTSUPP),
        ];
        for (error, number) in cases {
            assert_eq!(errno(&error), number, "{error}");
        }
    }
}
