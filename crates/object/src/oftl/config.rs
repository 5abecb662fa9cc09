//! The keys of `oftl`: what can be typed, and what it means for a given device.

use super::diffs::Compression;
use nandscape_core::{Geometry, Info, ParamError, Params, keys};
use nandscape_ftl::victim::{self, D, SEED, VictimEntry};

keys! { PARAMS:
    OP: f64 = float(0.0, 10.0) or "0.28",
        "over-provisioning: raw pages of good blocks over pages that objects can take, less 1";
    WINDOW: Option<u32> = int(1, 1 << 16),
        "blocks of an update window, of which there is one for data and one for metadata; absent: 64, or a \
         thirty-second of the blocks if that is less";
    CACHE: u64 = size(0, 1 << 40) or "32MiB",
        "bytes that are written and not flushed; beyond, the objects that wait longest are flushed whole; at most a \
         window, and a sixteenth of the capacity";
    FLUSH_AFTER: u64 = time() or "30s", "an object that waits longer is flushed";
    RESIDENT: u64 = int(0, 1 << 32) or "65536",
        "objects that stay in memory once the flash has everything of them; where no bytes are stored, all stay";
    SYNC: bool = flag() or "false", "each write is durable before it is answered";
    DIFFS: bool = flag() or "true",
        "parts of pages go to the metadata of the object (compacted updates); false: a page is read and written whole";
    COMPRESS: bool = flag() or "false", "parts of pages are compressed in the metadata, with LZ4";
    COMPRESSED_SHARE: f64 = float(0.01, 1.0) or "0.5",
        "share of their size that parts of pages are taken to need where no bytes are stored, with compress";
    LAZY_INDEX: bool = flag() or "true",
        "places of pages are written when the update window ends; false: with every flush";
    GC_FREE: f64 = float(0.0, 0.9) or "0.15",
        "share of free blocks below which space is collected, as far as over-provisioning allows";
    VICTIM: String = choice(&victim::NAMES) or "greedy", "which block is collected";
    D; SEED;
    WEAR: u32 = int(1, 1 << 20) or "16",
        "a block with so many more erases than the mean is not taken while others are free";
}

/// Name, source and keys.
pub static INFO: Info = Info {
    name: "oftl",
    summary: "object store on flash: byte extents, back pointers and an index written late, partial pages in the metadata",
    source: "Lu, Shu and Zheng, FAST 2013; [thesis A]",
    params: PARAMS,
};

/// Blocks at the beginning of the device that can hold roots.
pub(super) const ROOT_BLOCKS: u32 = 4;
/// Blocks that the system log may need beyond what its records take: two open ones, and those of the log
/// that is being replaced.
const SYSTEM_SPARE: u64 = 3;
/// Free blocks that a checkpoint takes besides those of the windows: for metadata and the system log.
pub(super) const SPARE: u64 = 6;
/// Bytes of the system log for each page: an object may be that small, and the log has three records of it
/// while a new one is being written.
const SYSTEM_PER_PAGE: u64 = 96;

/// What the keys mean for a device.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub victim: &'static VictimEntry,
    /// Blocks of each window.
    pub window: u32,
    /// Blocks of a window that are written by turns.
    pub lanes: u32,
    pub cache_bytes: u64,
    pub flush_after: u64,
    pub resident: usize,
    pub sync: bool,
    pub diffs: bool,
    /// Bytes that compression leaves of each where no bytes are stored; nothing if there is none.
    compressed_share: Option<f64>,
    pub lazy_index: bool,
    /// Blocks that it was made of.
    pub good: u32,
    /// Pages that objects can take.
    pub capacity: u64,
    /// Free blocks below which space is collected.
    pub gc_low: u64,
    pub wear: u32,
}

impl Config {
    /// Of a device with so many good blocks.
    pub fn new(params: &Params, geometry: &Geometry, good: u32) -> Result<Self, ParamError> {
        let (blocks, good) = (good, u64::from(good));
        let pages = u64::from(geometry.pages_per_block);
        let window = params.get(WINDOW).unwrap_or_else(|| 64.min(geometry.blocks() / 32).max(2));
        let windows = 2 * u64::from(window);
        let system = (good * pages * SYSTEM_PER_PAGE).div_ceil(geometry.block_bytes()) + SYSTEM_SPARE;
        let cache_bytes = params.get(CACHE).min(u64::from(window) * geometry.block_bytes());
        let cache_bytes = cache_bytes.min(geometry.capacity_bytes() / 16);
        // Free for what a flush of everything takes: data, windows that follow, metadata.
        let least_free = cache_bytes.div_ceil(geometry.block_bytes()) + u64::from(window) + windows + SPARE;
        let fixed = u64::from(ROOT_BLOCKS) + system + windows + least_free;
        if fixed + 2 > good {
            let expected = format!(
                "an update window that leaves blocks for objects: of {good} good blocks, {fixed} are for the \
                 system, two windows of {window} blocks and those that follow them"
            );
            return Err(params.error(WINDOW, expected));
        }
        let asked = (good as f64 * pages as f64 / (1.0 + params.get(OP))) as u64;
        let capacity = asked.min((good - fixed - 1) * pages);
        let spare = good - u64::from(ROOT_BLOCKS) - system - windows - capacity.div_ceil(pages);
        let wanted = (params.get(GC_FREE) * good as f64) as u64;
        let gc_low = wanted.min(spare / 2).max(least_free);
        Ok(Self {
            victim: victim::find(params.get(VICTIM)).expect("the registry holds every choice"),
            window,
            lanes: geometry.planes().min(window),
            cache_bytes,
            flush_after: params.get(FLUSH_AFTER),
            resident: usize::try_from(params.get(RESIDENT)).unwrap_or(usize::MAX),
            sync: params.get(SYNC),
            diffs: params.get(DIFFS),
            compressed_share: params.get(COMPRESS).then(|| params.get(COMPRESSED_SHARE)),
            lazy_index: params.get(LAZY_INDEX),
            good: blocks,
            capacity,
            gc_low,
            wear: params.get(WEAR),
        })
    }

    /// What is done with parts of pages in the metadata.
    pub const fn compression(&self, stores_data: bool) -> Compression {
        match self.compressed_share {
            None => Compression::Off,
            Some(_) if stores_data => Compression::Lz4,
            Some(share) => Compression::Share(share),
        }
    }
}
