//! Status codes of the commands here.

/// Why a command is refused: the status that goes into its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Status {
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
    /// No more namespaces can be created.
    #[error("Namespace Identifier Unavailable")]
    NamespaceIdUnavailable,
    /// No stream resource is left.
    #[error("Stream Resource Allocation Failed")]
    StreamResources,
}

impl Status {
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
            Self::NamespaceIdUnavailable => (1, 0x16),
            Self::StreamResources => (1, 0x7f),
        }
    }
}
