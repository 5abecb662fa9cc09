//! The `ftl.*` keys of `page-map`: what can be typed, and what it means for a given device.

use super::map_memory::{MAP_CACHE, MAP_COMMIT, MapMemory};
use crate::parts::background::{BACKGROUND_GC, watermark};
use crate::placement::{ALLOCATION_ORDER, Placement, Stripe};
use crate::victim::{self, D, SEED, VictimEntry};
use crate::wear::{self, WEAR_THRESHOLD, WearEntry};
use nandscape_core::{FlashDevice, Geometry, Info, Key, Param, ParamError, Params, SlcBlocks, keys, units};

keys! { PARAMS:
    OP: f64 = float(0.0, 1000.0) or "0.28",
        "over-provisioning, (physical - logical) / logical, over the good blocks";
    CAPACITY: Option<u64> = size(512, 1 << 56),
        "logical capacity, instead of op; rounded down to whole pages";
    pub UNIT: Option<String> = text(),
        "mapping unit: page, or a size of whole sectors that divides the page, such as 4KiB; units that do not \
         fill a page yet wait in power-protected memory; absent: page";
    VICTIM: String = choice(&victim::NAMES) or "greedy", "which block is collected";
    D; SEED;
    GC_FRONTIER: String = choice(&["separate", "shared"]) or "separate",
        "separate: moved pages have blocks of their own; shared: one log with host writes";
    ALLOCATION: String = choice(&["dynamic", "static"]) or "dynamic",
        "dynamic: any die with room, round robin; static: the plane that the page number gives";
    ALLOCATION_ORDER;
    FRONTIERS: Option<u32> = int(1, 1 << 20),
        "blocks open at once in each log (dynamic allocation); default: one a die, but at most 1/16 of the \
         spare blocks, divided among the streams in use";
    STREAMS: u16 = int(0, 1024) or "0",
        "streams (placement handles) beside the default log 0; each has a log of its own";
    RECLAIM_GROUPS: Option<u16> = int(2, 128),
        "reclaim groups: parts of the device with dies, blocks and victims of their own, and a log of each \
         stream in each; log = group x (1 + streams) + stream; absent: one, the device";
    STREAM_GRANULARITY: Option<u64> = size(512, 1 << 56),
        "size of the pieces in which streams get space (a reclaim unit), in whole blocks; default: a block \
         for each frontier of a log that is alone in use";
    pub GC_ISOLATION: String = text() or "persistently",
        "survivors of a stream: persistently stay apart, initially share one log; one word, or one for each \
         log from 0";
    COLLECT: Option<String> = choice(&["block", "piece"]),
        "what collection empties: the best block, or one after the other all blocks of the best piece (reclaim \
         unit), as drives do that erase superblocks; absent: block";
    SPLIT: String = text() or "global",
        "blocks of the streams: global (one choice of victims), shares such as 0.2,0.5 for streams 1, 2 .., \
         or auto";
    GC_LOW: String = text() or "2",
        "erased space, in blocks beyond the open ones (or % of the domain's blocks), below which writes wait \
         for GC; auto: two blocks and at least 32 program units a die, so that writes need not wait for \
         erases, but at most 1/16 of the spare blocks";
    GC_HIGH: Option<String> = text(),
        "erased space at which that GC stops, in the same unit; default: gc_low, one victim at a time";
    GC_STEP: u32 = int(0, 1 << 20) or "0",
        "pages of a victim moved for each page written, so that collection and host take turns; 0: the whole \
         victim at once";
    BACKGROUND_GC;
    BACKGROUND_WATERMARK: Option<String> = text(),
        "erased space at which background GC stops, in the unit of gc_low; default: twice gc_high";
    WEAR: String = choice(&["none", "dynamic", "static"]) or "none", "wear levelling";
    WEAR_THRESHOLD;
    pub SLC_BLOCKS: String = text() or "0",
        "SLC cache: so many blocks of each plane (or % of them) are used with one bit a cell, take host writes \
         first, and are folded while the host is idle; they are no part of op";
    CELL_BITS: u32 = int(2, 5) or "3", "bits of a cell in all other blocks, where there is an SLC cache";
    pub(super) SLC_FOLD_AFTER: u64 = time() or "10ms",
        "the host is idle so long before a block of the SLC cache is folded";
    MAP_CACHE; MAP_COMMIT;
    UNMAPPED_READ: String = choice(&["none", "flash"]) or "none",
        "reads of unmapped pages: none costs nothing, flash reads the page's static place once";
    pub(super) RMW: bool = flag() or "true",
        "a partial write reads the page first where another valid sector remains; false: never (timing only)";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "page-map",
    summary: "the conventional SSD: one map entry per page, over-provisioning, garbage collection",
    source: "nandscape; MQSim, FAST 2018, for static allocation",
    params: PARAMS,
};

