//! Errors as the protocol numbers them: the one table from ours.

use nandscape_core::{FlashError, FtlError, NamespaceError, StoreError};

/// An error number of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// The export or the device takes no writes.
    Perm = 1,
    /// The medium lost the data, or refused.
    Io = 5,
    /// The request makes no sense here.
    Inval = 22,
    /// The device is full, or the write reaches past its end.
    NoSpc = 28,
    /// Not done by this export, or not quickly.
    NotSup = 95,
    /// The server is stopping.
    Shutdown = 108,
}

impl From<&NamespaceError> for Errno {
    fn from(error: &NamespaceError) -> Self {
        match error {
            NamespaceError::Ftl(FtlError::DeviceFull { .. }) => Self::NoSpc,
            NamespaceError::Ftl(FtlError::OutOfRange { .. }) | NamespaceError::Refused { .. } => Self::Inval,
            NamespaceError::Ftl(FtlError::ReadOnly { .. } | FtlError::Flash(FlashError::ReadOnly { .. }))
            | NamespaceError::Store { source: StoreError::ReadOnly { .. }, .. } => Self::Perm,
            NamespaceError::NotSupported { .. } => Self::NotSup,
            // Whatever else a medium refuses, the data is not there or not written.
            _ => Self::Io,
        }
    }
}

/// A request that is answered with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its number.
    pub errno: Errno,
    /// Its words, for structured replies.
    pub message: std::borrow::Cow<'static, str>,
}

impl Refusal {
    pub(crate) const fn new(errno: Errno, message: &'static str) -> Self {
        Self { errno, message: std::borrow::Cow::Borrowed(message) }
    }
}

impl From<&NamespaceError> for Refusal {
    fn from(error: &NamespaceError) -> Self {
        Self { errno: error.into(), message: error.to_string().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::{Extent, Op, Ppn};

    #[test]
    fn every_kind_of_error_has_its_number() {
        let full = FtlError::DeviceFull {
            reason: "",
            needed_pages: 0,
            free_pages: 0,
            live_pages: 0,
            total_pages: 0,
        };
        let outside = FtlError::OutOfRange { extent: Extent::new(0, 1), capacity_bytes: 0 };
        let store =
            |source| NamespaceError::Store { place: "disk".to_owned(), extent: Extent::new(0, 1), source };
        let table: [(NamespaceError, u32); 9] = [
            (store(StoreError::ReadOnly { detail: String::new() }), 1),
            (store(StoreError::Io { offset: 0, len: 1, detail: String::new() }), 5),
            (NamespaceError::Refused { extent: Extent::new(0, 1), expected: String::new() }, 22),
            (full.into(), 28),
            (outside.into(), 22),
            (FtlError::ReadOnly { reason: "" }.into(), 1),
            (FtlError::Flash(FlashError::ReadOnly { reason: "" }).into(), 1),
            (FtlError::Flash(FlashError::Uncorrectable { page: Ppn(0) }).into(), 5),
            (NamespaceError::NotSupported { op: Op::Trim }, 95),
        ];
        for (error, number) in table {
            assert_eq!(Errno::from(&error) as u32, number, "{error}");
        }
    }
}
