//! How many blocks the journal needs, and which it takes.

use super::format::HEADER_BYTES;
use super::held;
use super::records::RECORD_BYTES;
use super::shape::{Header, Table};
use nandscape_core::{BlockId, FlashDevice, Geometry, UnitId};

/// Sizes that follow from the shape of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Payload bytes of a page.
    pub payload: usize,
    /// The table has a bit for each page.
    pub has_bits: bool,
    /// Map entries of a page.
    pub slice: u32,
    /// Pages of a checkpoint with a full map, its first and its last page included, and what is there twice.
    pub checkpoint_pages: u32,
    /// Pages for records in each region.
    pub record_pages: u32,
    /// Blocks of a region: a checkpoint and the records after it.
    pub region_blocks: u32,
    /// Blocks that are kept in all: two regions, and spares for those that fail.
    pub pool_blocks: u32,
}

/// Pages for records below which a checkpoint would follow the other.
const LEAST_RECORD_PAGES: u32 = 4;

impl Layout {
    /// `record_pages`: as asked for; by default as many as header, table and map have, so that records that
    /// force a checkpoint at most double what is written.
    pub fn new(geometry: &Geometry, has_bits: bool, record_pages: Option<u32>) -> Self {
        let payload = geometry.page_bytes as usize - HEADER_BYTES;
        let parts = |bytes: usize| bytes.div_ceil(payload) as u32;
        let table =
            parts(Table::record_bytes(geometry.pages_per_block, has_bits) * geometry.blocks() as usize);
        let slice = payload as u32 / 4;
        let map = geometry.pages().div_ceil(slice);
        let held = geometry.pages().div_ceil(held::pages_of(payload));
        let mut pool_blocks = 3;
        loop {
            let header = parts(Header::bytes(pool_blocks as usize));
            let checkpoint_pages = 2 * (header + held + 1) + table + map;
            let record_pages = record_pages.unwrap_or(header + table + map + 1).max(LEAST_RECORD_PAGES);
            let region_blocks = (checkpoint_pages + record_pages).div_ceil(geometry.pages_per_block);
            let needed = 2 * region_blocks + (region_blocks / 8).max(1);
            if needed <= pool_blocks {
                return Self {
                    payload,
                    has_bits,
                    slice,
                    checkpoint_pages,
                    record_pages,
                    region_blocks,
                    pool_blocks,
                };
            }
            pool_blocks = needed;
        }
    }

    /// Records of a page.
    pub const fn records(&self) -> usize {
        self.payload / RECORD_BYTES
    }
}

/// Blocks in the order in which the journal takes them: the last of each unit, then the last but one ...
pub(super) fn order(geometry: &Geometry) -> impl Iterator<Item = BlockId> + use<> {
    let geometry = *geometry;
    let rows = (0..geometry.blocks_per_unit()).rev();
    rows.flat_map(move |row| (0..geometry.units()).map(move |unit| geometry.block(UnitId(unit), row)))
}

/// The first good blocks in that order; fewer where there are not so many.
pub(super) fn choose<D: FlashDevice>(device: &D, count: u32) -> Vec<BlockId> {
    order(device.geometry()).filter(|block| !device.is_bad(*block)).take(count as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(channels: u32, blocks: u32, pages: u32, page_bytes: u32) -> Geometry {
        Geometry {
            channels,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: pages,
            page_bytes,
            sector_bytes: 512,
            oob_bytes: 16,
        }
    }

    #[test]
    fn a_region_holds_a_checkpoint_and_its_records() {
        for (geometry, has_bits) in [
            (geometry(2, 12, 8, 512), false),
            (geometry(2, 12, 8, 512), true),
            (geometry(8, 2048, 256, 16384), false),
            (geometry(64, 1024, 256, 4096), true),
            (geometry(1, 4096, 1, 512), false),
        ] {
            let layout = Layout::new(&geometry, has_bits, None);
            let pages = layout.region_blocks * geometry.pages_per_block;
            assert!(pages >= layout.checkpoint_pages + layout.record_pages, "{layout:?}");
            assert!(layout.pool_blocks > 2 * layout.region_blocks, "{layout:?}");
        }
        // 64 GiB: 16 blocks of 16384.
        let layout = Layout::new(&geometry(8, 2048, 256, 16384), false, None);
        assert!(layout.pool_blocks < 40 && layout.checkpoint_pages < 1110, "{layout:?}");
    }

    #[test]
    fn blocks_are_taken_from_the_end_of_every_unit() {
        let order: Vec<u32> = order(&geometry(3, 4, 8, 512)).map(|block| block.0).collect();
        assert_eq!(order[..4], [3, 7, 11, 2]);
        assert_eq!(order.len(), 12);
    }
}
