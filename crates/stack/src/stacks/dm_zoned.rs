//! A block device that the host makes of zones, some of them conventional.

use super::plain::{Base, plain};
use super::zone::Zones;
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::dm_zoned::KIND;
use nandscape_hostftl::DmZoned;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| on(config, plain::<Zones>(config, options)?),
    over: Over::Pages(|config, device, lasts| on(config, Zones::on_any(config, device, lasts)?)),
};

/// Chunks over zones.
fn on(config: &StackConfig, zones: Boxed) -> Result<Boxed> {
    host_layer(config, zones, DmZoned::new)
}