/// What collection chooses among, and how blocks are divided among streams.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SplitKind {
    /// All blocks, by nothing but the victim policy.
    Global,
    /// Pieces as a whole.
    Pieces,
    /// Shares of the sealed blocks, for each log from 0.
    Fixed(Vec<f64>),
    /// By what is measured.
    Auto { logs: usize },
}

/// Open blocks of each log, by how many host logs are in use, from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frontiers(Vec<u32>);

impl Frontiers {
    /// While `logs` host logs are in use.
    pub fn of(&self, logs: usize) -> u32 {
        self.0[logs.clamp(1, self.0.len()) - 1]
    }

    /// While all host logs are in use, the fewest there are.
    pub fn of_all(&self) -> u32 {
        self.of(usize::MAX)
    }
}

/// What the keys mean for a device.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub logical_pages: u32,
    /// The map, if it lies on the flash.
    pub map: Option<MapMemory>,
    pub victim: &'static VictimEntry,
    pub wear: &'static WearEntry,
    pub shared_frontier: bool,
    /// For each host log whether its survivors stay apart; empty without streams.
    pub persistent: Vec<bool>,
    /// Reclaim groups, each with those logs.
    pub groups: u32,
    pub split: SplitKind,
    pub placement: Placement,
    /// Striping for the static place of unmapped pages, if their reads cost anything.
    pub unmapped_stripe: Option<Stripe>,
    /// Open blocks of each log of each domain.
    pub frontiers: Frontiers,
    pub background_gc: bool,
    /// Pages moved for each page written; 0 for whole victims.
    pub gc_step: u32,
    pub rmw: bool,
}

impl Config {
    pub fn new(params: &Params, geometry: &Geometry, good_blocks: u64) -> Result<Self, ParamError> {
        // A device that gathers units has pages of their size.
        if unit_bytes(params)?.is_some_and(|bytes| bytes != geometry.page_bytes) {
            let expected = format!("page, which is {} bytes on this device", geometry.page_bytes);
            return Err(params.error(UNIT, expected));
        }
        let physical = good_blocks * u64::from(geometry.pages_per_block);
        let logical = match params.get(CAPACITY) {
            Some(bytes) => bytes / u64::from(geometry.page_bytes),
            None => (physical as f64 / (1.0 + params.get(OP))) as u64,
        };
        if logical == 0 || logical >= physical {
            let expected = format!(
                "a logical capacity of at least one page ({} bytes) and less than the {physical} pages of the good blocks",
                geometry.page_bytes
            );
            return Err(params.error(size_key(params), expected));
        }
        let map = MapMemory::new(params, geometry, logical as u32)?;
        let of_map = map.map_or(0, |map| u64::from(map.pages));
        let mapped = logical + of_map;
        if mapped >= physical {
            let expected = format!("a logical capacity that leaves room for {of_map} translation pages");
            return Err(params.error(size_key(params), expected));
        }
        let stripe = Stripe::new(geometry, params.get(ALLOCATION_ORDER))
            .ok_or_else(|| params.error(ALLOCATION_ORDER, "a permutation of the letters c, w, d and p"))?;
        let is_static = params.get(ALLOCATION) == "static";
        let shared_frontier = params.get(GC_FRONTIER) == "shared";
        let persistent = isolation(params, shared_frontier)?;
        let split = split(params, &persistent)?;
        let groups = groups(params, geometry)?;
        let host_logs = persistent.len().max(1) as u64;
        let frontiers = if is_static {
            Frontiers(vec![1])
        } else if let Some(frontiers) = params.get(FRONTIERS) {
            Frontiers(vec![frontiers])
        } else {
            let spare = good_blocks - mapped.div_ceil(u64::from(geometry.pages_per_block)).min(good_blocks);
            let (spare, dies) = (spare / u64::from(groups), u64::from(geometry.units() / groups));
            let most = |logs: u64| open_blocks(spare / logs, dies) as u32;
            let piece = granularity_blocks(params, geometry).unwrap_or_else(|| most(1).into());
            Frontiers((1..=host_logs).map(|logs| divisor(piece, most(logs))).collect())
        };
        Ok(Self {
            // At most the device's pages, which are 32-bit.
            logical_pages: logical as u32,
            map,
            victim: victim::find(params.get(VICTIM)).expect("the registry holds every choice"),
            wear: wear::find(params.get(WEAR)).expect("the registry holds every choice"),
            shared_frontier,
            persistent,
            groups,
            split: if collects_pieces(params)? { SplitKind::Pieces } else { split },
            unmapped_stripe: (params.get(UNMAPPED_READ) == "flash").then(|| stripe.clone()),
            placement: if is_static { Placement::Static(stripe) } else { Placement::Dynamic },
            frontiers,
            background_gc: params.get(BACKGROUND_GC),
            gc_step: params.get(GC_STEP),
            rmw: params.get(RMW),
        })
    }

