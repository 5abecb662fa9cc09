//! Zones for a cache, which gives up a zone at a time.

use super::plain::{Base, Top, plain};
use super::zone::Zones;
use super::{Boxed, StackEntry, unsuited};
use crate::config::{Result, StackConfig};
use crate::kinds::zone_cache::KIND;
use nandscape_core::Subsystem;
use nandscape_hostftl::ZoneCache;

pub const ENTRY: StackEntry =
    StackEntry { kind: &KIND, plain: plain::<Zones, InOrder>, over: Zones::on_any::<InOrder> };

/// Zones one behind the other.
struct InOrder;

impl Top for InOrder {
    fn over<Z: Subsystem + Send + 'static>(_: &StackConfig, zones: Z) -> Result<Boxed> {
        Ok(Box::new(ZoneCache::new(zones).map_err(unsuited)?))
    }
}
