//! The keys of `[f2fs]`, and the layout that they give on a device.

use crate::below::written_at_once;
use crate::error::HostFtlError;
use nandscape_core::zone::ZoneShape;
use nandscape_core::{Info, NamespaceInfo, ParamError, Params, keys, words};

/// How blocks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// There is no such file system.
    Off,
    /// Free sections, and holes where these are short.
    Adaptive,
    /// Free sections alone.
    Lfs,
}

words!(Mode: Off = "off", Adaptive = "adaptive", Lfs = "lfs");

keys! { PARAMS:
    pub MODE: Mode = word() or "off",
        "lfs: blocks go to free sections alone; adaptive: where these are short, into the holes of used ones, \
         and small overwrites stay in place, which zones do not allow; off: no f2fs";
    BLOCK: Option<u32> = size(512, 65_536), "block of the file system; absent: a page of the flash";
    SEGMENT: u64 = size(4096, 1 << 30) or "2MiB", "segment, which has a block of summaries";
    SECTION: u32 = int(1, 1 << 16) or "1", "segments that are cleaned together; on zones always those of a zone";
    LOGS: u32 = int(2, 6) or "6", "blocks written apart: 2, 4 or 6 kinds";
    OP: Option<f64> = float(0.01, 90.0),
        "percentage of the sections that is kept free besides the reserved ones; absent: what leaves most to users";
    CHECKPOINT: u64 = time() or "60s", "a checkpoint is written at least this often";
    GC_INTERVAL: u64 = time() or "30s", "while nothing is asked for, a section is cleaned this often";
    DISCARD: bool = flag() or "true", "freed blocks are trimmed with each checkpoint";
    DISCARD_GRANULARITY: u64 = size(512, 1 << 30) or "64KiB", "shorter runs of freed blocks are not trimmed";
    STREAMS: bool = flag() or "false",
        "each log has a stream of its own, from 1 on, and metadata none (directives.kind = streams)";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "f2fs",
    summary: "log-structured file system over blocks or zones: six logs, cleaning, checkpoints; keeps no bytes",
    source: "[F2FS]; Linux 5.9",
    params: PARAMS,
};

/// Kinds of logs at most.
pub(super) const LOGS_MAX: usize = 6;

/// What the keys mean for a device. Places are in blocks: those of the main area from 0 on, section after
/// section, and those of metadata apart from them.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub mode: Mode,
    pub logs: u32,
    pub checkpoint_ns: u64,
    pub gc_interval_ns: u64,
    pub discards: bool,
    /// Bytes of a run that is trimmed, at least.
    pub discard_bytes: u64,
    pub streams: bool,
    pub layout: Layout,
}

/// Where things are.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Bytes of a block.
    pub block: u64,
    pub page_bytes: u32,
    pub segment_blocks: u32,
    pub section_blocks: u32,
    pub sections: u32,
    /// Sections that only cleaning may fill.
    pub reserved: u32,
    /// Blocks that users can have, with those of nodes.
    pub user_blocks: u64,
    /// First block of each part of the metadata area: checkpoints at 0, then these.
    pub sit: u64,
    pub nat: u64,
    pub summaries: u64,
    /// Byte of the first section, and from one section to the next.
    main: u64,
    stride: u64,
    /// Conventional zones, which hold the metadata: their size and what can be written of them.
    conventional: Option<(u64, u64)>,
}

impl Layout {
    /// Direct pointers of an inode.
    pub const fn inode_pointers(&self) -> u32 {
        ((self.block - 404) / 4) as u32
    }

    /// Pointers of a direct node.
    pub const fn node_pointers(&self) -> u32 {
        ((self.block - 24) / 4) as u32
    }

    pub const fn nat_entries(&self) -> u32 {
        (self.block / 9) as u32
    }

    pub const fn sit_entries(&self) -> u32 {
        (self.block / 74) as u32
    }

    pub const fn names(&self) -> u32 {
        (self.block * 214 / 4096) as u32
    }

    pub const fn segments(&self) -> u64 {
        self.sections as u64 * self.section_blocks.div_ceil(self.segment_blocks) as u64
    }

