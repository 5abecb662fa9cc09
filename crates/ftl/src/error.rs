//! Why a translation layer cannot be built.

use nandscape_core::{Ftl, GeometryError, ParamError};

/// A translation layer that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FtlBuildError {
    /// A parameter does not fit.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The shape does not fit.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The device lacks something the layer needs.
    #[error("{ftl} cannot run on this device: {reason}")]
    Device {
        /// Which layer.
        ftl: &'static str,
        /// What is missing, and what was expected.
        reason: String,
    },
}

impl FtlBuildError {
    /// A layer could not take over what the flash holds.
    pub(crate) fn start_failed(ftl: &'static str, error: &impl std::fmt::Display) -> Self {
        Self::Device { ftl, reason: format!("its start from flash failed: {error}") }
    }
}

/// What a build function gives.
pub type BuildResult = Result<Box<dyn Ftl + Send>, FtlBuildError>;
