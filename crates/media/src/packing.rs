//! A device that compresses [streams-article 1.1]: pages as a translation layer sees them ("slots") take
//! fewer bytes on flash than they hold.
//!
//! Every page compresses to the same share of its size. The compressed pages of a block lie end to end, over
//! the borders of flash pages; what does not fill a flash page yet waits in the controller, whose memory is
//! protected against loss of power. The last flash page of a block is programmed although it may not be full.

use nandscape_core::{Geometry, GeometryError, Ppn};
use std::ops::Range;

/// How compressed pages lie in flash pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Flash bytes of a compressed page.
    slot_bytes: u64,
    page_bytes: u64,
    flash_pages_per_block: u32,
    slots_per_block: u32,
}

impl Packing {
    /// Pages that compress to `share` (above 0, at most 1) of their size on flash of this shape. Gives the
    /// shape that a translation layer sees: more pages in each block, each as large as before.
    pub fn new(flash: &Geometry, share: f64) -> Result<(Self, Geometry), GeometryError> {
        assert!(share > 0.0 && share <= 1.0, "compressed share {share}");
        let page_bytes = u64::from(flash.page_bytes);
        let slot_bytes = ((page_bytes as f64 * share).ceil() as u64).clamp(1, page_bytes);
        let slots = u64::from(flash.pages_per_block) * page_bytes / slot_bytes;
        let slots_per_block = u32::try_from(slots).unwrap_or(u32::MAX);
        let seen = Geometry { pages_per_block: slots_per_block, ..*flash }.checked()?;
        let packing =
            Self { slot_bytes, page_bytes, flash_pages_per_block: flash.pages_per_block, slots_per_block };
        Ok((packing, seen))
    }

    /// Flash pages of a block that are programmed once its first `slots` slots are.
    pub(crate) fn programmed(&self, slots: u32) -> u32 {
        let bytes = u64::from(slots) * self.slot_bytes;
        let full = if slots == self.slots_per_block {
            bytes.div_ceil(self.page_bytes)
        } else {
            bytes / self.page_bytes
        };
        full as u32
    }

    /// The flash pages of its block in which a slot lies.
    pub(crate) fn pages_of(&self, slot: u32) -> Range<u32> {
        let start = u64::from(slot) * self.slot_bytes;
        (start / self.page_bytes) as u32..(start + self.slot_bytes).div_ceil(self.page_bytes) as u32
    }

    /// Bytes of a slot that lie in a flash page of its block.
    pub(crate) fn bytes_in(&self, slot: u32, page: u32) -> u32 {
        let start = u64::from(slot) * self.slot_bytes;
        let page_start = u64::from(page) * self.page_bytes;
        let end = (start + self.slot_bytes).min(page_start + self.page_bytes);
        (end - start.max(page_start)) as u32
    }

    /// Block and slot in it of a page as the layer sees it.
    pub(crate) const fn place(&self, page: Ppn) -> (u32, u32) {
        (page.0 / self.slots_per_block, page.0 % self.slots_per_block)
    }

    pub(crate) const fn flash_page(&self, block: u32, page: u32) -> Ppn {
        Ppn(block * self.flash_pages_per_block + page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLASH: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: 4096,
        sector_bytes: 4096,
        oob_bytes: 0,
    };

    #[test]
    fn every_byte_of_every_slot_lies_in_one_programmed_page() {
        for share in [1.0, 0.9, 0.7, 0.5, 0.34, 0.25, 0.1, 0.003] {
            let (packing, seen) = Packing::new(&FLASH, share).unwrap();
            let slots = seen.pages_per_block;
            let mut used = vec![0u32; FLASH.pages_per_block as usize];
            for slot in 0..slots {
                let pages = packing.pages_of(slot);
                for page in pages.clone() {
                    used[page as usize] += packing.bytes_in(slot, page);
                }
                let total: u32 = pages.map(|page| packing.bytes_in(slot, page)).sum();
                assert_eq!(u64::from(total), packing.slot_bytes, "{share}");
                assert!(packing.programmed(slot) <= packing.programmed(slot + 1));
            }
            assert!(used.iter().all(|bytes| *bytes <= FLASH.page_bytes), "{share}: {used:?}");
            assert!(packing.programmed(slots) <= FLASH.pages_per_block);
            assert_eq!(packing.programmed(slots), packing.pages_of(slots - 1).end, "{share}");
        }
    }

    #[test]
    fn what_does_not_compress_lies_as_before() {
        let (packing, seen) = Packing::new(&FLASH, 1.0).unwrap();
        assert_eq!(seen, FLASH);
        assert_eq!((packing.pages_of(3), packing.programmed(3)), (3..4, 3));
    }
}
