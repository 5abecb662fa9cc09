//! The pieces that blocks are part of, as candidates for collection see them.

use super::{Domain, Part};

impl Domain {
    /// What a block is part of, where candidates are told apart by it.
    #[inline]
    pub fn part(&self, local: u32) -> Part {
        let Some(pieces) = self.pieces.as_ref().filter(|_| self.candidates.tells_parts()) else {
            return Part::default();
        };
        let (log, piece) = (pieces.log_of(local), pieces.of(local));
        let blocks = if self.candidates.takes_pieces() { pieces.blocks_of(piece, log) } else { None };
        Part { family: self.logs[log].shape.family.into(), piece, blocks }
    }

    /// A log has a block from now on.
    pub(super) fn opened(&mut self, local: u32, log: usize) {
        let Some(pieces) = &mut self.pieces else { return };
        pieces.opened(local, log);
        assert_eq!(pieces.log_of(local), log, "the log of block {local}, which it opened");
        self.candidates.opened(local, pieces.of(local));
    }

    /// A block that is not open has lost its last valid page.
    #[inline]
    pub fn emptied(&mut self, block: u32) {
        // One of a piece that is collected as a whole stays a part of it until it is erased.
        if let Some(pieces) = &mut self.pieces
            && !self.candidates.takes_pieces()
        {
            pieces.emptied(block - self.base);
        }
    }

    /// A block that holds nothing is no part of a piece any more.
    pub(super) fn leave(&mut self, block: u32, now: u64) {
        let local = block - self.base;
        let part = self.part(local);
        let Some(pieces) = &mut self.pieces else { return };
        pieces.emptied(local);
        assert!(!pieces.has(local), "block {block} is a part of {part:?}, and holds nothing");
        self.candidates.left(local, part.piece);
        let blocks = part.blocks.map(|blocks| blocks - 1).filter(|blocks| *blocks > 0);
        self.candidates.settle(Part { blocks, ..part }, now);
    }
}
