//! The list of layers. A new one is its own file, its `mod` line and one line here.

use crate::error::HostFtlError;
use crate::zone_map;
use nandscape_core::{Info, Params, Subsystem};

/// A subsystem of any type.
pub type AnySubsystem = Box<dyn Subsystem + Send>;

/// What a build function returns.
pub type BuildResult = Result<AnySubsystem, HostFtlError>;

/// A registered layer.
#[derive(Clone, Copy, Debug)]
pub struct HostFtlEntry {
    /// Name, source and parameters (keys of the `host` table).
    pub info: Info,
    /// Puts it over a device, as what that holds.
    pub build: fn(AnySubsystem, &Params) -> BuildResult,
}

/// Every layer.
pub static HOST_FTLS: &[HostFtlEntry] = &[zone_map::ENTRY];

/// The layer of that name.
pub fn find(name: &str) -> Option<&'static HostFtlEntry> {
    HOST_FTLS.iter().find(|entry| entry.info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_defaults_are_valid() {
        for entry in HOST_FTLS {
            assert_eq!(find(entry.info.name).map(|found| found.info.name), Some(entry.info.name));
            let _ = Params::defaults(&entry.info);
        }
        assert!(find("page-map").is_none());
    }
}
