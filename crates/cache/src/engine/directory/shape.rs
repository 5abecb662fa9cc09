//! Arithmetic of blocks and their sub-blocks.

use nandscape_core::Extent;

/// Block and sub-block sizes, both powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    block_shift: u32,
    sub_shift: u32,
}

/// The part of a request that lies in one block, in bytes from the block's start.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub block: u64,
    pub start: u32,
    pub end: u32,
    /// Bytes of the block that exist: all but in a volume's last block.
    pub limit: u32,
}

impl Shape {
    pub fn new(block_bytes: u32) -> Self {
        debug_assert!(block_bytes.is_power_of_two() && block_bytes >= 512);
        Self {
            block_shift: block_bytes.trailing_zeros(),
            sub_shift: (block_bytes / 16).max(512).trailing_zeros(),
        }
    }

    pub const fn block_bytes(self) -> u32 {
        1 << self.block_shift
    }

    pub const fn sub_bytes(self) -> u32 {
        1 << self.sub_shift
    }

    /// Sub-blocks of a block.
    pub const fn subs(self) -> u32 {
        1 << (self.block_shift - self.sub_shift)
    }

    /// First byte of a block on its volume.
    pub const fn offset(self, block: u64) -> u64 {
        block << self.block_shift
    }

    /// Blocks that an extent touches: first, and one past the last.
    pub const fn blocks(self, extent: Extent) -> (u64, u64) {
        (
            extent.offset >> self.block_shift,
            (extent.end() + self.block_bytes() as u64 - 1) >> self.block_shift,
        )
    }

    /// The part of an extent in a block that it touches.
    pub fn piece(self, extent: Extent, block: u64, capacity: u64) -> Piece {
        let first = self.offset(block);
        let limit = u64::from(self.block_bytes()).min(capacity - first) as u32;
        let start = extent.offset.saturating_sub(first) as u32;
        let end = u64::from(limit).min(extent.end() - first) as u32;
        Piece { block, start, end, limit }
    }

    /// Sub-blocks that a piece touches.
    pub fn touched(self, piece: Piece) -> u16 {
        bits(piece.start >> self.sub_shift, piece.end.div_ceil(self.sub_bytes()))
    }

    /// All sub-blocks of a piece's block.
    pub fn whole(self, piece: Piece) -> u16 {
        self.touched(Piece { start: 0, end: piece.limit, ..piece })
    }

    /// Sub-blocks that a piece covers whole.
    pub fn covered(self, piece: Piece) -> u16 {
        let end = if piece.end == piece.limit {
            piece.end.div_ceil(self.sub_bytes())
        } else {
            piece.end >> self.sub_shift
        };
        let start = piece.start.div_ceil(self.sub_bytes());
        if start < end { bits(start, end) } else { 0 }
    }

    /// The first run of neighbouring sub-blocks of a set, in bytes, and the rest of the set.
    pub fn run(self, set: u16, limit: u32) -> Option<(u32, u32, u16)> {
        if set == 0 {
            return None;
        }
        let first = set.trailing_zeros();
        let len = (!(set >> first)).trailing_zeros().min(16 - first);
        let rest = set & !bits(first, first + len);
        Some((first << self.sub_shift, limit.min((first + len) << self.sub_shift), rest))
    }
}

fn bits(start: u32, end: u32) -> u16 {
    ((1_u32 << end) - (1_u32 << start)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_blocks_of_a_cut_off_block_end_where_the_volume_ends() {
        let shape = Shape::new(64 << 10);
        let piece = shape.piece(Extent::new(65_536 + 4096, 10_000 - 4096), 1, 65_536 + 10_000);
        assert_eq!((piece.start, piece.end, piece.limit), (4096, 10_000, 10_000));
        assert_eq!(shape.touched(piece), 0b110);
        assert_eq!(
            shape.covered(piece),
            0b110,
            "the last one has 1808 bytes, and all of them are in the piece"
        );
        assert_eq!(shape.run(0b110, piece.limit), Some((4096, 10_000, 0)));
        assert_eq!(shape.run(0xf00d, 65_536), Some((0, 4096, 0xf00c)));
        assert_eq!(shape.run(0xffff, 65_536), Some((0, 65_536, 0)));
    }

    #[test]
    fn a_piece_inside_a_sub_block_covers_none() {
        let shape = Shape::new(64 << 10);
        let piece = shape.piece(Extent::new(512, 1024), 0, 1 << 20);
        assert_eq!((shape.touched(piece), shape.covered(piece)), (1, 0));
    }
}
