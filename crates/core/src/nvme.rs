//! NVMe commands that administer a device, for any front end that speaks them, and the status codes of what
//! fails (NVM Express base specification 2.0).

use crate::class::ErrorClass;
use crate::command::Command;
use crate::error::{NamespaceError, NamespaceResult};
use crate::object::ObjectError;
use crate::time::SimTime;
use crate::vector::VectorError;
use crate::zone::ZoneError;

/// The queue of a command: each kind numbers its opcodes by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NvmeQueue {
    /// The admin queue.
    #[default]
    Admin,
    /// An I/O queue.
    Io,
}

/// Of a submission queue entry, what such a command means by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvmeCommand {
    /// The queue that it is on.
    pub queue: NvmeQueue,
    /// Opcode.
    pub opcode: u8,
    /// Namespace id, from 1; 0 where none is meant.
    pub nsid: u32,
    /// Command dwords 10 to 15.
    pub cdw: [u32; 6],
}

/// What a command returns beside its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvmeReply {
    /// Dword 0 of the completion.
    pub dw0: u32,
    /// Bytes that were written to the host's buffer.
    pub bytes: usize,
}

/// The logs of translation layers.
pub trait LogControl {
    /// See [`crate::Logs::renew_log`].
    fn renew_log(&mut self, set: u16, log: u16, at: SimTime) -> NamespaceResult<u64>;
}

/// What can be administered by NVMe commands.
pub trait NvmeControl {
    /// Executes a command other than those of the data path at `at`. `data` is the host's buffer: what it
    /// sends, or room for what it is given, of which no more is filled than the command asks for.
    fn execute(&mut self, command: &NvmeCommand, data: &mut [u8], at: SimTime) -> NvmeResult<NvmeReply>;

    /// The logs of the translation layers, for directives; `None` behind directives, which have them.
    fn logs(&mut self) -> Option<&mut dyn LogControl>;
}

/// Why a command is refused: the status that goes into its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NvmeStatus {
    /// The controller has no such command.
    #[error("Invalid Command Opcode")]
    InvalidOpcode,
    /// A field has a value that this command or this state does not allow.
    #[error("Invalid Field in Command")]
    InvalidField,
    /// Something failed inside the device.
    #[error("Internal Error")]
    InternalError,
    /// No such namespace, or a command that takes no broadcast.
    #[error("Invalid Namespace or Format")]
    InvalidNamespace,
    /// The command does not fit what happened before.
    #[error("Command Sequence Error")]
    CommandSequence,
    /// The namespace is write protected.
    #[error("Namespace is Write Protected")]
    WriteProtected,
    /// The host must set a Host Identifier first.
    #[error("Host Identifier Not Initialized")]
    HostIdNotInitialized,
    /// Flexible data placement is disabled in the endurance group.
    #[error("FDP Disabled")]
    FdpDisabled,
    /// A placement handle list names an unknown reclaim unit handle, or one of them twice.
    #[error("Invalid Placement Handle List")]
    InvalidPlacementHandleList,
    /// There is no room for the write.
    #[error("Capacity Exceeded")]
    CapacityExceeded,
    /// There is no such log page.
    #[error("Invalid Log Page")]
    InvalidLogPage,
    /// The value of a feature cannot be kept over a loss of power.
    #[error("Feature Identifier Not Saveable")]
    FeatureNotSaveable,
    /// No more namespaces can be created.
    #[error("Namespace Identifier Unavailable")]
    NamespaceIdUnavailable,
    /// No stream resource is left.
    #[error("Stream Resource Allocation Failed")]
    StreamResources,
    /// Data was not written, or is not durable.
    #[error("Write Fault")]
    WriteFault,
    /// Data cannot be read.
    #[error("Unrecovered Read Error")]
    UnrecoveredReadError,
    /// What zones refuse, with a status of its own for each reason.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// What vector access refuses, with a status of its own for each reason.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// What a store of objects refuses, with a status of its own for each reason.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// What an NVMe command gives, or the status that it fails with.
pub type NvmeResult<T> = Result<T, NvmeStatus>;

