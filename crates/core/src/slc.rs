//! Blocks that are used with one bit a cell: programmed faster, read faster, and smaller.

use crate::addr::{BlockId, Ppn};
use crate::divide::Divider;
use crate::geometry::Geometry;

/// The first blocks of each plane, used with one bit a cell instead of `bits`. The mode of a block follows
/// from its number, so it need not be recorded and is known after any loss of power.
///
/// Such a block has the flash pages of a whole one divided by `bits`, rounded down; their numbers begin at
/// that of the block. The other page numbers of the block do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcBlocks {
    per_plane: u32,
    bits: u32,
    pages: u32,
    pages_per_block: Divider,
    blocks_per_plane: Divider,
}

impl SlcBlocks {
    /// The first `per_plane` blocks of each plane, whose cells hold `bits` bits otherwise; `None` if such a
    /// block would have no page. `geometry` is the shape that the layer sees, of whose pages
    /// `units_per_page` lie in a flash page.
    pub fn new(geometry: &Geometry, units_per_page: u32, per_plane: u32, bits: u32) -> Option<Self> {
        let pages = geometry.pages_per_block / units_per_page / bits * units_per_page;
        (pages > 0).then(|| Self {
            per_plane,
            bits,
            pages,
            pages_per_block: Divider::new(geometry.pages_per_block),
            blocks_per_plane: Divider::new(geometry.blocks_per_plane),
        })
    }

    /// Whether a block is one of them.
    #[inline]
    pub const fn contains(&self, block: BlockId) -> bool {
        self.blocks_per_plane.split(block.0).1 < self.per_plane
    }

    /// Pages of each.
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// So many blocks of each plane.
    pub const fn per_plane(&self) -> u32 {
        self.per_plane
    }

    /// Flash pages that one array operation programs there, where it programs so many in other blocks.
    pub const fn program_pages(&self, others: u32) -> u32 {
        if others < self.bits { 1 } else { others / self.bits }
    }

    /// Whether a page number stands for no page, and cannot be programmed.
    pub const fn lacks(&self, page: Ppn) -> bool {
        let (block, index) = self.pages_per_block.split(page.0);
        index >= self.pages && self.contains(BlockId(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_blocks_of_each_plane_have_fewer_pages() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 5,
            pages_per_block: 7,
            page_bytes: 512,
            sector_bytes: 512,
            oob_bytes: 16,
        };
        let slc = SlcBlocks::new(&geometry, 1, 2, 3).unwrap();
        let blocks: Vec<u32> = (0..20).filter(|block| slc.contains(BlockId(*block))).collect();
        assert_eq!((blocks, slc.pages()), (vec![0, 1, 5, 6, 10, 11, 15, 16], 2));
        let refused = |page| slc.lacks(Ppn(page));
        assert_eq!(
            (refused(1), refused(2), refused(6), refused(14), refused(20)),
            (false, true, true, false, false)
        );
        assert_eq!(SlcBlocks::new(&geometry, 1, 2, 8), None);
        assert_eq!(SlcBlocks::new(&geometry, 2, 2, 3).unwrap().pages(), 2);
        assert_eq!([1, 2, 3, 6, 7].map(|pages| slc.program_pages(pages)), [1, 1, 1, 2, 2]);
    }
}