    /// The error for a device with too few blocks; names the streams if they are what is too much.
    pub fn too_small(
        &self,
        params: &Params,
        place: &str,
        good_blocks: u64,
        needed: u64,
        data_blocks: u64,
        open_of_logs: &[u32],
    ) -> ParamError {
        let open: u64 = open_of_logs.iter().map(|open| u64::from(*open)).sum();
        let free = needed - data_blocks - open;
        let division = format!("{data_blocks} for data, {open} open and {free} kept free");
        let without_streams = needed - open + u64::from(self.frontiers.of_all()) * 2;
        if !self.persistent.is_empty() && without_streams <= good_blocks {
            let logs = open_of_logs.iter().filter(|open| **open > 0).count();
            return params.error(
                STREAMS,
                format!(
                    "fewer: with {} open blocks for each of {logs} logs the {good_blocks} good blocks of {place} do not suffice; \
                     needed are {needed}: {division}",
                    self.frontiers.of_all()
                ),
            );
        }
        params.error(
            size_key(params),
            format!(
                "a capacity that needs at most the {good_blocks} good blocks of {place}; it needs {needed}: {division}"
            ),
        )
    }

    /// Pages of the host, and of the map where it lies on the flash.
    pub fn mapped_pages(&self) -> u32 {
        self.logical_pages + self.map.map_or(0, |map| map.pages)
    }

    /// Host logs of the device.
    pub fn host_logs(&self) -> usize {
        self.persistent.len().max(1) * self.groups as usize
    }

    /// Blocks of a piece in each of the `domains` that it is striped over; 0 without streams.
    pub fn blocks_per_piece(
        &self,
        params: &Params,
        geometry: &Geometry,
        domains: u32,
    ) -> Result<u32, ParamError> {
        if self.persistent.is_empty() {
            return Ok(0);
        }
        if params.get(STREAM_GRANULARITY).is_none() {
            return Ok(self.frontiers.of(1));
        }
        let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let unit = block_bytes * u64::from(domains) * u64::from(self.frontiers.of_all());
        granularity_blocks(params, geometry)
            .filter(|blocks| *blocks <= u64::from(geometry.blocks() / self.groups))
            .filter(|blocks| (blocks * block_bytes).is_multiple_of(unit))
            .map(|blocks| (blocks / u64::from(domains)) as u32)
            .ok_or_else(|| {
                let expected = format!(
                    "a multiple of {unit} bytes, which is {} block(s) of {block_bytes} bytes, up to the {} of the device or reclaim group",
                    unit / block_bytes,
                    geometry.blocks() / self.groups
                );
                params.error(STREAM_GRANULARITY, expected)
            })
    }
}

/// Blocks of a log that are open at once where no key says how many: one for each die, but at most a
/// sixteenth of the spare blocks.
fn open_blocks(spare_blocks: u64, dies: u64) -> u64 {
    (spare_blocks / 16).clamp(1, dies)
}