impl NvmeStatus {
    /// The status of a host's command that failed.
    pub const fn of(command: &Command, error: &NamespaceError) -> Self {
        if let NamespaceError::Zone(error) = error {
            return Self::Zone(*error);
        }
        if let NamespaceError::Vector(error) = error {
            return Self::Vector(*error);
        }
        if let NamespaceError::Object(error) = error {
            return Self::Object(*error);
        }
        match ErrorClass::of(command, error) {
            ErrorClass::Medium if command.is_read() => Self::UnrecoveredReadError,
            ErrorClass::Medium => Self::WriteFault,
            ErrorClass::Full => Self::CapacityExceeded,
            ErrorClass::ReadOnly => Self::WriteProtected,
            ErrorClass::Invalid => Self::InvalidField,
            ErrorClass::Unsupported => Self::InvalidOpcode,
        }
    }

    /// Status code type and status code, as in the completion's status field.
    pub const fn code(self) -> (u8, u8) {
        match self {
            Self::InvalidOpcode => (0, 0x01),
            Self::InvalidField => (0, 0x02),
            Self::InternalError => (0, 0x06),
            Self::InvalidNamespace => (0, 0x0b),
            Self::CommandSequence => (0, 0x0c),
            Self::WriteProtected => (0, 0x20),
            Self::HostIdNotInitialized => (0, 0x27),
            Self::FdpDisabled => (0, 0x29),
            Self::InvalidPlacementHandleList => (0, 0x2a),
            Self::CapacityExceeded => (0, 0x81),
            Self::InvalidLogPage => (1, 0x09),
            Self::FeatureNotSaveable => (1, 0x0d),
            Self::NamespaceIdUnavailable => (1, 0x16),
            Self::StreamResources => (1, 0x7f),
            Self::WriteFault => (2, 0x80),
            Self::UnrecoveredReadError => (2, 0x81),
            Self::Zone(error) => ((error.status() >> 8) as u8, error.status() as u8),
            Self::Vector(error) => ((error.status() >> 8) as u8, error.status() as u8),
            Self::Object(error) => ((error.status() >> 8) as u8, error.status() as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::Extent;
    use crate::command::{BlockCommand, Op};
    use crate::error::StoreError;
    use crate::ftl::{FtlError, Hint};

    #[test]
    fn every_class_of_errors_has_its_status() {
        let extent = Extent::new(0, 512);
        let lost = NamespaceError::Lost { extent, lost: extent };
        let outside = NamespaceError::Ftl(FtlError::OutOfRange { extent, capacity_bytes: 0 });
        let read_only = StoreError::ReadOnly { detail: String::new() };
        let read_only = NamespaceError::Store { place: String::new(), extent, source: read_only };
        let full = FtlError::DeviceFull {
            reason: "",
            needed_pages: 1,
            free_pages: 0,
            live_pages: 1,
            total_pages: 1,
        };
        let unsupported = NamespaceError::NotSupported { command: "trim" };
        for (op, error, code) in [
            (Op::Read, &lost, (2, 0x81)),
            (Op::Flush, &lost, (2, 0x80)),
            (Op::Write, &lost, (2, 0x80)),
            (Op::Write, &full.into(), (0, 0x81)),
            (Op::Write, &read_only, (0, 0x20)),
            (Op::Read, &read_only, (2, 0x81)),
            (Op::Read, &outside, (0, 0x02)),
            (Op::Trim, &unsupported, (0, 0x01)),
            (Op::Write, &ZoneError::InvalidWrite.into(), (1, 0xbc)),
            (Op::Read, &ZoneError::Offline.into(), (1, 0xbb)),
            (Op::Read, &ZoneError::OutOfRange.into(), (0, 0x80)),
            (Op::Read, &VectorError::Unwritten.into(), (2, 0x87)),
            (Op::Write, &VectorError::OutOfOrder.into(), (2, 0xf2)),
            (Op::Read, &ObjectError::Unknown.into(), (0, 0x87)),
            (Op::Write, &ObjectError::Exists.into(), (0, 0x89)),
            (Op::Write, &ObjectError::Full.into(), (0, 0x81)),
            (Op::Write, &ObjectError::TooMany.into(), (0, 0x81)),
            (Op::Write, &ObjectError::TooLarge.into(), (0, 0x85)),
        ] {
            let command = BlockCommand::new(op, extent, Hint::default()).into();
            assert_eq!(NvmeStatus::of(&command, error).code(), code, "{op:?}: {error}");
        }
    }
}
