//! The keys of `zone-files`: what can be typed, and what it means for a given namespace.

use super::format::{self, Identity};
use super::placement;
use crate::below::written_at_once;
use nandscape_core::zone::ZoneShape;
use nandscape_core::{Info, NamespaceInfo, ParamError, Params, keys};
use nandscape_ftl::victim::{self, D, SEED, VictimEntry};

keys! { PARAMS:
    UNIT: Option<u64> = size(512, 1 << 20),
        "bytes that are allocated at a time: the device page (default), or a part of it in whole logical blocks";
    RESERVE: u32 = int(2, 1 << 20) or "2",
        "zones of the capacity kept back, so that space can be reclaimed when files take all of the rest";
    META_ZONES: Option<u32> = int(3, 1 << 16),
        "zones for the journal; default: as many as 16 bytes of objects and extents a unit need, at least 3";
    OPEN_ZONES: u32 = int(2, 1 << 10) or "12",
        "most zones with data that are open, as far as the device allows: one for moved data, one that only \
         data with hint 2 (short) may open, if there are at least three";
    PLACEMENT: String = choice(&placement::NAMES) or "learned",
        "which open zone takes data. learned: the nearest time of death, by what files of a hint lived so far; \
         zenfs: the nearest longer lifetime by hints, and if there is none, a zone is finished to open another; \
         none: any";
    FINISH_THRESHOLD: u32 = int(0, 100) or "0",
        "an open zone with less than this percentage left is finished when another one is to be opened";
    VICTIM: String = choice(&victim::NAMES) or "greedy", "which zone is reclaimed";
    D; SEED;
    GC_LOW: Option<u32> = int(1, 1 << 20),
        "with fewer zones' worth of free space, a zone is reclaimed between the writes, which wait for it; absent: a \
         fortieth of the zones, 2 to twice open_zones, so that files have zones to choose from";
    GC_STEP: u32 = int(1, 1 << 16) or "16", "units of a victim that are moved at a time";
    BACKGROUND_GC: bool = flag() or "false",
        "reclaim while the host is idle, until gc_low more zones are free";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "zone-files",
    summary: "store of files over zones: extents, placement by lifetime, journal in zones of its own",
    source: "ZenFS; Bjorling et al., USENIX ATC 2021, section 4.2",
    params: PARAMS,
};

/// Bytes of a snapshot for each unit that default metadata zones have room for: every unit may be a piece
/// of its own.
const META_PER_UNIT: u64 = 16;

/// What the keys mean for a namespace.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub victim: &'static VictimEntry,
    pub identity: Identity,
    pub fit: placement::Fit,
    /// Open zones with data, that of moved data among them.
    pub frontiers: usize,
    /// Units kept back, and units below which reclaim may not let the free space fall.
    pub reserve_units: u64,
    pub floor_units: u64,
    /// Most files with a unit in memory.
    pub tails: usize,
    /// Most bytes of a snapshot.
    pub meta_bytes: u64,
    pub finish_threshold: u32,
    pub gc_low: u32,
    pub gc_step: u32,
    pub background_gc: bool,
}

