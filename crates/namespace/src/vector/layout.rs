//! Where chunks and sectors lie on the flash.

use nandscape_core::vector::{SectorAddress, VectorGeometry};
use nandscape_core::{BlockId, Geometry, Ppn};

/// Addresses of sectors and those of the flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    flash: Geometry,
    vector: VectorGeometry,
}

/// Where a sector is on the flash: its page, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub page: Ppn,
    pub sector: u32,
}

impl Layout {
    pub const fn new(flash: Geometry, vector: VectorGeometry) -> Self {
        Self { flash, vector }
    }

    pub const fn vector(&self) -> &VectorGeometry {
        &self.vector
    }

    pub const fn flash(&self) -> &Geometry {
        &self.flash
    }

    /// The block that a chunk has in one of its planes.
    pub const fn block(&self, chunk: SectorAddress, plane: u32) -> BlockId {
        let unit = self.flash.unit(chunk.group as u32, chunk.unit as u32);
        let shape = &self.vector.pages;
        let block = if shape.spans_planes { plane * shape.blocks + chunk.chunk } else { chunk.chunk };
        self.flash.block(unit, block)
    }

    /// The blocks of a chunk.
    pub fn blocks(&self, chunk: SectorAddress) -> impl Iterator<Item = BlockId> + use<> {
        let this = *self;
        (0..self.vector.pages.chunk_planes()).map(move |plane| this.block(chunk, plane))
    }

    /// The chunk of a block, and the block's plane among those of the chunk.
    pub const fn chunk_of(&self, block: BlockId) -> (SectorAddress, u32) {
        let unit = self.flash.unit_of(block);
        let within = self.flash.block_in_unit(block);
        let shape = &self.vector.pages;
        let (chunk, plane) =
            if shape.spans_planes { (within % shape.blocks, within / shape.blocks) } else { (within, 0) };
        let group = self.flash.channel_of(unit) as u16;
        let lun = self.flash.lun_of(unit) as u16;
        (SectorAddress { group, unit: lun, chunk, sector: 0 }, plane)
    }

    /// Where a sector is: sectors of a page are next to each other, then come planes, then pages.
    pub const fn spot(&self, address: SectorAddress) -> Spot {
        let shape = &self.vector.pages;
        let (page, sector) = (address.sector / shape.sectors, address.sector % shape.sectors);
        let (row, plane) = (page / shape.chunk_planes(), page % shape.chunk_planes());
        Spot { page: self.flash.page(self.block(address, plane), row), sector }
    }

    /// The first sector of a flash page.
    pub const fn address(&self, page: Ppn) -> SectorAddress {
        let (chunk, plane) = self.chunk_of(self.flash.block_of(page));
        let shape = &self.vector.pages;
        chunk.at((self.flash.page_in_block(page) * shape.chunk_planes() + plane) * shape.sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::VectorSetup;

    #[test]
    fn every_sector_has_a_place_of_its_own_and_every_page_its_first_sector() {
        let flash = Geometry {
            channels: 2,
            dies_per_channel: 3,
            planes_per_die: 2,
            blocks_per_plane: 3,
            pages_per_block: 4,
            page_bytes: 2048,
            sector_bytes: 512,
            oob_bytes: 64,
        };
        for spans_planes in [false, true] {
            let setup = VectorSetup { spans_planes, ..VectorSetup::default() };
            let vector = setup.check(&flash, 1).unwrap();
            let layout = Layout::new(flash, vector);
            let mut seen = vec![false; flash.pages() as usize * 4];
            for number in 0..vector.all_chunks() {
                let chunk = vector.chunk_at(number);
                assert_eq!(vector.chunk_number(chunk), number);
                for (plane, block) in (0..).zip(layout.blocks(chunk)) {
                    assert_eq!(layout.chunk_of(block), (chunk, plane));
                }
                for sector in 0..vector.sectors {
                    let spot = layout.spot(chunk.at(sector));
                    let place = spot.page.index() * 4 + spot.sector as usize;
                    assert!(!std::mem::replace(&mut seen[place], true), "{spot:?} twice");
                    assert_eq!(layout.address(spot.page), chunk.at(sector - sector % 4));
                }
            }
            assert!(seen.iter().all(|seen| *seen));
        }
    }
}
