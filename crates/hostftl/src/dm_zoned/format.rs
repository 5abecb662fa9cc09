//! Bytes of the metadata: two sets of blocks in conventional zones (docs/formats/dm-zoned.md).

use nandscape_core::Ppn;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: u32 = u32::from_le_bytes(*b"NDZ1");
const VERSION: u32 = 1;
/// Bytes of a superblock.
const SUPERBLOCK: usize = 52;
/// Bytes of an entry of the table of chunks.
pub(super) const ENTRY: u64 = 8;
/// No zone.
pub(super) const NONE: u32 = u32::MAX;

/// What a layer must have in common with the one that wrote the zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub block_bytes: u32,
    pub zone_blocks: u32,
    pub zones: u32,
    pub conventional: u32,
    pub chunks: u32,
}

impl Identity {
    const fn fields(&self) -> [(&'static str, u32); 6] {
        [
            ("version", VERSION),
            ("block", self.block_bytes),
            ("blocks of a zone", self.zone_blocks),
            ("zones", self.zones),
            ("conventional zones", self.conventional),
            ("chunks", self.chunks),
        ]
    }

    /// 64-bit words of a zone's bitmap.
    pub const fn words(&self) -> u32 {
        self.zone_blocks.div_ceil(64)
    }
}

/// The blocks of a set: the superblock, the table of chunks, the bitmaps of all zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MetaLayout {
    /// Blocks of the table of chunks.
    pub map: u32,
    /// Blocks of a set, with the superblock.
    pub blocks: u32,
    /// From the first byte of a set to that of the other: whole pages, so that no page has parts of both.
    pub stride_bytes: u64,
}

impl MetaLayout {
    pub fn new(identity: &Identity, page_bytes: u32) -> Self {
        let block = u64::from(identity.block_bytes);
        let map = (u64::from(identity.chunks) * ENTRY).div_ceil(block);
        let bitmaps = (u64::from(identity.zones) * u64::from(identity.words()) * 8).div_ceil(block);
        let blocks = 1 + map + bitmaps;
        let mut stride_bytes = (blocks * block).next_multiple_of(page_bytes.into());
        while !stride_bytes.is_multiple_of(block) {
            stride_bytes += u64::from(page_bytes);
        }
        Self { map: map as u32, blocks: blocks as u32, stride_bytes }
    }
}

/// What the first block of a set says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    /// Number of the commit that wrote the set; the first is 1.
    pub generation: u64,
    /// The layer was shut down, and wrote nothing since.
    pub is_clean: bool,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

impl Superblock {
    /// As a block.
    pub fn encode(&self, identity: &Identity) -> Vec<u8> {
        let mut block = vec![0; identity.block_bytes as usize];
        block[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        block[4..8].copy_from_slice(&u32::from(self.is_clean).to_le_bytes());
        block[16..24].copy_from_slice(&self.generation.to_le_bytes());
        for (index, (_, field)) in identity.fields().into_iter().enumerate() {
            block[24 + index * 4..][..4].copy_from_slice(&field.to_le_bytes());
        }
        let hash = xxh3_64(&block[..SUPERBLOCK]);
        block[8..16].copy_from_slice(&hash.to_le_bytes());
        block
    }

    /// The superblock in a block, unless it is damaged or something else; or what differs between its layer
    /// and this one.
    pub fn decode(block: &[u8], identity: &Identity) -> Option<Result<Self, String>> {
        let mut bytes: [u8; SUPERBLOCK] = block.get(..SUPERBLOCK)?.try_into().ok()?;
        let hash = u64_at(&bytes, 8)?;
        bytes[8..16].fill(0);
        if u32_at(&bytes, 0)? != MAGIC || xxh3_64(&bytes) != hash {
            return None;
        }
        for (index, (name, expected)) in identity.fields().into_iter().enumerate() {
            let found = u32_at(&bytes, 24 + index * 4)?;
            if found != expected {
                return Some(Err(format!("{name}: found {found}, expected {expected} by its keys")));
            }
        }
        Some(Ok(Self { generation: u64_at(&bytes, 16)?, is_clean: u32_at(&bytes, 4)? != 0 }))
    }
}

/// Where the blocks of a chunk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Its data zone and its buffer zone, or [`NONE`].
    pub data: u32,
    pub buffer: u32,
}

impl Chunk {
    pub const UNMAPPED: Self = Self { data: NONE, buffer: NONE };

    /// As an entry of the table: zeroes for one that is not mapped.
    pub const fn encode(self) -> u64 {
        let (data, buffer) = (self.data.wrapping_add(1), self.buffer.wrapping_add(1));
        data as u64 | (buffer as u64) << 32
    }

    pub const fn decode(entry: u64) -> Self {
        Self { data: (entry as u32).wrapping_sub(1), buffer: ((entry >> 32) as u32).wrapping_sub(1) }
    }
}

/// 64-bit words as a block has them.
pub(super) fn put_words(words: impl Iterator<Item = u64>, block: &mut [u8]) {
    for (place, word) in block.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// The words of blocks.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

/// Number of a block among those of all zones, if 32 bits are enough.
pub(super) fn place(identity: &Identity, zone: u32, block: u32) -> Option<Ppn> {
    zone.checked_mul(identity.zone_blocks)?.checked_add(block).map(Ppn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity =
        Identity { block_bytes: 512, zone_blocks: 70, zones: 40, conventional: 8, chunks: 30 };

    #[test]
    fn superblocks_come_back_and_no_flipped_bit_goes_unnoticed() {
        let superblock = Superblock { generation: 1 << 40 | 7, is_clean: true };
        let block = superblock.encode(&IDENTITY);
        assert_eq!(Superblock::decode(&block, &IDENTITY), Some(Ok(superblock)));
        for bit in 0..SUPERBLOCK * 8 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&damaged, &IDENTITY), None, "bit {bit}");
        }
        assert_eq!(Superblock::decode(&block[..51], &IDENTITY), None);
        let other = Superblock::decode(&block, &Identity { chunks: 31, ..IDENTITY });
        assert_eq!(other, Some(Err("chunks: found 30, expected 31 by its keys".to_owned())));
    }

    #[test]
    fn sets_share_no_page_and_a_block_of_zeroes_maps_nothing() {
        let layout = MetaLayout::new(&IDENTITY, 2048);
        // 240 bytes of chunks, 40 bitmaps of two words.
        assert_eq!(layout, MetaLayout { map: 1, blocks: 1 + 1 + 2, stride_bytes: 2048 });
        assert_eq!(MetaLayout::new(&Identity { block_bytes: 4096, ..IDENTITY }, 2048).stride_bytes, 3 * 4096);
        assert_eq!(Chunk::decode(0), Chunk::UNMAPPED);
        let chunk = Chunk { data: 0, buffer: NONE - 1 };
        assert_eq!(Chunk::decode(chunk.encode()), chunk);
    }
}