    pub const fn is_zoned(&self) -> bool {
        self.conventional.is_some()
    }

    /// Whether a block follows the one before it on the device as well: zones end short of the next one.
    pub const fn is_next(&self, place: u32) -> bool {
        !self.is_zoned() || !place.is_multiple_of(self.section_blocks)
    }

    /// Byte of a block of the main area.
    #[inline]
    pub const fn byte(&self, place: u32) -> u64 {
        let (section, index) = (place / self.section_blocks, place % self.section_blocks);
        self.main + section as u64 * self.stride + index as u64 * self.block
    }

    /// Byte of a block of metadata, and blocks from there on that are next to each other.
    pub fn meta_byte(&self, block: u64) -> (u64, u64) {
        let at = block * self.block;
        match self.conventional {
            None => (at, u64::MAX),
            Some((size, capacity)) => {
                (at / capacity * size + at % capacity, (capacity - at % capacity) / self.block)
            }
        }
    }
}

/// Blocks of each part of the metadata area for so many blocks and segments of the main area.
struct MetaSizes {
    checkpoints: u64,
    sit: u64,
    nat: u64,
    summaries: u64,
}

impl MetaSizes {
    fn new(layout: &Layout, blocks: u64, segments: u64) -> Self {
        let segment = u64::from(layout.segment_blocks);
        // Both have a second copy of each block, and a node can be as many as there are blocks.
        let twice = |blocks: u64| 2 * blocks.next_multiple_of(segment);
        Self {
            checkpoints: 2 * segment,
            sit: twice(segments.div_ceil(layout.sit_entries().into())),
            nat: twice(blocks.div_ceil(layout.nat_entries().into())),
            summaries: segments.next_multiple_of(segment),
        }
    }

    const fn total(&self) -> u64 {
        self.checkpoints + self.sit + self.nat + self.summaries
    }
}

impl Config {
    pub fn new(params: &Params, info: &NamespaceInfo) -> Result<Self, HostFtlError> {
        let mode = params.get(MODE);
        let logs = params.get(LOGS);
        if ![2, 4, 6].contains(&logs) {
            return Err(params.error(LOGS, "2, 4 or 6").into());
        }
        if info.zones.is_some() && mode != Mode::Lfs {
            return Err(params.error(MODE, "lfs, since zones are written in order").into());
        }
        let layout = layout(params, info)?;
        if let Some(zones) = &info.zones {
            written_at_once(zones, logs, "a zone for each log (f2fs.logs)")?;
        }
        Ok(Self {
            mode,
            logs,
            checkpoint_ns: params.get(CHECKPOINT).max(1),
            gc_interval_ns: params.get(GC_INTERVAL).max(1),
            discards: params.get(DISCARD),
            discard_bytes: params.get(DISCARD_GRANULARITY),
            streams: params.get(STREAMS),
            layout,
        })
    }
}

fn layout(params: &Params, info: &NamespaceInfo) -> Result<Layout, HostFtlError> {
    let block = params.get(BLOCK).unwrap_or(info.page_bytes);
    if !block.is_power_of_two() || block < 512 {
        return Err(params.error(BLOCK, "a power of two, at least 512").into());
    }
    let bytes = u64::from(block);
    if !params.get(SEGMENT).is_multiple_of(bytes) {
        return Err(params.error(SEGMENT, format!("whole blocks of {block} bytes")).into());
    }
    let mut layout = Layout {
        block: bytes,
        page_bytes: info.page_bytes,
        segment_blocks: (params.get(SEGMENT) / bytes) as u32,
        section_blocks: 0,
        sections: 0,
        reserved: 0,
        user_blocks: 0,
        sit: 0,
        nat: 0,
        summaries: 0,
        main: 0,
        stride: 0,
        conventional: None,
    };
    let meta = match &info.zones {
        None => on_blocks(params, info, &mut layout)?,
        Some(zones) => on_zones(params, zones, &mut layout)?,
    };
    layout.sit = meta.checkpoints;
    layout.nat = layout.sit + meta.sit;
    layout.summaries = layout.nat + meta.nat;
    if u64::from(layout.sections) * u64::from(layout.section_blocks) >= u64::from(u32::MAX) {
        return Err(params.error(BLOCK, "a larger block: there are more of them than 2^32").into());
    }
    reserve(params, &mut layout)?;
    Ok(layout)
}

