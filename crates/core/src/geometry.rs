//! The shape of a device and all address arithmetic.
//!
//! A linear layout exists beside the block-major [`Ppn`]: that of superblocks (low to high: inner unit,
//! page, inner block, outer block, outer unit; [thesis fig 3.4]). The strides of [thesis table 3.6] do not
//! map pages one to one; here an outer unit strides by `pn` units and an outer block by `bn` blocks.

use crate::addr::{BlockId, Lpn, Ppn, UnitId};
use serde::Serialize;

/// A device shape that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GeometryError {
    #[error("{key} = {value}: expected {expected}")]
    OutOfRange { key: &'static str, value: u64, expected: String },
}

/// The shape of a device: a checked value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Channel buses.
    pub channels: u32,
    /// Dies (LUNs) on each channel.
    pub dies_per_channel: u32,
    /// Planes in each die.
    pub planes_per_die: u32,
    /// Erase blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Smallest unit of validity and transfer inside a page.
    pub sector_bytes: u32,
    /// Spare bytes of a page.
    pub oob_bytes: u32,
}

/// A plane with fewer blocks says little about the device that it stands for.
const LEAST_SCALED_BLOCKS: u32 = 16;

/// Blocks of a plane of a device that `scale`, such as `1/16`, makes smaller; `None` if it is no such text.
pub fn scaled_blocks(blocks: u32, scale: &str) -> Option<u32> {
    let (one, divisor) = scale.split_once('/')?;
    let divisor = divisor.trim().parse::<u32>().ok().filter(|n| *n > 0 && one.trim() == "1")?;
    Some((blocks / divisor).max(blocks.min(LEAST_SCALED_BLOCKS)))
}

impl Geometry {
    /// Checks that the shape is possible: every field at least 1, the page a multiple of the sector and at
    /// most 64 sectors, at most 2^32 - 3 pages.
    pub fn checked(self) -> Result<Self, GeometryError> {
        let fields = [
            ("device.channels", self.channels, 4096),
            ("device.dies_per_channel", self.dies_per_channel, 4096),
            ("device.planes_per_die", self.planes_per_die, 64),
            ("device.blocks_per_plane", self.blocks_per_plane, 1 << 24),
            ("device.pages_per_block", self.pages_per_block, 1 << 16),
            ("device.page", self.page_bytes, 1 << 24),
            ("device.sector", self.sector_bytes, 1 << 24),
        ];
        for (key, value, max) in fields {
            if value == 0 || value > max {
                return Err(GeometryError::OutOfRange {
                    key,
                    value: u64::from(value),
                    expected: format!("1 to {max}"),
                });
            }
        }
        if !self.page_bytes.is_multiple_of(512) {
            return Err(GeometryError::OutOfRange {
                key: "device.page",
                value: u64::from(self.page_bytes),
                expected: "a multiple of 512 bytes".into(),
            });
        }
        if !self.page_bytes.is_multiple_of(self.sector_bytes) || self.page_bytes / self.sector_bytes > 64 {
            return Err(GeometryError::OutOfRange {
                key: "device.sector",
                value: u64::from(self.sector_bytes),
                expected: format!(
                    "a divisor of device.page ({} bytes) giving at most 64 sectors a page",
                    self.page_bytes
                ),
            });
        }
        let pages = u128::from(self.channels)
            * u128::from(self.dies_per_channel)
            * u128::from(self.planes_per_die)
            * u128::from(self.blocks_per_plane)
            * u128::from(self.pages_per_block);
        if pages > u128::from(Lpn::MAX.0) {
            return Err(GeometryError::OutOfRange {
                key: "device.blocks_per_plane",
                value: u64::from(self.blocks_per_plane),
                expected: format!("a device of at most {} pages; this one has {pages}", Lpn::MAX.0),
            });
        }
        Ok(self)
    }

