//! A block device that the host makes of zones, of the device or of chunks.

use super::plain::{Base, Top, plain};
use super::vector::Chunks;
use super::zone::Zones;
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::zone_map::KIND;
use nandscape_core::Subsystem;
use nandscape_hostftl::ZoneMap;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| {
        let plain = if config.is_on_vector() { plain::<Chunks, Mapped> } else { plain::<Zones, Mapped> };
        plain(config, options)
    },
    over: Over::Pages(|config, device, lasts| {
        let over = if config.is_on_vector() { Chunks::on_any::<Mapped> } else { Zones::on_any::<Mapped> };
        over(config, device, lasts)
    }),
};

/// The translation layer over zones.
struct Mapped;

impl Top for Mapped {
    fn over<Z: Subsystem + Send + 'static>(config: &StackConfig, zones: Z) -> Result<Boxed> {
        host_layer(config, |params| ZoneMap::new(zones, params))
    }
}