/// Blocks that the only log of a device with so many spare blocks has open at once; `None` where a key says
/// how many (`ftl.frontiers`, static allocation).
pub fn open_by_rule(params: &Params, spare_blocks: u64, dies: u64) -> Option<u64> {
    let is_said = params.get(FRONTIERS).is_some() || params.get(ALLOCATION) == "static";
    (!is_said).then(|| open_blocks(spare_blocks, dies))
}

/// Whether pieces are collected as a whole.
fn collects_pieces(params: &Params) -> Result<bool, ParamError> {
    if params.get(COLLECT) != Some("piece") {
        return Ok(false);
    }
    let refused = |expected: &str| Err(params.error(COLLECT, expected));
    if params.get(STREAMS) == 0 {
        return refused("block without streams, to which pieces are given; ftl.streams = 1 is enough");
    }
    if params.get(SPLIT).trim() != "global" || params.get(WEAR) == "static" {
        return refused("block with an ftl.split or ftl.wear = static, which choose single blocks");
    }
    Ok(true)
}

/// The error for pieces that cannot be collected as a whole, since too few blocks would be left.
pub(super) fn piece_too_large(params: &Params, blocks: u32, logs: usize, missing: u64) -> ParamError {
    let expected = format!(
        "block, or smaller pieces (ftl.stream_granularity): each of {logs} logs may be filling one of {blocks} blocks, \
         for which the good blocks are {missing} too few"
    );
    params.error(COLLECT, expected)
}

/// Logs of the host beside log 0, in all reclaim groups together; 0 for another layer.
pub fn streams(params: &Params) -> u16 {
    let in_each = u32::from(params.find(STREAMS).unwrap_or(0)) + 1;
    (in_each * u32::from(reclaim_groups(params)) - 1).min(u16::MAX.into()) as u16
}

/// Reclaim groups, from 1; 1 for another layer.
pub fn reclaim_groups(params: &Params) -> u16 {
    params.find(RECLAIM_GROUPS).flatten().unwrap_or(1)
}

/// Reclaim groups of a device, each with whole dies.
fn groups(params: &Params, geometry: &Geometry) -> Result<u32, ParamError> {
    let Some(groups) = params.get(RECLAIM_GROUPS).map(u32::from) else { return Ok(1) };
    let refused = |expected: &str| Err(params.error(RECLAIM_GROUPS, expected));
    if params.get(STREAMS) == 0 {
        return refused("a layer with streams beside it, such as ftl.streams = 7");
    }
    if params.get(ALLOCATION) == "static" || params.get(SPLIT).trim() != "global" {
        return refused("no such key with ftl.allocation = static or an ftl.split");
    }
    if u32::from(params.get(STREAMS) + 1) * groups > u16::MAX.into() {
        return refused("fewer: with the streams of each (ftl.streams) there are more than 65535 logs");
    }
    if !geometry.units().is_multiple_of(groups) {
        return refused(&format!("a divisor of the {} dies", geometry.units()));
    }
    Ok(groups)
}

/// Bytes of a mapping unit; `None` where it is a page.
pub fn unit_bytes(params: &Params) -> Result<Option<u32>, ParamError> {
    let text = params.find(UNIT).flatten().map(str::trim);
    let Some(text) = text.filter(|text| *text != "page") else { return Ok(None) };
    let bytes = units::parse_size(text).ok().and_then(|bytes| u32::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| *bytes > 0);
    bytes.map(Some).ok_or_else(|| params.error(UNIT, "page, or a size such as 4KiB"))
}

