//! Where things are in the file. Everything follows from the geometry.

use nandscape_core::{BlockId, Geometry, Ppn};
use nandscape_media::checksum::Units;

/// The header fills the first of these pages of the file, the state the second, the configuration the rest up to [`TABLES`].
pub(crate) const STATE: u64 = 4096;
/// The configuration text.
pub(crate) const CONFIG: u64 = 8192;
/// Where the tables begin.
pub(crate) const TABLES: u64 = 64 << 10;
/// The longest configuration text.
pub(crate) const CONFIG_BYTES: u64 = TABLES - CONFIG;
/// Bytes of an entry of the block table.
pub(crate) const BLOCK_BYTES: u64 = 16;
/// Bytes of a page record before the checksums of its units.
pub(crate) const RECORD_HEAD: usize = 28;
/// Bytes of the longest page record.
pub(crate) const RECORD_MOST: usize = RECORD_HEAD + 64 * 4 + 4;

/// Offsets in the file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub geometry: Geometry,
    pub units: Units,
    pub record_bytes: u32,
    pub block_table: u64,
    pub page_table: u64,
    pub data: u64,
    pub file_bytes: u64,
}

impl Layout {
    /// The layout of an image of this shape.
    pub fn new(geometry: &Geometry) -> Self {
        let units = Units::new(geometry);
        let record_bytes = (RECORD_HEAD as u32 + 4 * units.count).next_multiple_of(8);
        let block_table = TABLES;
        let page_table = (block_table + u64::from(geometry.blocks()) * BLOCK_BYTES).next_multiple_of(4096);
        let data =
            (page_table + u64::from(geometry.pages()) * u64::from(record_bytes)).next_multiple_of(1 << 20);
        let file_bytes = data + geometry.capacity_bytes();
        Self { geometry: *geometry, units, record_bytes, block_table, page_table, data, file_bytes }
    }

    /// The entry of a block.
    pub fn block(&self, block: BlockId) -> u64 {
        self.block_table + u64::from(block.0) * BLOCK_BYTES
    }

    /// The record of a page.
    pub fn record(&self, page: Ppn) -> u64 {
        self.page_table + u64::from(page.0) * u64::from(self.record_bytes)
    }

    /// The bytes of a page.
    pub fn page(&self, page: Ppn) -> u64 {
        self.data + u64::from(page.0) * u64::from(self.geometry.page_bytes)
    }

    /// The bytes of a block.
    pub fn block_data(&self, block: BlockId) -> u64 {
        self.page(self.geometry.page(block, 0))
    }
}
