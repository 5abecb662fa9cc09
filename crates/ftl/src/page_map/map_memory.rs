//! The keys of a map that lies on the flash, and what has room in memory.

use nandscape_core::{Geometry, ParamError, Params, Ppn, keys, words};

/// Entries of a line: what a read of a translation page leaves in memory of it.
pub(super) const LINE: u32 = 64;
/// Bytes of a line: its entries, its number, its place in the order of use.
pub(super) const LINE_BYTES: u64 = LINE as u64 * ENTRY_BYTES + 12;
/// Bytes of an entry.
pub(super) const ENTRY_BYTES: u64 = size_of::<Ppn>() as u64;
/// Bytes of a change: the logical page and where it is.
pub(super) const CHANGE_BYTES: u64 = 8;

keys! {
    pub(super) MAP_CACHE: Option<f64> = share(),
        "share of the map (4 bytes a page) that the controller has memory for; the map lies on the flash then, \
         and half of the memory is for changes that are not written yet, half for entries that were read; absent: \
         the whole map is in memory";
    pub(super) MAP_COMMIT: Option<Commit> = word(),
        "the translation page that is written when the changes fill their half of map_cache: largest, with the \
         most changes, or lazy, whose first change is the oldest, as LazyFTL does; absent: largest";
}

/// Which translation page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    /// The one with the most changes.
    Largest,
    /// The one whose first change is the oldest.
    Lazy,
}

words!(Commit: Largest = "largest", Lazy = "lazy");

/// A map on the flash, and what of it has room in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapMemory {
    /// Translation pages.
    pub pages: u32,
    /// Entries of each.
    pub entries: u32,
    /// Changes that are not in their translation page.
    pub change_room: u64,
    /// Lines of entries that were read.
    pub line_room: u32,
    pub commit: Commit,
}

impl MapMemory {
    /// What the keys mean for so many pages of the host; `None` for a map in memory.
    pub fn new(
        params: &Params,
        geometry: &Geometry,
        host_pages: u32,
    ) -> Result<Option<MapMemory>, ParamError> {
        let Some(share) = params.get(MAP_CACHE) else {
            return match params.get(MAP_COMMIT) {
                None => Ok(None),
                Some(_) => Err(params.error(MAP_COMMIT, "no such key without ftl.map_cache")),
            };
        };
        // Whole lines, whose numbers in a translation page are 16-bit.
        let entries = (geometry.page_bytes / ENTRY_BYTES as u32).min(1 << 16) / LINE * LINE;
        let pages = host_pages.div_ceil(entries.max(1));
        let map_bytes = (u64::from(host_pages) * ENTRY_BYTES) as f64;
        let bytes = (share * map_bytes) as u64;
        let least = u64::from(pages) * CHANGE_BYTES * 2;
        if entries == 0 || bytes < least {
            // Rounded up, so that what it names is enough.
            let percent = (least as f64 / map_bytes * 1e4 + 1.0).ceil() / 100.0;
            let expected = format!("at least {percent}%: one change for each of {pages} translation pages");
            return Err(params.error(MAP_CACHE, expected));
        }
        Ok(Some(MapMemory {
            pages,
            entries,
            change_room: bytes / 2 / CHANGE_BYTES,
            line_room: (bytes / 2 / LINE_BYTES).clamp(1, u64::from(host_pages.div_ceil(LINE))) as u32,
            commit: params.get(MAP_COMMIT).unwrap_or(Commit::Largest),
        }))
    }
}
