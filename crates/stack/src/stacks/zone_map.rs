//! A block device that the host makes of zones.

use super::zone::{Top, over, plain};
use super::{Boxed, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::zone_map::KIND;
use nandscape_core::Subsystem;
use nandscape_hostftl::ZoneMap;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| plain::<Mapped>(config, options),
    over: over::<Mapped>,
};

/// The translation layer over zones.
struct Mapped;

impl Top for Mapped {
    fn over<Z: Subsystem + Send + 'static>(config: &StackConfig, zones: Z) -> Result<Boxed> {
        host_layer(ZoneMap::new(zones, &config.ftl_params))
    }
}