/// The blocks of the SLC cache, which the device knows of from now on.
pub(super) fn slc<D: FlashDevice>(params: &Params, device: &mut D) -> Result<Option<SlcBlocks>, ParamError> {
    let (geometry, text) = (*device.geometry(), params.get(SLC_BLOCKS).trim());
    let refused = |expected: String| Err(params.error(SLC_BLOCKS, expected));
    let blocks = geometry.blocks_per_plane;
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, f64::from(blocks) / 100.0),
        None => (text, 1.0),
    };
    let number = number.trim().parse::<f64>().map(|number| number * scale);
    // A share that is not 0 is a block at least.
    let number = number.map(|number| if number > 0.0 { number.round().max(1.0) } else { number });
    let Some(per_plane) = number.ok().filter(|number| (0.0..f64::from(blocks)).contains(number)) else {
        return refused(format!(
            "fewer blocks than the {blocks} of a plane, or a percentage of them such as 2%"
        ));
    };
    if per_plane == 0.0 {
        return Ok(None);
    }
    if params.get(STREAMS) > 0 || params.get(ALLOCATION) == "static" {
        return refused("0 with ftl.streams or ftl.allocation = static".to_owned());
    }
    let bits = params.get(CELL_BITS);
    let units = device.capabilities().units_per_page;
    let Some(slc) = SlcBlocks::new(&geometry, units, per_plane as u32, bits) else {
        return refused(format!("0 with blocks shorter than {bits} flash pages (ftl.cell_bits)"));
    };
    if device.use_slc(slc) {
        return Ok(Some(slc));
    }
    refused("0 on a device without SLC mode, or one so small that its journal is in these blocks".to_owned())
}

/// The key that says how much of the device is logical capacity.
pub(super) fn size_key(params: &Params) -> Param {
    if params.get(CAPACITY).is_some() { CAPACITY.param } else { OP.param }
}

/// For each host log whether its survivors are kept apart for good; empty without streams.
fn isolation(params: &Params, shared_frontier: bool) -> Result<Vec<bool>, ParamError> {
    let words = params.get(GC_ISOLATION).split(',').map(|word| match word.trim() {
        "persistently" => Ok(true),
        "initially" => Ok(false),
        _ => Err(params.error(GC_ISOLATION, "initially or persistently, once or for each log from 0")),
    });
    let words = words.collect::<Result<Vec<bool>, ParamError>>()?;
    let streams = usize::from(params.get(STREAMS));
    if streams == 0 {
        return Ok(Vec::new());
    }
    if shared_frontier && words.contains(&false) {
        let expected =
            "persistently where gc_frontier is shared, since moved pages then follow their own log";
        return Err(params.error(GC_ISOLATION, expected));
    }
    match words.as_slice() {
        [all] => Ok(vec![*all; streams + 1]),
        each if each.len() == streams + 1 => Ok(words),
        _ => Err(params.error(
            GC_ISOLATION,
            format!("one word for all logs, or {} of them for logs 0 to {streams}", streams + 1),
        )),
    }
}

/// How blocks are divided among streams.
fn split(params: &Params, persistent: &[bool]) -> Result<SplitKind, ParamError> {
    let text = params.get(SPLIT).trim();
    if text == "global" {
        return Ok(SplitKind::Global);
    }
    if persistent.is_empty() || persistent.contains(&false) {
        let expected = "global where there are no streams, or where survivors of several streams share blocks (gc_isolation)";
        return Err(params.error(SPLIT, expected));
    }
    if text == "auto" {
        return Ok(SplitKind::Auto { logs: persistent.len() });
    }
    let streams = persistent.len() - 1;
    let shares: Option<Vec<f64>> = text
        .split(',')
        .map(|share| share.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share)))
        .collect();
    let shares = shares.filter(|shares| shares.len() == streams && shares.iter().sum::<f64>() <= 1.0 + 1e-9);
    let Some(mut shares) = shares else {
        let expected = format!(
            "global, auto or {streams} number(s) of a sum of at most 1, the share of each stream from 1; the rest is log 0's"
        );
        return Err(params.error(SPLIT, expected));
    };
    shares.insert(0, (1.0 - shares.iter().sum::<f64>()).max(0.0));
    Ok(SplitKind::Fixed(shares))
}

/// Blocks of a piece in the whole device, if the key is given and they are whole.
fn granularity_blocks(params: &Params, geometry: &Geometry) -> Option<u64> {
    let bytes = params.get(STREAM_GRANULARITY)?;
    let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
    bytes.is_multiple_of(block_bytes).then_some(bytes / block_bytes)
}

/// The greatest number of open blocks up to `most` that fills pieces of so many blocks evenly.
fn divisor(piece_blocks: u64, most: u32) -> u32 {
    (1..=most).rev().find(|open| piece_blocks.is_multiple_of(u64::from(*open))).unwrap_or(1)
}

/// Watermarks of a domain: erased space beyond the open blocks, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Watermarks {
    pub low: u64,
    pub high: u64,
    pub background: u64,
}

