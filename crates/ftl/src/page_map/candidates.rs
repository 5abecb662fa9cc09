//! What collection chooses among: single blocks, the blocks of each stream apart, or whole pieces.

use super::split::Split;
use crate::victim::{BlockInfo, BlockState, VictimFacts, VictimPolicy};
use nandscape_core::state;

const NONE: u32 = u32::MAX;

/// Sealed blocks, and the policy that chooses among them.
pub(super) struct Candidates {
    /// Numbers blocks, or pieces where these are collected as a whole.
    victim: Box<dyn VictimPolicy>,
    /// Victims of each stream apart, where streams have shares of the blocks.
    pub split: Option<Box<Split>>,
    whole: Option<Box<Whole>>,
}

/// What a block is part of. Without streams, or where nobody asks, all zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub family: usize,
    pub piece: u32,
    /// Blocks of the piece that hold data or are open; `None` while more are going to be opened.
    pub blocks: Option<u32>,
}

/// Pieces that are collected as a whole: a candidate is one whose blocks are all sealed. Once it is chosen
/// its blocks are the next to be emptied, one after the other.
struct Whole {
    /// Of each piece: valid pages of its sealed blocks; sealed while it is a candidate.
    infos: Vec<BlockInfo>,
    /// Sealed blocks of each piece.
    sealed: Vec<u32>,
    /// The block of each piece that was opened last, until the piece is chosen.
    last: Vec<u32>,
    /// For each block the one of its piece that was opened before it.
    before: Vec<u32>,
    /// Blocks of pieces that were chosen, the next one last.
    rest: Vec<u32>,
}

state!(impl [] Candidates { saved: victim; parts: split, whole; });
state!(impl [] Whole { saved: rest; tables: infos, sealed, last, before; });

impl Candidates {
    /// Of so many blocks; `pieces` is how many pieces there can be, where these are collected as a whole.
    pub fn new(
        victim: Box<dyn VictimPolicy>,
        split: Option<Split>,
        blocks: u32,
        pieces: Option<u32>,
    ) -> Self {
        let whole = pieces.map(|pieces| {
            let each = |value| vec![value; pieces as usize];
            Box::new(Whole {
                infos: vec![BlockInfo::default(); pieces as usize],
                sealed: each(0),
                last: each(NONE),
                before: vec![NONE; blocks as usize],
                rest: Vec::new(),
            })
        });
        Self { victim, split: split.map(Box::new), whole }
    }

    /// Whether it matters what a block is part of.
    #[inline]
    pub const fn tells_parts(&self) -> bool {
        self.split.is_some() || self.whole.is_some()
    }

    /// Whether pieces are collected as a whole.
    #[inline]
    pub const fn takes_pieces(&self) -> bool {
        self.whole.is_some()
    }

    /// A block of a piece was opened.
    pub fn opened(&mut self, block: u32, piece: u32) {
        let Some(whole) = &mut self.whole else { return };
        assert_ne!(whole.last[piece as usize], block, "block {block} is opened twice");
        whole.before[block as usize] = std::mem::replace(&mut whole.last[piece as usize], block);
    }

    /// A block is full. One that could not be emptied is the next to be tried.
    pub fn sealed(&mut self, block: u32, info: BlockInfo, invalid: u32, part: Part, now: u64) {
        assert_ne!(info.state, BlockState::Sealed, "block {block} of {part:?} is sealed twice");
        if let Some(whole) = &mut self.whole {
            let piece = part.piece as usize;
            whole.infos[piece].valid += info.valid;
            whole.sealed[piece] += 1;
            if info.state == BlockState::Victim {
                whole.rest.push(block);
            }
            self.settle(part, now);
        } else if let Some(split) = &mut self.split {
            split.sealed(part.family, block, info.valid, invalid, now);
        } else {
            self.victim.sealed(block, info.valid, now);
        }
    }

    /// The piece is a candidate from now on if all of its blocks are sealed.
    pub fn settle(&mut self, part: Part, now: u64) {
        let Some(whole) = &mut self.whole else { return };
        let piece = part.piece as usize;
        let is_chosen = whole.last[piece] == NONE;
        if part.blocks != Some(whole.sealed[piece]) || is_chosen {
            return;
        }
        let info = &mut whole.infos[piece];
        assert!(whole.sealed[piece] > 0, "piece {piece} has {info:?} and no sealed block: {part:?}");
        if info.state != BlockState::Sealed {
            info.state = BlockState::Sealed;
            self.victim.sealed(part.piece, info.valid, now);
        }
    }

    /// A sealed block lost a page; `valid` are left.
    #[inline]
    pub fn invalidated(&mut self, block: u32, valid: u32, part: Part, now: u64) {
        if let Some(whole) = &mut self.whole {
            let info = &mut whole.infos[part.piece as usize];
            debug_assert!(info.valid > valid, "block {block} of piece {} with {info:?}", part.piece);
            info.valid -= 1;
            if info.state == BlockState::Sealed {
                self.victim.invalidated(part.piece, info.valid, now);
            }
        } else if let Some(split) = &mut self.split {
            split.invalidated(part.family, block, valid, now);
        } else {
            self.victim.invalidated(block, valid, now);
        }
    }

