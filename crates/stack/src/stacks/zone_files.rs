//! A store of files that the host makes of zones, of the device or of chunks.

use super::zone::{plain_zones, zones};
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::zone_files::KIND;
use nandscape_hostftl::ZoneFiles;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| on(config, plain_zones(config, options)?),
    over: Over::Pages(|config, device, lasts| on(config, zones(config, device, lasts)?)),
};

/// The store over zones.
fn on(config: &StackConfig, zones: Boxed) -> Result<Boxed> {
    host_layer(config, zones, ZoneFiles::new)
}
