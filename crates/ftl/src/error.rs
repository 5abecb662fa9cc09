//! Why a translation layer cannot be built.

use nandscape_core::{Ftl, GeometryError, ParamError};

/// A translation layer that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FtlBuildError {
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    #[error("{ftl} cannot run on this device: {reason}")]
    Device {
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
