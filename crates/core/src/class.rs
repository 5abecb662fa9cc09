//! What an error means to whoever asked: the one classification from which every server takes its error
//! numbers.

use crate::command::Command;
use crate::error::{NamespaceError, StoreError};
use crate::flash_error::{FlashError, InjectedFault, JournalRefusal};
use crate::ftl::FtlError;
use crate::zone::ZoneError;

/// What an error means to a client. Each server has one table from these to its protocol's numbers, and
/// looks at no error itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The bytes cannot be read, were not written, or are not durable.
    Medium,
    /// There is no room for the write.
    Full,
    /// The device takes no more writes.
    ReadOnly,
    /// The request makes no sense here: its extent, or the length of its payload.
    Invalid,
    /// The namespace does not support the command.
    Unsupported,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [Self; 5] = [Self::Medium, Self::Full, Self::ReadOnly, Self::Invalid, Self::Unsupported];

    /// The class of an error with which a command failed.
    ///
    /// A read or a flush needs no room of its host and changes nothing that it could be refused for:
    /// whatever made it fail, bytes that were acknowledged cannot be read, or are not durable.
    pub const fn of(command: &Command, error: &NamespaceError) -> Self {
        match (command.writes_nothing(), Self::of_error(error)) {
            (true, Self::Full | Self::ReadOnly) => Self::Medium,
            (_, class) => class,
        }
    }

    // No arm catches all: a new kind of error is classified where it is added.
    const fn of_error(error: &NamespaceError) -> Self {
        match error {
            NamespaceError::Ftl(FtlError::DeviceFull { .. }) => Self::Full,
            NamespaceError::Ftl(FtlError::OutOfRange { .. }) | NamespaceError::Refused { .. } => {
                Self::Invalid
            }
            NamespaceError::Ftl(FtlError::ReadOnly { .. }) => Self::ReadOnly,
            NamespaceError::Ftl(FtlError::Flash(error)) => Self::of_flash(error),
            NamespaceError::Store { source, .. } => Self::of_store(source),
            NamespaceError::Lost { .. } | NamespaceError::Zone(ZoneError::ReadOnly | ZoneError::Offline) => {
                Self::Medium
            }
            NamespaceError::Vector(error) if error.is_of_medium() => Self::Medium,
            NamespaceError::Object(error) if error.is_full() => Self::Full,
            NamespaceError::Zone(_) | NamespaceError::Vector(_) | NamespaceError::Object(_) => Self::Invalid,
            NamespaceError::NotSupported { .. } => Self::Unsupported,
        }
    }

    const fn of_flash(error: &FlashError) -> Self {
        match error {
            FlashError::ReadOnly { .. } => Self::ReadOnly,
            FlashError::Uncorrectable { .. }
            | FlashError::Damaged { .. }
            | FlashError::ProgramFailed { .. }
            | FlashError::EraseFailed { .. }
            | FlashError::WornOut { .. }
            | FlashError::BadBlock { .. }
            | FlashError::NotErased { .. }
            | FlashError::OutOfOrder { .. }
            | FlashError::Erased { .. }
            | FlashError::Journal(JournalRefusal::HoldsData { .. } | JournalRefusal::NoCopy { .. })
            | FlashError::Injected(InjectedFault::PowerLost { .. })
            | FlashError::OutOfRange { .. } => Self::Medium,
        }
    }

    /// A store is asked by what lies above it, not by the client: an extent that it refuses is no mistake of
    /// the client's.
    const fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::ReadOnly { .. } => Self::ReadOnly,
            StoreError::OutOfRange { .. }
            | StoreError::Unaligned { .. }
            | StoreError::Io { .. }
            | StoreError::Gone { .. } => Self::Medium,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::{BlockId, Extent, Lpn, Ppn};
    use crate::command::{BlockCommand, Op};
    use crate::ftl::Hint;
    use crate::object::ObjectError;
    use crate::vector::VectorError;

    fn extent() -> Extent {
        Extent::new(0, 1)
    }

    /// Every kind of error that can reach a client, and its class for a write.
    fn table() -> Vec<(NamespaceError, ErrorClass)> {
        let extent = Extent::new(0, 1);
        let (page, block, detail) = (Ppn(0), BlockId(0), String::new);
        let store = |source| NamespaceError::Store { place: "disk".to_owned(), extent, source };
        let flash = |error| NamespaceError::from(FtlError::Flash(error));
        let full = FtlError::DeviceFull {
            reason: "",
            needed_pages: 1,
            free_pages: 0,
            live_pages: 1,
            total_pages: 1,
        };
        let mut table = vec![
            (full.into(), ErrorClass::Full),
            (FtlError::OutOfRange { extent, capacity_bytes: 0 }.into(), ErrorClass::Invalid),
            (FtlError::ReadOnly { reason: "" }.into(), ErrorClass::ReadOnly),
            (flash(FlashError::ReadOnly { reason: "" }), ErrorClass::ReadOnly),
            (store(StoreError::ReadOnly { detail: detail() }), ErrorClass::ReadOnly),
            (NamespaceError::Refused { extent, expected: detail() }, ErrorClass::Invalid),
            (NamespaceError::NotSupported { command: "trim" }, ErrorClass::Unsupported),
            (NamespaceError::Lost { extent, lost: extent }, ErrorClass::Medium),
        ];
        table.extend(ZoneError::ALL.map(|error| {
            let is_failed = matches!(error, ZoneError::ReadOnly | ZoneError::Offline);
            (error.into(), if is_failed { ErrorClass::Medium } else { ErrorClass::Invalid })
        }));
        table.extend(VectorError::ALL.map(|error| {
            (error.into(), if error.is_of_medium() { ErrorClass::Medium } else { ErrorClass::Invalid })
        }));
        table.extend(ObjectError::ALL.map(|error| {
            (error.into(), if error.is_full() { ErrorClass::Full } else { ErrorClass::Invalid })
        }));
        let flashes = [
            FlashError::Uncorrectable { page },
            FlashError::Damaged { page },
            FlashError::ProgramFailed { page },
            FlashError::EraseFailed { block },
            FlashError::WornOut { block, endurance: 1 },
            FlashError::BadBlock { block },
            FlashError::NotErased { page },
            FlashError::OutOfOrder { page, expected: 0 },
            FlashError::Erased { page },
            InjectedFault::PowerLost { operation: 1 }.into(),
            JournalRefusal::HoldsData { block, pages: 1 }.into(),
            JournalRefusal::NoCopy { lpn: Lpn(0), page }.into(),
            FlashError::OutOfRange { address: 1, limit: 1 },
        ];
        table.extend(flashes.map(|error| (flash(error), ErrorClass::Medium)));
        let stores = [
            StoreError::OutOfRange { offset: 0, len: 1, capacity: 0 },
            StoreError::Unaligned { offset: 0, len: 1, block: 512 },
            StoreError::Io { offset: 0, len: 1, detail: detail() },
            StoreError::Gone { detail: detail() },
        ];
        table.extend(stores.map(|error| (store(error), ErrorClass::Medium)));
        table
    }

    #[test]
    fn every_error_of_a_write_has_the_class_of_its_meaning() {
        for (error, class) in table() {
            for op in [Op::Write, Op::Trim, Op::WriteZeroes] {
                let command = BlockCommand::new(op, extent(), Hint::default()).into();
                assert_eq!(ErrorClass::of(&command, &error), class, "{op:?}: {error}");
            }
        }
    }

    #[test]
    fn a_read_or_flush_fails_for_what_the_medium_has_lost_or_for_a_request_without_sense() {
        for (error, class) in table() {
            let wanted = match class {
                ErrorClass::Invalid | ErrorClass::Unsupported => class,
                _ => ErrorClass::Medium,
            };
            for op in [Op::Read, Op::Flush] {
                let command = BlockCommand::new(op, extent(), Hint::default()).into();
                assert_eq!(ErrorClass::of(&command, &error), wanted, "{op:?}: {error}");
            }
        }
    }
}