    /// A sealed block is about to be emptied. With it all of its piece, if that is a candidate.
    pub fn removed(&mut self, block: u32, info: BlockInfo, invalid: u32, part: Part) {
        if let Some(whole) = &mut self.whole {
            let piece = part.piece as usize;
            let of_piece = &mut whole.infos[piece];
            assert!(of_piece.valid >= info.valid, "block {block} has {info:?} of {of_piece:?}");
            of_piece.valid -= info.valid;
            whole.sealed[piece] -= 1;
            if of_piece.state == BlockState::Sealed {
                of_piece.state = BlockState::Open;
                self.victim.removed(part.piece);
                let mut next = std::mem::replace(&mut whole.last[piece], NONE);
                while next != NONE {
                    whole.rest.push(next);
                    next = whole.before[next as usize];
                }
            }
            if let Some(at) = whole.rest.iter().rposition(|other| *other == block) {
                whole.rest.remove(at);
            } else {
                whole.unlink(block, piece);
            }
        } else if let Some(split) = &mut self.split {
            split.removed(part.family, block, invalid);
        } else {
            self.victim.removed(block);
        }
    }

    /// A block that holds nothing leaves its piece.
    pub fn left(&mut self, block: u32, piece: u32) {
        if let Some(whole) = &mut self.whole {
            whole.unlink(block, piece as usize);
        }
    }

    /// The block to empty next.
    pub fn pick(&mut self, facts: &VictimFacts<'_>) -> Option<u32> {
        if let Some(whole) = &self.whole {
            if let Some(block) = whole.rest.last() {
                return Some(*block);
            }
            let piece = self.victim.pick(&VictimFacts { blocks: &whole.infos, ..*facts })?;
            let mut block = whole.last[piece as usize];
            while whole.before[block as usize] != NONE {
                block = whole.before[block as usize];
            }
            return Some(block);
        }
        match &mut self.split {
            Some(split) => split.pick(facts),
            None => self.victim.pick(facts),
        }
    }

    /// Whether emptying a block gains something, or the piece that goes with it; `None` for a full block of a
    /// piece that was chosen before.
    pub fn gains(&self, valid: u32, part: Part, pages_per_block: u32) -> Option<bool> {
        let own = valid < pages_per_block;
        let Some(whole) = &self.whole else { return Some(own) };
        let of_piece = whole.infos[part.piece as usize];
        let pages = whole.sealed[part.piece as usize] * pages_per_block;
        let is_candidate = of_piece.state == BlockState::Sealed;
        if is_candidate { Some(of_piece.valid < pages) } else { own.then_some(true) }
    }

    /// DRAM of the pieces' tables.
    pub fn bytes(&self) -> u64 {
        self.whole.as_ref().map_or(0, |whole| 16 * whole.infos.len() as u64 + 4 * whole.before.len() as u64)
    }

    /// Checks the pieces against their blocks, those that are part of one; panics with the values.
    pub fn check(&self, blocks: impl Iterator<Item = (u32, Part, BlockInfo)>) {
        let Some(whole) = &self.whole else { return };
        let mut found = vec![(0, 0, None); whole.infos.len()];
        for (block, part, info) in blocks {
            let (sealed, valid, of) = &mut found[part.piece as usize];
            *of = Some(part);
            if info.state == BlockState::Sealed {
                *sealed += 1;
                *valid += info.valid;
            } else {
                assert!(!whole.rest.contains(&block), "block {block} is to be emptied: {info:?}");
            }
        }
        for (piece, (sealed, valid, part)) in found.into_iter().enumerate() {
            assert_eq!((whole.sealed[piece], whole.infos[piece].valid), (sealed, valid), "piece {piece}");
            let is_complete = part.is_some_and(|part| part.blocks == Some(sealed));
            let is_candidate = whole.infos[piece].state == BlockState::Sealed;
            let is_chosen = whole.last[piece] == NONE;
            assert_eq!(is_candidate, is_complete && !is_chosen, "piece {piece} is a candidate: {part:?}");
        }
    }
}

impl Whole {
    /// Takes a block out of the list of its piece, if it is there.
    fn unlink(&mut self, block: u32, piece: usize) {
        assert!((block as usize) < self.before.len(), "block {block} of piece {piece}");
        if self.last[piece] == block {
            self.last[piece] = self.before[block as usize];
            return;
        }
        let mut next = self.last[piece];
        while next != NONE {
            let before = self.before[next as usize];
            if before == block {
                self.before[next as usize] = self.before[block as usize];
                return;
            }
            next = before;
        }
    }
}