    /// Parallel units (dies).
    pub const fn units(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Blocks in each unit, over all its planes.
    pub const fn blocks_per_unit(&self) -> u32 {
        self.planes_per_die * self.blocks_per_plane
    }

    /// Planes of the device.
    pub const fn planes(&self) -> u32 {
        self.units() * self.planes_per_die
    }

    /// Blocks of the device.
    pub const fn blocks(&self) -> u32 {
        self.units() * self.blocks_per_unit()
    }

    /// Pages of the device.
    pub const fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    /// Data bytes of a block.
    pub const fn block_bytes(&self) -> u64 {
        self.pages_per_block as u64 * self.page_bytes as u64
    }

    /// Data bytes of the device.
    pub const fn capacity_bytes(&self) -> u64 {
        self.pages() as u64 * self.page_bytes as u64
    }

    /// Sectors of a page.
    pub const fn sectors_per_page(&self) -> u32 {
        self.page_bytes / self.sector_bytes
    }

    /// The unit of a channel and LUN.
    pub const fn unit(&self, channel: u32, lun: u32) -> UnitId {
        UnitId(lun * self.channels + channel)
    }

    /// The channel of a unit.
    pub const fn channel_of(&self, unit: UnitId) -> u32 {
        unit.0 % self.channels
    }

    /// The LUN of a unit inside its channel.
    pub const fn lun_of(&self, unit: UnitId) -> u32 {
        unit.0 / self.channels
    }

    /// The block of a unit.
    pub const fn block(&self, unit: UnitId, block_in_unit: u32) -> BlockId {
        BlockId(unit.0 * self.blocks_per_unit() + block_in_unit)
    }

    /// The unit of a block.
    pub const fn unit_of(&self, block: BlockId) -> UnitId {
        UnitId(block.0 / self.blocks_per_unit())
    }

    /// The block's number inside its unit.
    pub const fn block_in_unit(&self, block: BlockId) -> u32 {
        block.0 % self.blocks_per_unit()
    }

    /// The page of a block.
    pub const fn page(&self, block: BlockId, page_in_block: u32) -> Ppn {
        Ppn(block.0 * self.pages_per_block + page_in_block)
    }

    /// The block of a page.
    #[inline]
    pub const fn block_of(&self, page: Ppn) -> BlockId {
        BlockId(page.0 / self.pages_per_block)
    }

    /// The page's number inside its block.
    #[inline]
    pub const fn page_in_block(&self, page: Ppn) -> u32 {
        page.0 % self.pages_per_block
    }
}

/// Superblocks of `pn` units times `bn` blocks [thesis fig 3.4].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperblockLayout {
    geometry: Geometry,
    pn: u32,
    bn: u32,
}

impl SuperblockLayout {
    /// Checks that `pn` divides the units and `bn` the blocks of a unit.
    pub fn new(geometry: Geometry, pn: u32, bn: u32) -> Result<Self, GeometryError> {
        for (key, value, whole, of) in [
            ("ftl.pn", pn, geometry.units(), "units"),
            ("ftl.bn", bn, geometry.blocks_per_unit(), "blocks of a unit"),
        ] {
            if value == 0 || !whole.is_multiple_of(value) {
                return Err(GeometryError::OutOfRange {
                    key,
                    value: u64::from(value),
                    expected: format!("a divisor of the {whole} {of}"),
                });
            }
        }
        Ok(Self { geometry, pn, bn })
    }

    /// Units a superblock spans.
    pub const fn pn(&self) -> u32 {
        self.pn
    }

    /// Blocks a superblock has in each of its units.
    pub const fn bn(&self) -> u32 {
        self.bn
    }

    /// Blocks of a superblock.
    pub const fn blocks_per_superblock(&self) -> u32 {
        self.pn * self.bn
    }

    /// Pages of a superblock.
    pub const fn pages_per_superblock(&self) -> u32 {
        self.pn * self.bn * self.geometry.pages_per_block
    }

    /// Super-units: groups of `pn` units.
    pub const fn superunits(&self) -> u32 {
        self.geometry.units() / self.pn
    }

    /// Superblocks of a super-unit.
    pub const fn superblocks_per_superunit(&self) -> u32 {
        self.geometry.blocks_per_unit() / self.bn
    }

    /// Superblocks of the device.
    pub const fn superblocks(&self) -> u32 {
        self.superunits() * self.superblocks_per_superunit()
    }

