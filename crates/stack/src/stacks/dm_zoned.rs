//! A block device that the host makes of zones, some of them conventional.

use super::plain::{Base, Top, plain};
use super::zone::Zones;
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::dm_zoned::KIND;
use nandscape_core::Subsystem;
use nandscape_hostftl::DmZoned;

pub const ENTRY: StackEntry =
    StackEntry { kind: &KIND, plain: plain::<Zones, Chunks>, over: Over::Pages(Zones::on_any::<Chunks>) };

/// Chunks over zones.
struct Chunks;

impl Top for Chunks {
    fn over<Z: Subsystem + Send + 'static>(config: &StackConfig, zones: Z) -> Result<Boxed> {
        host_layer(config, |params| DmZoned::new(zones, params))
    }
}