impl Watermarks {
    /// The same with so many more pages of erased space.
    pub const fn raised(self, pages: u64) -> Self {
        Self { low: self.low + pages, high: self.high + pages, background: self.background + pages }
    }

    /// Of a domain of so many blocks; `ample` of them let writes go on while others are erased.
    pub fn new(
        params: &Params,
        domain_blocks: u32,
        ample: u32,
        pages_per_block: u32,
    ) -> Result<Self, ParamError> {
        let pages = |key: Param, text: &str| {
            let may_be_auto = key.name == GC_LOW.param.name;
            let expected = || {
                let auto = if may_be_auto { "auto, " } else { "" };
                format!("{auto}a number of blocks up to {domain_blocks}, or a percentage of them such as 2%")
            };
            let pages = if may_be_auto && text.trim() == "auto" {
                Some(u64::from(ample) * u64::from(pages_per_block))
            } else {
                watermark(text, domain_blocks, pages_per_block)
            };
            pages.ok_or_else(|| params.error(key, expected()))
        };
        let given = |key: Key<Option<String>>| params.get(key).map(|text| pages(key.param, text)).transpose();
        // GC needs a block of its own: the one that it fills before the victim is erased.
        let low = pages(GC_LOW.param, params.get(GC_LOW))?.max(u64::from(pages_per_block));
        let high = given(GC_HIGH)?.unwrap_or(low);
        if high < low {
            return Err(params.error(GC_HIGH, "at least gc_low"));
        }
        let background = given(BACKGROUND_WATERMARK)?.unwrap_or(2 * high);
        if background < high {
            return Err(params.error(BACKGROUND_WATERMARK, "at least gc_high"));
        }
        Ok(Self { low, high, background })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement;
    use nandscape_core::ParamKind;
    use std::collections::BTreeMap;

    fn params(pairs: &[(&str, &str)]) -> Params {
        let typed: BTreeMap<_, _> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Params::check(&INFO, "ftl.", &typed).unwrap()
    }

    #[test]
    fn choices_are_the_registries() {
        let of = |name: &str| {
            let param = INFO.params.iter().find(|param| param.name == name).unwrap();
            let ParamKind::Choice { of } = param.kind else { panic!("{name} is a choice") };
            of.to_vec()
        };
        assert_eq!(of("victim"), victim::VICTIMS.iter().map(|e| e.info.name).collect::<Vec<_>>());
        assert_eq!(of("wear"), wear::WEAR.iter().map(|e| e.info.name).collect::<Vec<_>>());
        assert_eq!(of("allocation"), placement::PLACEMENTS.iter().map(|i| i.name).collect::<Vec<_>>());
        let infos = victim::VICTIMS.iter().map(|e| e.info).chain(wear::WEAR.iter().map(|e| e.info));
        for param in infos.chain(placement::PLACEMENTS.iter().copied()).flat_map(|info| info.params) {
            assert!(INFO.params.iter().any(|own| own.name == param.name), "{} can be typed", param.name);
        }
    }

    #[test]
    fn watermarks_take_blocks_or_percent_and_stay_in_order() {
        let marks = |pairs: &[(&str, &str)]| Watermarks::new(&params(pairs), 512, 20, 64);
        assert_eq!(marks(&[("gc_low", "2%")]), Ok(Watermarks { low: 655, high: 655, background: 1310 }));
        assert_eq!(marks(&[("gc_low", "1.5")]).unwrap().low, 96);
        assert_eq!(
            marks(&[("gc_low", "auto"), ("gc_high", "30")]).unwrap(),
            Watermarks { low: 1280, high: 1920, background: 3840 }
        );
        assert_eq!(marks(&[("gc_low", "0")]).unwrap().low, 64, "GC needs a block");
        for (key, value) in [
            ("gc_low", "two"),
            ("gc_low", "nan"),
            ("gc_low", "200%"),
            ("gc_low", "513"),
            ("gc_high", "1"),
            ("gc_high", "auto"),
            ("background_watermark", "1"),
        ] {
            let err = marks(&[(key, value)]).unwrap_err().to_string();
            assert!(err.starts_with(&format!("ftl.{key} = '{value}'")), "{err}");
        }
    }
}