    /// The page `index` of superblock `superblock`, where superblocks count `outer_pu * (blocks / bn) +
    /// outer_blk` and pages low to high inner unit, page, inner block.
    pub const fn page(&self, superblock: u32, index: u32) -> Ppn {
        let inner_pu = index % self.pn;
        let rest = index / self.pn;
        let page = rest % self.geometry.pages_per_block;
        let inner_blk = rest / self.geometry.pages_per_block;
        self.geometry.page(self.block_at(superblock, inner_pu, inner_blk), page)
    }

    const fn block_at(&self, superblock: u32, inner_pu: u32, inner_blk: u32) -> BlockId {
        let outer_pu = superblock / self.superblocks_per_superunit();
        let outer_blk = superblock % self.superblocks_per_superunit();
        let unit = UnitId(outer_pu * self.pn + inner_pu);
        self.geometry.block(unit, outer_blk * self.bn + inner_blk)
    }

    /// The blocks of a superblock, inner unit first.
    pub fn blocks(&self, superblock: u32) -> impl Iterator<Item = BlockId> + use<> {
        let layout = *self;
        (0..layout.blocks_per_superblock())
            .map(move |i| layout.block_at(superblock, i % layout.pn, i / layout.pn))
    }

    /// The superblock of a page and the page's index in it.
    pub const fn locate(&self, page: Ppn) -> (u32, u32) {
        let block = self.geometry.block_of(page);
        let unit = self.geometry.unit_of(block).0;
        let blk = self.geometry.block_in_unit(block);
        let superblock = (unit / self.pn) * self.superblocks_per_superunit() + blk / self.bn;
        let row = (blk % self.bn) * self.geometry.pages_per_block + self.geometry.page_in_block(page);
        (superblock, row * self.pn + unit % self.pn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(channels: u32, dies: u32, planes: u32, blocks: u32, pages: u32) -> Geometry {
        Geometry {
            channels,
            dies_per_channel: dies,
            planes_per_die: planes,
            blocks_per_plane: blocks,
            pages_per_block: pages,
            page_bytes: 4096,
            sector_bytes: 4096,
            oob_bytes: 64,
        }
        .checked()
        .unwrap()
    }

    #[test]
    fn superblocks_are_a_bijection_of_the_pages() {
        for (c, d, p, b, n) in [(1, 1, 1, 4, 2), (2, 3, 1, 4, 5), (4, 2, 2, 3, 3), (8, 4, 1, 16, 8)] {
            let g = geometry(c, d, p, b, n);
            for pn in (1..=g.units()).filter(|n| g.units().is_multiple_of(*n)) {
                for bn in (1..=g.blocks_per_unit()).filter(|n| g.blocks_per_unit().is_multiple_of(*n)) {
                    let layout = SuperblockLayout::new(g, pn, bn).unwrap();
                    let mut seen = vec![false; g.pages() as usize];
                    for superblock in 0..layout.superblocks() {
                        for index in 0..layout.pages_per_superblock() {
                            let page = layout.page(superblock, index);
                            assert!(!std::mem::replace(&mut seen[page.index()], true), "{page:?} twice");
                            assert_eq!(layout.locate(page), (superblock, index));
                        }
                        assert_eq!(layout.blocks(superblock).count() as u32, pn * bn);
                    }
                    assert!(seen.iter().all(|s| *s));
                }
            }
        }
    }

    #[test]
    fn impossible_shapes_name_the_key() {
        let g = geometry(2, 2, 1, 4, 4);
        let err = Geometry { channels: 0, ..g }.checked().unwrap_err().to_string();
        assert!(err.contains("device.channels"), "{err}");
        let err = Geometry { sector_bytes: 3000, ..g }.checked().unwrap_err().to_string();
        assert!(err.contains("device.sector"), "{err}");
        let err = Geometry { channels: 4096, dies_per_channel: 4096, blocks_per_plane: 4096, ..g }
            .checked()
            .unwrap_err()
            .to_string();
        assert!(err.contains("at most"), "{err}");
        assert!(SuperblockLayout::new(g, 3, 1).unwrap_err().to_string().contains("ftl.pn"));
    }
}
