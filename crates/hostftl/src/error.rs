//! Why a layer of the host cannot be built.

use nandscape_core::{NamespaceError, ParamError};

/// A layer of the host that cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HostFtlError {
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The device below lacks something.
    #[error("{layer} cannot run on this device: {reason}")]
    Device {
        layer: &'static str,
        /// What is missing, and what was expected.
        reason: String,
    },
    /// The device below holds data that the layer cannot read as its own.
    #[error("{layer} cannot start from what the zones hold: {reason}")]
    Start {
        layer: &'static str,
        /// What was found, and what was expected.
        reason: String,
    },
}
