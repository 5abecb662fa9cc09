//! Where things are in the file. Everything follows from the geometry and the format version.
//!
//! Since version 2 there are two copies of state, block table and page table. No sector holds both copies of
//! an entry, and no entry lies in two, so that a failure of the machine leaves each copy whole or absent.

use nandscape_core::{BlockId, Geometry, Oob, OutOfBand as _, Ppn};
use nandscape_media::checksum::Units;

/// The newest format version that this program reads.
pub(crate) const VERSION: u32 = 3;

/// The format version that an image with so many bytes of OOB gets: the oldest that keeps them.
pub(crate) const fn version_for(oob_bytes: u32) -> u32 {
    if oob_bytes as usize > OOB_HEAD { 3 } else { 2 }
}
/// The header fills the first page of the file, the state the second, the configuration up to [`TABLES`].
pub(crate) const STATE: u64 = 4096;
/// The second copy of the state.
const SECOND_STATE: u64 = STATE + 2048;
pub(crate) const CONFIG: u64 = 8192;
pub(crate) const TABLES: u64 = 64 << 10;
/// The longest configuration text.
pub(crate) const CONFIG_BYTES: u64 = TABLES - CONFIG;
pub(crate) const BLOCK_BYTES: u64 = 16;
/// Bytes of a page record before the checksums of its units.
pub(crate) const RECORD_HEAD: usize = 28;
/// Bytes of the longest page record.
pub(crate) const RECORD_MOST: usize = 512;

/// Bytes of the OOB of logical pages, for which the first fields of a record are made.
pub(crate) const OOB_HEAD: usize = Oob::BYTES;

/// Most bytes of an OOB.
pub(crate) const OOB_MOST: usize = 64;

/// Offsets in the file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub geometry: Geometry,
    pub units: Units,
    pub record_bytes: u32,
    /// Where the rest of an OOB that is longer than [`OOB_HEAD`] lies in a record.
    pub oob_rest: usize,
    pub block_table: u64,
    pub page_table: u64,
    /// From a block's entry to its second copy; 0 where there is none.
    pub to_second_block: u64,
    /// From a page's record to its second copy; 0 where there is none.
    pub to_second_record: u64,
    pub data: u64,
    pub file_bytes: u64,
}

impl Layout {
    /// The layout of an image of this shape and format version, with so many bytes of OOB for a page.
    pub fn new(geometry: &Geometry, version: u32, oob_bytes: u32) -> Self {
        let units = Units::new(geometry);
        let has_copies = version >= 2;
        let oob_rest = RECORD_HEAD + 4 * units.count as usize;
        let least = oob_rest as u32 + oob_bytes.saturating_sub(OOB_HEAD as u32);
        let record_bytes = if has_copies { least.next_power_of_two() } else { least.next_multiple_of(8) };
        let block_table = TABLES;
        let block_bytes = (u64::from(geometry.blocks()) * BLOCK_BYTES).next_multiple_of(4096);
        let page_bytes = (u64::from(geometry.pages()) * u64::from(record_bytes)).next_multiple_of(4096);
        let (to_second_block, to_second_record) = if has_copies { (block_bytes, page_bytes) } else { (0, 0) };
        let page_table = block_table + block_bytes + to_second_block;
        let data = (page_table + page_bytes + to_second_record).next_multiple_of(1 << 20);
        let file_bytes = data + geometry.capacity_bytes();
        Self {
            geometry: *geometry,
            units,
            record_bytes,
            oob_rest,
            block_table,
            page_table,
            to_second_block,
            to_second_record,
            data,
            file_bytes,
        }
    }

    /// Whether there are two copies of state and tables.
    pub const fn has_copies(&self) -> bool {
        self.to_second_record != 0
    }

    /// Both places of the state; twice the same where there is one.
    pub const fn states(&self) -> [u64; 2] {
        [STATE, if self.has_copies() { SECOND_STATE } else { STATE }]
    }

    pub fn block(&self, block: BlockId) -> u64 {
        self.block_table + u64::from(block.0) * BLOCK_BYTES
    }

    #[inline]
    pub fn record(&self, page: Ppn) -> u64 {
        self.page_table + u64::from(page.0) * u64::from(self.record_bytes)
    }

    pub fn page(&self, page: Ppn) -> u64 {
        self.data + u64::from(page.0) * u64::from(self.geometry.page_bytes)
    }

    pub fn block_data(&self, block: BlockId) -> u64 {
        self.page(self.geometry.page(block, 0))
    }
}
