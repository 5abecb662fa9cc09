//! Blocks that no zone has.

use nandscape_core::{BlockId, BlockState, Geometry};
use std::collections::VecDeque;

/// Free blocks of each die, that which was freed first in front, so that erases spread over all of them.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    dies: Vec<Die>,
}

#[derive(Clone, Debug, Default)]
struct Die {
    /// Erased.
    clean: VecDeque<u32>,
    /// To be erased before they are used.
    dirty: VecDeque<u32>,
    /// Blocks that the zones of the die can still ask for.
    owed: u32,
}

/// A block that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub block: BlockId,
    pub needs_erase: bool,
}

impl Pool {
    /// The good blocks of a device that is wholly erased.
    pub fn new<D: BlockState>(device: &D, geometry: &Geometry) -> Self {
        let mut this = Self { dies: vec![Die::default(); geometry.units() as usize] };
        for block in (0..geometry.blocks()).map(BlockId) {
            if !device.is_bad(block) {
                this.dies[geometry.unit_of(block).index()].clean.push_back(block.0);
            }
        }
        this
    }

    /// Without any block, and the zones can ask for as many as in another one.
    pub fn like(other: &Self) -> Self {
        let die = |other: &Die| Die { owed: other.owed, ..Die::default() };
        Self { dies: other.dies.iter().map(die).collect() }
    }

    pub fn give(&mut self, unit: u32, block: BlockId, needs_erase: bool) {
        let die = &mut self.dies[unit as usize];
        if needs_erase { &mut die.dirty } else { &mut die.clean }.push_back(block.0);
    }

    /// A block is not free any more, if it was.
    pub fn drop(&mut self, unit: u32, block: BlockId) {
        let die = &mut self.dies[unit as usize];
        die.clean.retain(|free| *free != block.0);
        die.dirty.retain(|free| *free != block.0);
    }

    /// Takes a free block of a die, an erased one if there is any.
    pub fn take(&mut self, unit: u32) -> Option<Taken> {
        let die = &mut self.dies[unit as usize];
        match die.clean.pop_front() {
            Some(block) => Some(Taken { block: BlockId(block), needs_erase: false }),
            None => die.dirty.pop_front().map(|block| Taken { block: BlockId(block), needs_erase: true }),
        }
    }

    /// The zones of a die can ask for so many blocks more.
    pub fn owe(&mut self, unit: u32, blocks: u32) {
        self.dies[unit as usize].owed += blocks;
    }

    /// The zones of a die can ask for so many blocks fewer, or have got them.
    pub fn settle(&mut self, unit: u32, blocks: u32) {
        self.dies[unit as usize].owed -= blocks;
    }

    /// Free blocks of a die beyond what its zones can ask for; below zero where blocks have failed.
    pub fn spare(&self, unit: u32) -> i64 {
        let die = &self.dies[unit as usize];
        let free = (die.clean.len() + die.dirty.len()) as u32;
        i64::from(free) - i64::from(die.owed)
    }

    /// Free blocks of all dies.
    pub fn all(&self) -> impl Iterator<Item = BlockId> {
        let blocks = self.dies.iter().flat_map(|die| die.clean.iter().chain(&die.dirty));
        blocks.map(|block| BlockId(*block))
    }

    /// The die with the most spare blocks, of equals the first from `unit` on; none where no die has any.
    pub fn most_spare(&self, unit: u32) -> Option<u32> {
        let units = self.dies.len() as u32;
        let from = (0..units).rev().map(|step| (unit + step) % units);
        from.max_by_key(|unit| self.spare(*unit)).filter(|unit| self.spare(*unit) > 0)
    }
}
