//! The beginning of a checkpoint: of what device it is, and what state each block was in.

use super::format::{u32_at, u64_at};
use nandscape_core::{BlockId, Geometry};

/// What the header pages say, end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub blocks: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    /// The table has a bit for each page of a block.
    pub has_bits: bool,
    /// The first sequence number of a host write after the checkpoint began.
    pub start_seq: u64,
    /// Blocks that the journal keeps for itself.
    pub pool: Vec<BlockId>,
}

const HEADER_WORDS: usize = 7;

impl Header {
    pub fn new(geometry: &Geometry, has_bits: bool, start_seq: u64, pool: &[BlockId]) -> Self {
        Self {
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block,
            page_bytes: geometry.page_bytes,
            has_bits,
            start_seq,
            pool: pool.to_vec(),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::bytes(self.pool.len()));
        let low_high = [self.start_seq as u32, (self.start_seq >> 32) as u32];
        let fixed = [self.blocks, self.pages_per_block, self.page_bytes, u32::from(self.has_bits)];
        let words = fixed.into_iter().chain(low_high).chain([self.pool.len() as u32]);
        for word in words.chain(self.pool.iter().map(|block| block.0)) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Bytes of a header with so many reserved blocks.
    pub const fn bytes(pool: usize) -> usize {
        (HEADER_WORDS + pool) * 4
    }

    /// `None` if there are too few bytes, which means that a part is missing.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < Self::bytes(0) {
            return None;
        }
        let word = |index: usize| u32_at(bytes, index * 4);
        let count = word(6) as usize;
        if bytes.len() < Self::bytes(count) {
            return None;
        }
        Some(Self {
            blocks: word(0),
            pages_per_block: word(1),
            page_bytes: word(2),
            has_bits: word(3) != 0,
            start_seq: u64_at(bytes, 16),
            pool: (0..count).map(|index| BlockId(word(HEADER_WORDS + index))).collect(),
        })
    }
}

/// Bit of the write pointer in the table that says the block is bad.
const RETIRED: u32 = 1 << 31;

/// Erase count and programmed pages of each block at one moment.
#[derive(Clone, Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    record: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRecord<'a> {
    pub erase_count: u32,
    pub is_retired: bool,
    write_pointer: u32,
    bits: &'a [u8],
}

impl BlockRecord<'_> {
    /// Whether a page of the block was programmed at that moment.
    pub fn is_programmed(&self, index: u32) -> bool {
        index < self.write_pointer
            && (self.bits.is_empty() || self.bits[index as usize / 8] >> (index % 8) & 1 == 1)
    }
}

impl Table {
    /// Bytes of a block's record.
    pub const fn record_bytes(pages_per_block: u32, has_bits: bool) -> usize {
        8 + if has_bits { pages_per_block.div_ceil(8) as usize } else { 0 }
    }

    pub fn new(geometry: &Geometry, has_bits: bool) -> Self {
        let record = Self::record_bytes(geometry.pages_per_block, has_bits);
        Self { bytes: Vec::with_capacity(record * geometry.blocks() as usize), record }
    }

    /// The table from its parts, put end to end; `None` if the length is not that of so many blocks.
    pub fn from_bytes(bytes: Vec<u8>, geometry: &Geometry, has_bits: bool) -> Option<Self> {
        let record = Self::record_bytes(geometry.pages_per_block, has_bits);
        (bytes.len() == record * geometry.blocks() as usize).then_some(Self { bytes, record })
    }

    /// Adds the next block.
    pub fn push(
        &mut self,
        erase_count: u32,
        write_pointer: u32,
        is_retired: bool,
        is_programmed: impl Fn(u32) -> bool,
    ) {
        assert!(write_pointer < RETIRED, "{write_pointer} pages of a block are programmed");
        let flag = if is_retired { RETIRED } else { 0 };
        self.bytes.extend_from_slice(&erase_count.to_le_bytes());
        self.bytes.extend_from_slice(&(write_pointer | flag).to_le_bytes());
        let first = self.bytes.len();
        self.bytes.resize(first + self.record - 8, 0);
        if self.record > 8 {
            for index in (0..write_pointer).filter(|index| is_programmed(*index)) {
                self.bytes[first + index as usize / 8] |= 1 << (index % 8);
            }
        }
    }

    pub fn get(&self, block: BlockId) -> BlockRecord<'_> {
        let bytes = &self.bytes[block.index() * self.record..][..self.record];
        let pointer = u32_at(bytes, 4);
        BlockRecord {
            erase_count: u32_at(bytes, 0),
            is_retired: pointer & RETIRED != 0,
            write_pointer: pointer & !RETIRED,
            bits: &bytes[8..],
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        let header = Header {
            blocks: 24,
            pages_per_block: 8,
            page_bytes: 512,
            has_bits: true,
            start_seq: 1 << 33 | 5,
            pool: vec![BlockId(23), BlockId(11)],
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), Header::bytes(2));
        assert_eq!(Header::from_bytes(&bytes), Some(header));
        assert_eq!(Header::from_bytes(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn the_table_knows_each_page_where_order_is_free() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 2,
            pages_per_block: 10,
            page_bytes: 512,
            sector_bytes: 512,
            oob_bytes: 16,
        };
        let mut table = Table::new(&geometry, true);
        table.push(3, 10, false, |index| index % 3 == 0);
        table.push(4, 2, true, |_| true);
        let table = Table::from_bytes(table.as_bytes().to_vec(), &geometry, true).unwrap();
        let first = table.get(BlockId(0));
        assert_eq!((first.erase_count, first.is_retired), (3, false));
        assert!((0..10).all(|index| first.is_programmed(index) == (index % 3 == 0)));
        let second = table.get(BlockId(1));
        assert!(second.is_retired && second.is_programmed(1) && !second.is_programmed(2));
        assert!(Table::from_bytes(vec![0; 19], &geometry, true).is_none());
    }
}
