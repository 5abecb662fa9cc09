//! The list of translation layers. A new one is its own file, its `mod` line and one line here.

use crate::no_device::NoDevice;
use crate::{hsbm_gcl, page_map, pm_gcc, pm_gcl, sbm_gcl};
use nandscape_core::{FlashDevice, Ftl, GeometryError, Info, ParamError, Params};

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

/// What a build function gives.
pub type BuildResult = Result<Box<dyn Ftl + Send>, FtlBuildError>;

/// One translation layer, for devices of type `D`.
#[derive(Clone, Copy, Debug)]
pub struct FtlEntry<D> {
    /// Name, source and parameters.
    pub info: &'static Info,
    /// Builds it over a wholly erased device.
    pub build: fn(D, &Params) -> BuildResult,
}

/// Every translation layer.
pub fn ftls<D: FlashDevice + Send + 'static>() -> Vec<FtlEntry<D>> {
    vec![
        FtlEntry { info: &pm_gcl::INFO, build: pm_gcl::build },
        FtlEntry { info: &pm_gcc::INFO, build: pm_gcc::build },
        FtlEntry { info: &sbm_gcl::INFO, build: sbm_gcl::build },
        FtlEntry { info: &hsbm_gcl::INFO, build: hsbm_gcl::build },
        FtlEntry { info: &page_map::INFO, build: page_map::build },
    ]
}

/// What every layer says about itself, in the order of [`ftls`].
pub fn infos() -> Vec<&'static Info> {
    ftls::<NoDevice>().iter().map(|entry| entry.info).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_defaults_are_valid() {
        let names: BTreeSet<_> = infos().iter().map(|info| info.name).collect();
        assert_eq!(names.len(), infos().len());
        for info in infos() {
            let _ = Params::defaults(info);
            assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
        }
    }
}
