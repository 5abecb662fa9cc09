//! `[f2fs]`: a log-structured file system of the host over blocks or zones, for replays.

use super::{InterfaceEntry, Place};
use crate::keys::ConfigError;
use nandscape_hostftl::{F2fs, HostFtlError, f2fs};

pub const ENTRY: InterfaceEntry = InterfaceEntry {
    info: f2fs::INFO,
    place: Place::Flash,
    trial: &[],
    is_chosen: |params| params.get(f2fs::MODE) != f2fs::Mode::Off,
    check: |_| Ok(()),
    host_ids: |_, ids, _| ids,
    default_ids: |_, _| 0,
    wrap: |params, _, subsystem| {
        let built = F2fs::new(subsystem, params).map_err(|error| match error {
            HostFtlError::Param(error) => ConfigError::Param(error),
            error => ConfigError::Unsuited(error.to_string()),
        })?;
        Ok(Box::new(built))
    },
};
