//! Zones in the result document.

use nandscape_core::zone::{ZoneCounts, ZoneShape, ZoneState};
use nandscape_core::{Inspect, NamespaceInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Zones at the end of a run, and what happened to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZonesResult {
    /// Number of zones.
    pub zones: u32,
    /// Bytes from the first byte of a zone to that of the next.
    pub size_bytes: u64,
    /// Bytes of a zone that can be written, unless blocks have failed since.
    pub capacity_bytes: u64,
    /// Most open and closed zones; null without a limit.
    pub max_active: Option<u32>,
    /// Most open zones; null without a limit.
    pub max_open: Option<u32>,
    /// What happened to them.
    #[serde(flatten)]
    pub counts: ZoneCounts,
    /// Zones in each state that occurs.
    pub states: BTreeMap<String, u32>,
    /// Every zone, or every so many of them where there are more than [`ZonesResult::MOST_SHOWN`].
    pub shown: Vec<ZoneShown>,
}

/// One zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ZoneShown {
    /// Its number.
    pub zone: u32,
    /// Its state.
    pub state: String,
    /// Share of its capacity below the write pointer; 1 in a full zone.
    pub written: f64,
}

impl ZonesResult {
    /// Most zones that are listed one by one.
    pub const MOST_SHOWN: u32 = 4096;

    /// Of a namespace that has zones.
    pub(crate) fn of(inside: &Inspect<'_>, number: u32, info: &NamespaceInfo) -> Option<Self> {
        let (zones, shape): (_, ZoneShape) = (inside.zones?, info.zones?);
        let mut states = BTreeMap::new();
        let mut shown = Vec::new();
        let step = shape.zones.div_ceil(Self::MOST_SHOWN).max(1);
        for zone in 0..shape.zones {
            let it = zones.zone(number, zone);
            *states.entry(it.state.name().to_owned()).or_default() += 1;
            if zone.is_multiple_of(step) {
                let written = match it.write_pointer {
                    Some(pointer) => (pointer - it.start) as f64 / it.capacity as f64,
                    None if it.state == ZoneState::Full => 1.0,
                    None => 0.0,
                };
                shown.push(ZoneShown { zone, state: it.state.name().to_owned(), written });
            }
        }
        Some(Self {
            zones: shape.zones,
            size_bytes: shape.size,
            capacity_bytes: shape.capacity,
            max_active: shape.max_active,
            max_open: shape.max_open,
            counts: zones.zone_counts(number),
            states,
            shown,
        })
    }
}
