//! Zones in the result document.

use crate::zones::{ZoneHistory, ZoneScan};
use nandscape_core::Inspect;
use nandscape_core::zone::{ZoneCounts, ZoneShape};
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<ZoneShown>,
    /// How they stood over the run, where a series was collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<ZoneHistory>,
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
    /// Share of its capacity that holds what hosts can still read; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<f64>,
}

impl ZonesResult {
    /// Most zones that are listed one by one.
    pub const MOST_SHOWN: u32 = 4096;

    /// Shape and counts of the zones of a subsystem that has any, without a look at one of them.
    pub fn counted(inside: &Inspect<'_>) -> Option<Self> {
        let zones = inside.zones?;
        let shape: ZoneShape = zones.zone_shape(0);
        Some(Self {
            zones: shape.zones,
            size_bytes: shape.size,
            capacity_bytes: shape.capacity,
            max_active: shape.max_active,
            max_open: shape.max_open,
            counts: zones.zone_counts(0),
            ..Self::default()
        })
    }

    /// The same with every zone.
    pub(crate) fn of(inside: &Inspect<'_>) -> Option<Self> {
        let (zones, counted) = (inside.zones?, Self::counted(inside)?);
        let mut shown = Vec::new();
        let step = counted.zones.div_ceil(Self::MOST_SHOWN).max(1);
        let mut scan = ZoneScan::new(counted.zones, 1);
        for zone in 0..counted.zones {
            let (it, contents) = (zones.zone(0, zone), zones.contents(0, zone));
            scan.add(&it, contents);
            if zone.is_multiple_of(step) {
                let share = |bytes: u64| bytes as f64 / it.capacity.max(1) as f64;
                shown.push(ZoneShown {
                    zone,
                    state: it.state.name().to_owned(),
                    written: share(it.written_bytes()),
                    valid: contents.valid_bytes.map(share),
                });
            }
        }
        Some(Self { states: scan.finish().0, shown, ..counted })
    }

    /// Open zones, and open and closed ones.
    pub fn open_and_active(&self) -> [u32; 2] {
        let count = |state: &str| self.states.get(state).copied().unwrap_or(0);
        let open = count("implicitly-open") + count("explicitly-open");
        [open, open + count("closed")]
    }
}