impl Config {
    pub fn new(params: &Params, info: &NamespaceInfo, zones: &ZoneShape) -> Result<Self, ParamError> {
        let page = u64::from(info.page_bytes);
        let unit = params.get(UNIT).unwrap_or(page);
        if !page.is_multiple_of(unit) || !unit.is_multiple_of(zones.block.into()) {
            let expected = format!(
                "a part of the device page of {page} bytes, in whole logical blocks of {} bytes",
                zones.block
            );
            return Err(params.error(UNIT, expected));
        }
        let zone_units = zones.capacity / unit;
        let units = zone_units * u64::from(zones.zones);
        if units + u64::from(zones.zones) >= u64::from(super::files::LOST) {
            return Err(params.error(UNIT, format!("larger: {units} units exceed 32-bit places")));
        }
        let zone_payload = zones.capacity / page * format::payload_bytes(info.page_bytes);
        let snapshot_zones = (units * META_PER_UNIT).div_ceil(zone_payload);
        let ring = params.get(META_ZONES).map_or(2 * snapshot_zones + 1, u64::from).max(3);
        let reserve = params.get(RESERVE);
        let needed = ring + u64::from(reserve) + 1;
        if needed > u64::from(zones.zones) {
            let expected =
                format!("zones that leave one for files; of {} zones, {ring} are for metadata", zones.zones);
            return Err(match params.get(META_ZONES) {
                Some(_) => params.error(META_ZONES, expected),
                None => params.error(RESERVE, expected),
            });
        }
        let limit = written_at_once(zones, 3, "metadata, data and moved data")?;
        let identity = Identity {
            unit_bytes: unit as u32,
            zones: zones.zones,
            zone_units: zone_units as u32,
            ring: ring as u32,
        };
        let tails = (zone_units / 8).clamp(1, 64);
        // Places at the two ends of zones may divide what reclaim moves.
        let slack = u64::from(zones.zones) * 2 * super::files::PIECE
            + 2 * format::payload_bytes(info.page_bytes)
            + placement::Learned::RECORD;
        let meta_bytes = ((ring - 1) / 2 * zone_payload).saturating_sub(slack);
        let name = params.get(PLACEMENT);
        let placement = placement::PLACEMENTS.iter().find(|placement| placement.name == name);
        let frontiers = params.get(OPEN_ZONES).min(limit - 1);
        let gc_low = params.get(GC_LOW).unwrap_or_else(|| (zones.zones / 40).clamp(2, 2 * frontiers.max(1)));
        Ok(Self {
            victim: victim::find(params.get(VICTIM)).expect("the registry holds every choice"),
            identity,
            fit: placement.expect("the registry holds every choice").fit,
            frontiers: frontiers as usize,
            reserve_units: u64::from(reserve) * zone_units,
            floor_units: zone_units + 2 * tails,
            tails: tails as usize,
            meta_bytes,
            finish_threshold: params.get(FINISH_THRESHOLD),
            gc_low,
            gc_step: params.get(GC_STEP),
            background_gc: params.get(BACKGROUND_GC),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::ParamKind;
    use std::collections::BTreeMap;

    const SHAPE: ZoneShape = ZoneShape {
        zones: 32,
        conventional: 0,
        size: 1 << 20,
        capacity: 3 << 18,
        block: 512,
        max_active: Some(4),
        max_open: None,
        durable_pages: false,
    };

    fn config(pairs: &[(&str, &str)], zones: ZoneShape) -> Result<Config, String> {
        let typed: BTreeMap<_, _> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let info = NamespaceInfo {
            name: "zns".to_owned(),
            capacity_bytes: zones.size * u64::from(zones.zones),
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: Some(zones),
            objects: false,
        };
        let params = Params::check(&INFO, "host.", &typed).map_err(|error| error.to_string())?;
        Config::new(&params, &info, &zones).map_err(|error| error.to_string())
    }

    #[test]
    fn victims_are_those_of_the_registry_with_their_keys() {
        let param = INFO.params.iter().find(|param| param.name == "victim").unwrap();
        let ParamKind::Choice { of } = param.kind else { panic!("victim is a choice") };
        assert_eq!(of, victim::NAMES);
        for param in victim::VICTIMS.iter().flat_map(|entry| entry.info.params) {
            assert!(INFO.has(param.name), "{} can be typed", param.name);
        }
    }

    #[test]
    fn open_zones_yield_to_the_limits_of_the_device() {
        let config = config(&[("unit", "512")], SHAPE).unwrap();
        assert_eq!((config.frontiers, config.identity.zone_units), (3, 1536));
        assert_eq!(config.identity.ring, 5);
    }

    #[test]
    fn errors_name_the_key_and_what_would_do() {
        let error = |pairs: &[(&str, &str)], zones| config(pairs, zones).unwrap_err();
        assert!(error(&[("unit", "8192")], SHAPE).starts_with("host.unit = '8192': expected a part of"));
        assert!(
            error(&[("reserve", "40")], SHAPE).contains("host.reserve = '40': expected zones that leave")
        );
        let few = ZoneShape { max_active: Some(2), ..SHAPE };
        assert!(error(&[], few).contains("zone.max_active = '2': expected 3 at least: metadata"));
    }
}
