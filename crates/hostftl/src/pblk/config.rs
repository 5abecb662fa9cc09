//! The keys of `pblk`: what can be typed, and what it means for given chunks.

use super::format::{self, Identity};
use super::ring::WINDOW;
use nandscape_core::vector::VectorGeometry;
use nandscape_core::{Info, ParamError, Params, keys};
use nandscape_ftl::victim::{self, D, SEED, VictimEntry};

keys! { PARAMS:
    OP: f64 = float(0.0, 1000.0) or "0.11",
        "over-provisioning, (physical - logical) / logical, over all chunks";
    CAPACITY: Option<u64> = size(512, 1 << 56),
        "logical capacity, instead of op; rounded down to whole pages";
    VICTIM: String = choice(&victim::NAMES) or "greedy",
        "which line is collected, after those in which a program failed";
    D; SEED;
    GC_LOW: u32 = int(1, 1 << 20) or "2",
        "lines that users get none of: with so few free ones, collection alone writes";
    GC_STEP: u32 = int(1, 1 << 12) or "16", "pages of a victim that are moved at a time";
    RING: Option<u32> = int(2, 1 << 20),
        "pages of the write buffer in the host's memory, rounded up to a power of two; absent: twice what the device needs, at least 64";
    BACKGROUND_GC: bool = flag() or "false", "collect while the host is idle, until an eighth of the lines is free";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "pblk",
    summary: "block device over chunks: ring buffer and map in the host's memory, lines of a chunk of every die",
    source: "Bjorling, Gonzalez and Bonnet, FAST 2017 (LightNVM); pblk",
    params: PARAMS,
};

/// What the keys mean for chunks.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub victim: &'static VictimEntry,
    pub identity: Identity,
    pub ring: u32,
    pub gc_low: u32,
    pub gc_step: u32,
    pub background_gc: bool,
    /// Pages of the metadata at the end of a line, whole write units.
    pub end_pages: u32,
}

impl Config {
    pub fn new(params: &Params, geometry: &VectorGeometry) -> Result<Self, ParamError> {
        let page_bytes = geometry.pages.sectors * geometry.sector_bytes;
        let row = geometry.write_min / geometry.pages.sectors;
        let (lines, units) = (geometry.chunks, geometry.all_units());
        let line_pages = units * (geometry.sectors / geometry.pages.sectors);
        let physical = u64::from(lines) * u64::from(line_pages);
        let size_key = if params.get(CAPACITY).is_some() { CAPACITY.param } else { OP.param };
        let logical = match params.get(CAPACITY) {
            Some(bytes) => bytes / u64::from(page_bytes),
            None => (physical as f64 / (1.0 + params.get(OP))) as u64,
        };
        if physical >= 1 << 31 || page_bytes < 128 {
            let expected = format!(
                "a device of less than 2^31 pages of at least 128 bytes; it has {physical} of {page_bytes}"
            );
            return Err(params.error(size_key, expected));
        }
        let end_pages = line_pages.div_ceil(format::entries_per_page(page_bytes)) * row;
        let data = u64::from(line_pages.saturating_sub(row + end_pages));
        let gc_low = params.get(GC_LOW);
        // Besides the lines that are kept: an open one, a victim, and one that waits for its erase.
        let needed = logical.div_ceil(data.max(1)) + u64::from(gc_low) + 3;
        if logical == 0 || needed > u64::from(lines) || data == 0 {
            let expected = format!(
                "a capacity that needs at most the {lines} lines; it needs {needed}, {data} of {line_pages} pages of each with data"
            );
            return Err(params.error(size_key, expected));
        }
        // What the device does not give back yet, on every die, and a write to each.
        let behind = (geometry.cached + 2 * geometry.write_best) / geometry.pages.sectors * units;
        let asked = params.get(RING).unwrap_or((2 * behind).max(WINDOW));
        let ring = asked.next_power_of_two();
        if ring <= behind {
            return Err(params
                .error(RING, format!("more than the {behind} pages that the device may not give back yet")));
        }
        Ok(Self {
            victim: victim::find(params.get(VICTIM)).expect("the registry holds every choice"),
            identity: Identity { page_bytes, logical_pages: logical as u32, lines, line_pages },
            ring,
            gc_low,
            gc_step: params.get(GC_STEP).min(ring / 2),
            background_gc: params.get(BACKGROUND_GC),
            end_pages,
        })
    }
}
