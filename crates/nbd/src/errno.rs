//! Errors as the protocol numbers them: the one table from the classes of ours.

use nandscape_core::{Command, ErrorClass, NamespaceError};

/// An error number of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// The export or the device takes no writes.
    Perm = 1,
    /// The medium lost the data, or refused.
    Io = 5,
    /// There is no memory for the request.
    NoMem = 12,
    /// The request makes no sense here.
    Inval = 22,
    /// The device is full, or the write reaches past its end.
    NoSpc = 28,
    /// Not done by this export, or not quickly.
    NotSup = 95,
    /// The server is stopping.
    Shutdown = 108,
}

impl From<ErrorClass> for Errno {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Medium => Self::Io,
            ErrorClass::Full => Self::NoSpc,
            ErrorClass::ReadOnly => Self::Perm,
            ErrorClass::Invalid => Self::Inval,
            ErrorClass::Unsupported => Self::NotSup,
        }
    }
}

/// A request that is answered with an error; the message is for structured replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub errno: Errno,
    pub message: std::borrow::Cow<'static, str>,
}

impl Refusal {
    pub(crate) const fn new(errno: Errno, message: &'static str) -> Self {
        Self { errno, message: std::borrow::Cow::Borrowed(message) }
    }

    pub(crate) fn of(command: &Command, error: &NamespaceError) -> Self {
        Self { errno: ErrorClass::of(command, error).into(), message: error.to_string().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_errors_has_its_number() {
        let numbers = ErrorClass::ALL.map(|class| Errno::from(class) as u32);
        assert_eq!(numbers, [5, 28, 1, 22, 95]);
    }
}
