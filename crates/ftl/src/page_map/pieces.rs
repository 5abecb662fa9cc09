//! Which log a block was written by, and the pieces in which streams are given space [streams-article 1.3.1]:
//! a piece is a fixed number of blocks, a stream takes a new one when the last is full, and a piece is given
//! back once none of its blocks holds data.

use super::logs::LogShape;

const NONE: u32 = u32::MAX;

/// Owners and pieces of a domain with streams.
#[derive(Debug)]
pub(super) struct Pieces {
    pub blocks_per_piece: u32,
    /// The log that opened each block; meaningful for blocks that are not free.
    logs: Vec<u16>,
    /// The piece of each block that counts for one, `NONE` for the others.
    piece: Vec<u32>,
    /// Blocks of each piece that are open or hold data.
    filled: Vec<u32>,
    unused: Vec<u32>,
    heads: Vec<Head>,
    counts: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    piece: u32,
    /// Blocks of it that were not opened yet.
    left: u32,
    stream: Option<u16>,
}

nandscape_core::state!(impl [] Pieces {
    saved: unused;
    tables: logs, piece, filled, heads, counts;
    fixed: blocks_per_piece;
});

nandscape_core::state!(impl [] Head { saved: piece, left; fixed: stream; });

impl Pieces {
    pub fn new(blocks: u32, blocks_per_piece: u32, logs: &[LogShape]) -> Self {
        let streams = logs.iter().filter_map(|log| log.stream).max().map_or(0, |last| usize::from(last) + 1);
        let pieces = Self::most(blocks, logs.len());
        Self {
            blocks_per_piece,
            logs: vec![0; blocks as usize],
            piece: vec![NONE; blocks as usize],
            filled: vec![0; pieces as usize],
            unused: (0..pieces).rev().collect(),
            heads: logs.iter().map(|log| Head { piece: NONE, left: 0, stream: log.stream }).collect(),
            counts: vec![0; streams],
        }
    }

    /// The log that opened a block.
    #[inline]
    pub fn log_of(&self, block: u32) -> usize {
        usize::from(self.logs[block as usize])
    }

    /// Pieces there can be at once: each has a block that counts, or is the present one of a log.
    pub const fn most(blocks: u32, logs: usize) -> u32 {
        blocks + logs as u32
    }

    /// The piece of a block that counts for one.
    #[inline]
    pub fn of(&self, block: u32) -> u32 {
        self.piece[block as usize]
    }

    /// Whether a block counts for a piece.
    pub fn has(&self, block: u32) -> bool {
        self.piece[block as usize] != NONE
    }

    /// The present piece of a log; `None` before its first.
    pub fn present(&self, log: usize) -> Option<u32> {
        Some(self.heads[log].piece).filter(|piece| *piece != NONE)
    }

    /// Blocks of a piece that are open or hold data; `None` while its log is going to open more.
    #[inline]
    pub fn blocks_of(&self, piece: u32, log: usize) -> Option<u32> {
        let Head { piece: present, left, .. } = self.heads[log];
        (present != piece || left == 0).then(|| self.filled[piece as usize])
    }

    /// A log took a free block.
    pub fn opened(&mut self, block: u32, log: usize) {
        self.logs[block as usize] = log as u16;
        if self.heads[log].left == 0 {
            self.close(log);
            let piece = self.unused.pop().expect("fewer pieces than blocks and logs");
            let head = &mut self.heads[log];
            (head.piece, head.left) = (piece, self.blocks_per_piece);
            if let Some(stream) = head.stream {
                self.counts[usize::from(stream)] += 1;
            }
        }
        let head = &mut self.heads[log];
        head.left -= 1;
        let was = std::mem::replace(&mut self.piece[block as usize], head.piece);
        assert_eq!(was, NONE, "the piece of block {block}, which log {log} opens in {head:?}");
        let filled = &mut self.filled[head.piece as usize];
        *filled += 1;
        assert!(*filled <= self.blocks_per_piece, "{filled} blocks in {head:?} of log {log}");
    }

    /// A block that is not open holds no data any more, or is given up.
    pub fn emptied(&mut self, block: u32) {
        let piece = std::mem::replace(&mut self.piece[block as usize], NONE);
        if piece == NONE {
            return;
        }
        let filled = self.filled[piece as usize];
        assert!(filled > 0, "block {block} leaves piece {piece}, which is empty");
        self.filled[piece as usize] = filled - 1;
        let head = self.heads[self.log_of(block)];
        if self.filled[piece as usize] == 0 && head.piece != piece {
            self.give_back(piece, head.stream);
        }
    }

