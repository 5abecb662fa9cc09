//! Which block of which volume.

/// A cache block of a volume, as one number: volume in the upper 16 bits, block number in the lower 48.
/// Packed, so that a list of entries with their slots takes 16 bytes for each and not 24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C, packed(4))]
pub struct BlockKey(pub u64);

impl BlockKey {
    /// Bits of a block number.
    pub const BLOCK_BITS: u32 = 48;

    /// Block `block` (counted in cache blocks from the first byte) of volume `volume`.
    pub const fn new(volume: u16, block: u64) -> Self {
        debug_assert!(block >> Self::BLOCK_BITS == 0);
        Self((volume as u64) << Self::BLOCK_BITS | block)
    }

    /// The volume.
    pub const fn volume(self) -> u16 {
        (self.0 >> Self::BLOCK_BITS) as u16
    }

    /// The block, counted in cache blocks from the volume's first byte.
    pub const fn block(self) -> u64 {
        self.0 & ((1 << Self::BLOCK_BITS) - 1)
    }
}