fn on_blocks(params: &Params, info: &NamespaceInfo, layout: &mut Layout) -> Result<MetaSizes, ParamError> {
    let all = info.capacity_bytes / layout.block;
    let section = u64::from(layout.segment_blocks) * u64::from(params.get(SECTION));
    let meta = MetaSizes::new(layout, all, all.div_ceil(layout.segment_blocks.into()));
    let sections = all.saturating_sub(meta.total()) / section;
    let fits = u32::try_from(section).is_ok() && sections > 0 && u32::try_from(sections).is_ok();
    if !fits {
        let expected = format!("a section far smaller than the {} bytes of the device", info.capacity_bytes);
        return Err(params.error(SECTION, expected));
    }
    (layout.section_blocks, layout.sections) = (section as u32, sections as u32);
    layout.main = meta.total() * layout.block;
    layout.stride = section * layout.block;
    Ok(meta)
}

fn on_zones(params: &Params, zones: &ZoneShape, layout: &mut Layout) -> Result<MetaSizes, HostFtlError> {
    if params.get(SECTION) != 1 {
        return Err(params.error(SECTION, "no such key on zones, which are the sections").into());
    }
    if !zones.capacity.is_multiple_of(layout.block) {
        let expected = format!("a part of the {} bytes of a zone", zones.capacity);
        return Err(params.error(BLOCK, expected).into());
    }
    layout.section_blocks = u32::try_from(zones.capacity / layout.block).unwrap_or(u32::MAX);
    layout.sections = zones.zones - zones.conventional;
    layout.main = u64::from(zones.conventional) * zones.size;
    layout.stride = zones.size;
    layout.conventional = Some((zones.size, zones.capacity));
    let blocks = u64::from(layout.sections) * u64::from(layout.section_blocks);
    let meta = MetaSizes::new(layout, blocks, layout.segments());
    let needed = (meta.total() * layout.block).div_ceil(zones.capacity);
    if needed > u64::from(zones.conventional) {
        let reason = format!(
            "{} of its zones are conventional (zone.conventional): expected {needed}, for checkpoints and tables",
            zones.conventional
        );
        return Err(HostFtlError::Device { layer: INFO.name, reason });
    }
    Ok(meta)
}

/// Sections kept free, by the rule of `mkfs.f2fs`: of the percentages that are looked at the one that leaves
/// most to users. The smaller it is, the more sections have to be reserved so that cleaning always gains.
fn reserve(params: &Params, layout: &mut Layout) -> Result<(), HostFtlError> {
    let sections = f64::from(layout.sections);
    let left = |percent: f64| {
        let reserved = (100.0 / percent).floor() + 1.0 + LOGS_MAX as f64;
        let kept = ((sections - reserved).max(0.0) * percent / 100.0).ceil();
        (reserved, sections - reserved - kept)
    };
    let (first, step, last) = if layout.sections < 256 { (10.0, 5.0, 90.0) } else { (0.01, 0.01, 10.0) };
    let steps = ((last - first) / step) as u32;
    let candidates = (0..=steps).map(|index| first + f64::from(index) * step);
    let best = |a: &f64, b: &f64| left(*a).1.total_cmp(&left(*b).1);
    let percent = params.get(OP).unwrap_or_else(|| candidates.max_by(best).expect("there is a first one"));
    let (reserved, users) = left(percent);
    if users < 1.0 {
        let reason = format!(
            "it has {sections} sections, of which {reserved} are reserved for cleaning: expected more and smaller ones"
        );
        return Err(HostFtlError::Device { layer: INFO.name, reason });
    }
    layout.reserved = reserved as u32;
    layout.user_blocks = users as u64 * u64::from(layout.section_blocks);
    Ok(())
}
