//! The list of translation layers. A new one is its own file, its `mod` line and one line here.

use crate::error::BuildResult;
use crate::{hsbm_gcl, page_map, pm_gcc, pm_gcl, sbm_gcl};
use nandscape_core::{AnyDevice, FlashDevice, Info, Params};

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

/// Every translation layer over a boxed device: compiled once, here, for whoever has many kinds of device and
/// no hurry.
pub fn boxed_ftls() -> Vec<FtlEntry<AnyDevice>> {
    ftls()
}

/// What every layer says about itself, in the order of [`ftls`].
pub fn infos() -> Vec<&'static Info> {
    ftls::<AnyDevice>().iter().map(|entry| entry.info).collect()
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
