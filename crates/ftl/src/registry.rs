//! The list of translation layers. A new one is its own file, its `mod` line and one line here.

use crate::error::BuildResult;
use crate::{hsbm_gcl, page_map, pm_gcc, pm_gcl, sbm_gcl};
use nandscape_core::{AnyDevice, FlashDevice, Info, ParamError, Params};

/// One translation layer, for devices of type `D`.
#[derive(Clone, Copy, Debug)]
pub struct FtlEntry<D> {
    /// Name, source and parameters.
    pub info: &'static Info,
    /// Builds it over a wholly erased device.
    pub build: fn(D, &Params) -> BuildResult,
    /// Keys and values with which a device of a few small blocks is enough: for suites that try every layer.
    pub tiny: &'static [(&'static str, &'static str)],
}

impl<D> FtlEntry<D> {
    /// Its parameters on a tiny device, and others above them.
    ///
    /// # Errors
    ///
    /// A key that it does not have, or a value out of range.
    pub fn tiny(&self, more: &[(&str, &str)]) -> Result<Params, ParamError> {
        let typed = self.tiny.iter().chain(more);
        let typed = typed.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Params::check(self.info, "ftl.", &typed)
    }
}

/// Every translation layer.
pub fn ftls<D: FlashDevice + Send + 'static>() -> Vec<FtlEntry<D>> {
    vec![
        FtlEntry { info: &pm_gcl::INFO, build: pm_gcl::build, tiny: &[] },
        FtlEntry { info: &pm_gcc::INFO, build: pm_gcc::build, tiny: &[] },
        FtlEntry { info: &sbm_gcl::INFO, build: sbm_gcl::build, tiny: &[] },
        FtlEntry { info: &hsbm_gcl::INFO, build: hsbm_gcl::build, tiny: &[("logs", "2")] },
        FtlEntry { info: &page_map::INFO, build: page_map::build, tiny: &[("op", "0.5")] },
    ]
}

/// Every translation layer over a boxed device: compiled once, here, for whoever has many kinds of device and
/// no hurry.
pub fn boxed_ftls() -> Vec<FtlEntry<AnyDevice>> {
    ftls()
}

/// The layer of that name, over a boxed device.
pub fn find(name: &str) -> Option<FtlEntry<AnyDevice>> {
    boxed_ftls().into_iter().find(|entry| entry.info.name == name)
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
            let tiny = find(info.name).expect("it is listed").tiny(&[]);
            assert!(tiny.is_ok(), "{}: {tiny:?}", info.name);
            assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
        }
    }
}
