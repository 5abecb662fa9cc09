//! Pages of the journal and its checkpoints as they lie on flash. Layout: `docs/formats/journal.md`. Numbers are little-endian.

use nandscape_core::{BlockId, Geometry, Lpn, Oob, Ppn};
use xxhash_rust::xxh3::Xxh3;

/// First bytes of every page.
const MAGIC: [u8; 8] = *b"NANDSJRN";
/// Version that is written, and the only one that is read.
const VERSION: u16 = 1;
/// Bytes before the payload.
pub(super) const HEADER_BYTES: usize = 48;
/// Bytes of a record in a journal page.
pub(super) const RECORD_BYTES: usize = 20;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    /// What the checkpoint is of: shape, reserved blocks, first sequence number.
    Header = 1,
    /// Erase count and programmed pages of each block when the checkpoint began.
    Table = 2,
    /// A slice of the map.
    Map = 3,
    /// The checkpoint is complete.
    End = 4,
    /// Records of what happened since.
    Records = 5,
}

impl Kind {
    fn of(number: u16) -> Option<Self> {
        [Self::Header, Self::Table, Self::Map, Self::End, Self::Records]
            .into_iter()
            .find(|kind| *kind as u16 == number)
    }
}

/// The fields before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHead {
    pub kind: Kind,
    /// Which checkpoint the page belongs to.
    pub generation: u64,
    /// Its number among the pages of this generation, from 0.
    pub index: u32,
    /// Which part of its kind: of the header, of the table, of the map.
    pub part: u32,
    /// The sequence number that comes next when the page is written.
    pub seq: u64,
}

impl PageHead {
    /// The OOB of the page, from which it is recognised without its data.
    pub fn oob(&self) -> Oob {
        Oob { lpn: Lpn::META, stream: self.kind as u16, seq: self.generation << 32 | u64::from(self.index) }
    }
}

/// What the OOB of a page says of it; `None` for pages that are not the journal's.
pub(super) fn from_oob(oob: &Oob) -> Option<(u64, u32, Kind)> {
    let kind = Kind::of(oob.stream).filter(|_| oob.lpn == Lpn::META)?;
    Some((oob.seq >> 32, oob.seq as u32, kind))
}

/// Lays a page out in `page`, which is wholly overwritten.
pub(super) fn encode(head: &PageHead, payload: &[u8], page: &mut [u8]) {
    page[..8].copy_from_slice(&MAGIC);
    page[8..10].copy_from_slice(&VERSION.to_le_bytes());
    page[10..12].copy_from_slice(&(head.kind as u16).to_le_bytes());
    page[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    page[16..24].copy_from_slice(&head.generation.to_le_bytes());
    page[24..28].copy_from_slice(&head.index.to_le_bytes());
    page[28..32].copy_from_slice(&head.part.to_le_bytes());
    page[32..40].copy_from_slice(&head.seq.to_le_bytes());
    let (body, rest) = page[HEADER_BYTES..].split_at_mut(payload.len());
    body.copy_from_slice(payload);
    rest.fill(0);
    let sum = checksum(page, payload.len());
    page[40..48].copy_from_slice(&sum.to_le_bytes());
}

/// Takes a page apart; `None` if it is not one of the journal, or damaged.
pub(super) fn decode(page: &[u8]) -> Option<(PageHead, &[u8])> {
    let length = u32_at(page, 12) as usize;
    if page[..8] != MAGIC || u16_at(page, 8) != VERSION || length > page.len() - HEADER_BYTES {
        return None;
    }
    if checksum(page, length) != u64_at(page, 40) {
        return None;
    }
    let head = PageHead {
        kind: Kind::of(u16_at(page, 10))?,
        generation: u64_at(page, 16),
        index: u32_at(page, 24),
        part: u32_at(page, 28),
        seq: u64_at(page, 32),
    };
    Some((head, &page[HEADER_BYTES..HEADER_BYTES + length]))
}

/// Over everything but the checksum itself.
fn checksum(page: &[u8], length: usize) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&page[..40]);
    hash.update(&page[HEADER_BYTES..HEADER_BYTES + length]);
    hash.digest()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Something that the flash alone does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Logical pages hold nothing: every version with a smaller sequence number is dropped.
    Drop { first: u32, count: u32, seq: u64 },
    /// The newest data of a logical page is here again, after a later copy was thrown away.
    Place { page: u32 },
    /// The block is bad from now on.
    Retire { block: u32 },
}

impl Record {
    pub fn write(&self, out: &mut Vec<u8>) {
        let (kind, a, b, seq) = match *self {
            Self::Drop { first, count, seq } => (1u32, first, count, seq),
            Self::Place { page } => (2, page, 0, 0),
            Self::Retire { block } => (3, block, 0, 0),
        };
        for word in [kind, a, b] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&seq.to_le_bytes());
    }

    /// The records of a page; `None` if one of them is of no known kind.
    pub fn read_all(payload: &[u8]) -> Option<Vec<Self>> {
        let records = payload.chunks_exact(RECORD_BYTES).map(|bytes| {
            let a = u32_at(bytes, 4);
            match u32_at(bytes, 0) {
                1 => Some(Self::Drop { first: a, count: u32_at(bytes, 8), seq: u64_at(bytes, 12) }),
                2 => Some(Self::Place { page: a }),
                3 => Some(Self::Retire { block: a }),
                _ => None,
            }
        });
        records.collect()
    }
}

/// What the header pages say, end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub blocks: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    /// The table has a bit for each page of a block.
    pub has_bits: bool,
    /// Every page programmed before the checkpoint began has a smaller sequence number, every host write after it at least this.
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

/// What the table says of a block.
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

/// What a program and the map call a page: 0 is none, so that a map without pages is a map of zeroes.
pub(super) const fn entry_of(page: Ppn) -> u32 {
    page.0 + 1
}

/// The page of a map entry.
pub(super) const fn page_of(entry: u32) -> Option<Ppn> {
    if entry == 0 { None } else { Some(Ppn(entry - 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_back_and_every_flipped_bit_is_noticed() {
        let head = PageHead { kind: Kind::Map, generation: 7, index: 3, part: 2, seq: 99 };
        let payload: Vec<u8> = (0..100).collect();
        let mut page = vec![0xAA; 512];
        encode(&head, &payload, &mut page);
        assert_eq!(decode(&page), Some((head, payload.as_slice())));
        assert_eq!(from_oob(&head.oob()), Some((7, 3, Kind::Map)));
        for bit in 0..(HEADER_BYTES + 100) * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&page), None, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn records_and_headers_read_back() {
        let records = [
            Record::Drop { first: 5, count: 70_000, seq: 1 << 40 },
            Record::Place { page: 8 },
            Record::Retire { block: 9 },
        ];
        let mut bytes = Vec::new();
        for record in &records {
            record.write(&mut bytes);
        }
        assert_eq!(Record::read_all(&bytes).unwrap(), records);
        bytes[0] = 9;
        assert_eq!(Record::read_all(&bytes), None);
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