    /// The log leaves its piece. Gives the blocks of it that were never opened.
    pub fn close(&mut self, log: usize) -> u32 {
        let Head { piece, left, stream } = self.heads[log];
        assert!(left < self.blocks_per_piece, "log {log} opened no block of piece {piece}, {left} are left");
        self.heads[log] = Head { piece: NONE, left: 0, stream };
        if piece != NONE && self.filled[piece as usize] == 0 {
            self.give_back(piece, stream);
        }
        left
    }

    fn give_back(&mut self, piece: u32, stream: Option<u16>) {
        assert!(self.unused.len() < self.filled.len(), "piece {piece} is given back, and all are unused");
        self.unused.push(piece);
        if let Some(stream) = stream {
            let count = &mut self.counts[usize::from(stream)];
            assert!(*count > 0, "stream {stream} gives back piece {piece}, and has none");
            *count -= 1;
        }
    }

    /// Blocks of the log's piece that were not opened yet.
    pub fn left(&self, log: usize) -> u32 {
        self.heads[log].left
    }

    /// Pieces that hold data of the stream, its present ones included.
    pub fn count(&self, stream: usize) -> u32 {
        self.counts[stream]
    }

    pub fn bytes(&self) -> u64 {
        let per_block = size_of::<u16>() + size_of::<u32>();
        let per_piece = 2 * size_of::<u32>();
        (self.logs.len() * per_block
            + self.filled.len() * per_piece
            + self.heads.len() * size_of::<Head>()
            + self.counts.len() * size_of::<u32>()) as u64
    }

    /// Checks the counts against the blocks; panics with the values.
    pub fn check(&self, counts_for_piece: impl Fn(u32) -> bool) {
        let mut filled = vec![0; self.filled.len()];
        for (block, piece) in (0..).zip(&self.piece) {
            assert_eq!(*piece != NONE, counts_for_piece(block), "whether block {block} is part of a piece");
            if *piece != NONE {
                filled[*piece as usize] += 1;
            }
        }
        assert_eq!(filled, self.filled, "filled blocks of pieces");
        let mut alive: Vec<bool> = filled.iter().map(|blocks| *blocks > 0).collect();
        for head in self.heads.iter().filter(|head| head.piece != NONE) {
            alive[head.piece as usize] = true;
        }
        let used = alive.iter().filter(|alive| **alive).count();
        assert_eq!(used + self.unused.len(), self.filled.len(), "pieces in use");
        assert!(self.unused.iter().all(|piece| !alive[*piece as usize]), "an unused piece holds data");
    }
}

#[cfg(test)]
mod tests {
    use super::super::logs::{LogKind, LogShape};
    use super::*;

    fn pieces() -> Pieces {
        let log = |stream| LogShape { kind: LogKind::Host, slots: 1, family: 0, gc: 0, wear: 0, stream };
        Pieces::new(8, 2, &[log(Some(0)), log(Some(1))])
    }

    #[test]
    fn a_piece_is_begun_when_the_last_is_full_and_given_back_when_it_is_empty() {
        let mut pieces = pieces();
        pieces.opened(3, 0);
        assert_eq!((pieces.count(0), pieces.count(1), pieces.left(0)), (1, 0, 1));
        pieces.opened(4, 0);
        assert_eq!((pieces.count(0), pieces.left(0)), (1, 0));
        pieces.opened(5, 0);
        assert_eq!((pieces.count(0), pieces.left(0)), (2, 1));
        pieces.emptied(3);
        assert_eq!(pieces.count(0), 2, "block 4 is left of the first");
        pieces.emptied(4);
        assert_eq!(pieces.count(0), 1);
        pieces.emptied(4);
        assert_eq!(pieces.count(0), 1, "said twice");
        pieces.emptied(5);
        assert_eq!(pieces.count(0), 1, "the present piece stays while it can be written");
        pieces.check(|_| false);
    }

    #[test]
    fn a_log_that_leaves_its_piece_says_what_it_did_not_use() {
        let mut pieces = pieces();
        assert_eq!(pieces.close(1), 0, "there was none");
        pieces.opened(0, 1);
        assert_eq!(pieces.close(1), 1);
        assert_eq!(pieces.count(1), 1, "its block still holds data");
        pieces.opened(2, 1);
        assert_eq!((pieces.count(1), pieces.left(1)), (2, 1));
        pieces.emptied(0);
        assert_eq!(pieces.count(1), 1);
        pieces.check(|block| block == 2);
    }
}
