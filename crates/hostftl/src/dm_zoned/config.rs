//! The keys of `dm-zoned`: what can be typed, and what it means for a given namespace.

use super::format::{Identity, MetaLayout};
use crate::below::written_at_once;
use nandscape_core::zone::ZoneShape;
use nandscape_core::{Info, NamespaceInfo, ParamError, Params, keys};

keys! { PARAMS:
    BLOCK: u32 = size(512, 65_536) or "4KiB", "unit of validity, in whole logical blocks of the zones";
    RESERVED: Option<u32> = int(1, 1 << 20),
        "zones beyond the logical capacity, for reclaim; absent: 16, but at most an eighth of all, at least 2";
    IDLE: u64 = time() or "10s", "time without a request after which all conventional zones are reclaimed";
    RECLAIM_LOW: u32 = int(0, 100) or "30",
        "percentage of free conventional zones at which reclaim begins while there are requests ...";
    RECLAIM_HIGH: u32 = int(0, 100) or "50", "... and at which it ends";
    COPY: u64 = size(512, 1 << 30) or "512KiB", "bytes that reclaim copies at a time";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "dm-zoned",
    summary: "block device over zones, some conventional: chunks in place, buffered in conventional zones",
    source: "Linux device mapper, dm-zoned",
    params: PARAMS,
};

/// What the keys mean for a namespace.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub identity: Identity,
    pub layout: MetaLayout,
    /// Conventional zones with metadata.
    pub meta_zones: u32,
    /// Most sequential zones that are written in part.
    pub active: u32,
    pub idle_ns: u64,
    pub low: u32,
    pub high: u32,
    /// Blocks that are copied at a time.
    pub copy: u32,
}

impl Config {
    pub fn new(params: &Params, info: &NamespaceInfo, zones: &ZoneShape) -> Result<Self, ParamError> {
        let block = params.get(BLOCK);
        let bytes = u64::from(block);
        if !bytes.is_multiple_of(zones.block.into()) || !zones.capacity.is_multiple_of(bytes) {
            let expected = format!(
                "whole logical blocks of {} bytes, of which the {} bytes of a zone are a multiple",
                zones.block, zones.capacity
            );
            return Err(params.error(BLOCK, expected));
        }
        let identity = |chunks| Identity {
            block_bytes: block,
            zone_blocks: (zones.capacity / bytes) as u32,
            zones: zones.zones,
            conventional: zones.conventional,
            chunks,
        };
        // The size of the metadata changes little with the chunks: it is that of as many as there are zones.
        let layout = MetaLayout::new(&identity(zones.zones), info.page_bytes);
        let meta_zones = (2 * layout.stride_bytes).div_ceil(zones.capacity);
        let reserved = params.get(RESERVED).unwrap_or_else(|| (zones.zones / 8).clamp(2, 16));
        let chunks = u64::from(zones.zones).saturating_sub(meta_zones + u64::from(reserved));
        if meta_zones + 2 > u64::from(zones.conventional) {
            let expected =
                format!("{} at least: {meta_zones} for metadata, and 2 for buffers", meta_zones + 2);
            let key = "zone.conventional".to_owned();
            return Err(ParamError::bad(key, zones.conventional.to_string(), expected));
        }
        if chunks == 0 {
            let left = u64::from(zones.zones).saturating_sub(meta_zones);
            let expected = format!("fewer zones than the {left} that metadata leaves");
            return Err(params.error(RESERVED, expected));
        }
        let active = written_at_once(zones, 2, "chunks, and what is reclaimed")?;
        let (low, high) = (params.get(RECLAIM_LOW), params.get(RECLAIM_HIGH));
        if low > high {
            return Err(params.error(RECLAIM_HIGH, format!("at least the {low} of reclaim_low")));
        }
        Ok(Self {
            identity: identity(chunks as u32),
            layout,
            meta_zones: meta_zones as u32,
            active,
            idle_ns: params.get(IDLE),
            low,
            high,
            copy: (params.get(COPY) / bytes).clamp(1, zones.capacity / bytes) as u32,
        })
    }
}
