//! A store of files that the host makes of zones, of the device or of chunks.

use super::plain::{Base, Top, plain};
use super::vector::Chunks;
use super::zone::Zones;
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::zone_files::KIND;
use nandscape_core::Subsystem;
use nandscape_hostftl::ZoneFiles;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| {
        let plain = if config.is_on_vector() { plain::<Chunks, Files> } else { plain::<Zones, Files> };
        plain(config, options)
    },
    over: Over::Pages(|config, device, lasts| {
        let over = if config.is_on_vector() { Chunks::on_any::<Files> } else { Zones::on_any::<Files> };
        over(config, device, lasts)
    }),
};

/// The store over zones.
struct Files;

impl Top for Files {
    fn over<Z: Subsystem + Send + 'static>(config: &StackConfig, zones: Z) -> Result<Boxed> {
        host_layer(config, |params| ZoneFiles::new(zones, params))
    }
}
