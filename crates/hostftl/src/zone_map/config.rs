//! The keys of `zone-map`: what can be typed, and what it means for a given namespace.

use super::format::{self, Identity};
use crate::below::written_at_once;
use nandscape_core::zone::ZoneShape;
use nandscape_core::{Info, NamespaceInfo, ParamError, Params, keys};
use nandscape_ftl::victim::{self, D, SEED, VictimEntry};

keys! { PARAMS:
    OP: f64 = float(0.0, 1000.0) or "0.28",
        "over-provisioning, (physical - logical) / logical, over the capacity of all zones";
    CAPACITY: Option<u64> = size(512, 1 << 56),
        "logical capacity, instead of op; rounded down to whole units";
    UNIT: Option<u64> = size(512, 1 << 20),
        "bytes of a map entry: the device page (default), or a part of it in whole logical blocks";
    VICTIM: String = choice(&victim::NAMES) or "greedy", "which zone is collected";
    D; SEED;
    GC_FRONTIER: String = choice(&["separate", "shared"]) or "separate",
        "separate: moved data has an open zone of its own; shared: one with host writes of log 0";
    pub STREAMS: u16 = int(0, 1024) or "0",
        "streams (placement handles) beside the default log 0; each has an open zone, as far as the device \
         allows";
    GC_LOW: u32 = int(1, 1 << 20) or "2",
        "zones kept free besides the open ones; collection is spread over the writes so that it holds this";
    GC_STEP: u32 = int(1, 1 << 16) or "16", "units of a victim that are moved at a time";
    BACKGROUND_GC: bool = flag() or "false",
        "collect while the host is idle, until gc_low more zones are free";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "zone-map",
    summary: "block device over zones: one map entry per unit, journal and checkpoints in zones of its own",
    source: "dm-zap; pblk (LightNVM, FAST 2017); Bjorling et al., USENIX ATC 2021",
    params: PARAMS,
};

/// Log of host writes without a hint.
pub(super) const DEFAULT_LOG: usize = 0;

/// What the keys mean for a namespace.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub victim: &'static VictimEntry,
    pub identity: Identity,
    /// Logs of host writes.
    pub host_logs: u16,
    /// Moved data has a log of its own.
    pub has_gc_log: bool,
    /// Two zones of each log may be active.
    pub overlaps: bool,
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
        let physical = zone_units * u64::from(zones.zones);
        if physical >= u64::from(format::LOST.0) {
            return Err(params.error(UNIT, format!("larger: {physical} units exceed 32-bit map entries")));
        }
        let size_key = if params.get(CAPACITY).is_some() { CAPACITY.param } else { OP.param };
        let logical = match params.get(CAPACITY) {
            Some(bytes) => bytes / unit,
            None => (physical as f64 / (1.0 + params.get(OP))) as u64,
        };
        if logical == 0 || logical >= physical {
            let expected = format!(
                "a logical capacity of at least one unit ({unit} bytes) and less than the {physical} units of all zones"
            );
            return Err(params.error(size_key, expected));
        }
        let wants_gc_log = params.get(GC_FRONTIER) == "separate";
        // One zone is written with metadata. Host writes have as many logs as asked for, or as that leaves.
        let others = 1 + u32::from(wants_gc_log);
        let what = "metadata and host writes, and moved data unless gc_frontier is shared";
        let limit = written_at_once(zones, others + 1, what)?;
        let host_logs = (params.get(STREAMS) + 1).min(u16::try_from(limit - others).unwrap_or(u16::MAX));
        let pages = (zones.capacity / page) as u32;
        let ring = format::ring_zones(logical as u32, info.page_bytes, pages);
        let open = u64::from(host_logs) + u64::from(wants_gc_log);
        let gc_low = params.get(GC_LOW);
        let data = logical.div_ceil(zone_units);
        // One more: a victim that is emptied step by step is not free until its last unit was moved.
        let needed = u64::from(ring) + open + u64::from(gc_low) + 1 + data;
        if needed > u64::from(zones.zones) {
            let expected = format!(
                "a capacity that needs at most the {} zones; it needs {needed}: {data} for data, {ring} for metadata, \
                 {open} open and {} kept free",
                zones.zones,
                gc_low + 1
            );
            return Err(params.error(size_key, expected));
        }
        let identity = Identity {
            unit_bytes: unit as u32,
            logical_units: logical as u32,
            zones: zones.zones,
            zone_units: zone_units as u32,
            ring,
        };
        Ok(Self {
            victim: victim::find(params.get(VICTIM)).expect("the registry holds every choice"),
            identity,
            host_logs,
            has_gc_log: wants_gc_log,
            // Besides the zone of metadata.
            overlaps: 2 * open < u64::from(limit),
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
    fn over_provisioning_counts_all_zones_and_streams_yield_to_the_limits_of_the_device() {
        let config = config(&[("op", "0.5"), ("streams", "7"), ("unit", "512")], SHAPE).unwrap();
        assert_eq!(config.identity.logical_units, 32 * 1536 * 2 / 3);
        assert_eq!(config.identity.zone_units, 1536);
        assert_eq!(config.host_logs, 2, "of four active zones one has metadata, one moved data");
    }

    #[test]
    fn errors_name_the_key_and_what_would_do() {
        let error = |pairs: &[(&str, &str)], zones| config(pairs, zones).unwrap_err();
        assert!(error(&[("unit", "8192")], SHAPE).starts_with("host.unit = '8192': expected a part of"));
        assert!(error(&[("op", "0.05")], SHAPE).contains("host.op = '0.05': expected a capacity"));
        assert!(error(&[("capacity", "512")], SHAPE).contains("at least one unit (4096 bytes)"));
        let few = ZoneShape { max_active: Some(2), ..SHAPE };
        assert!(error(&[], few).contains("zone.max_active = '2': expected 3 at least: metadata"));
        assert!(config(&[("gc_frontier", "shared")], few).is_ok());
        let one = ZoneShape { max_open: Some(1), ..SHAPE };
        assert!(
            error(&[("gc_frontier", "shared")], one).contains("zone.max_open = '1': expected 2 at least")
        );
    }
}
