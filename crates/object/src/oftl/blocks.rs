//! States of blocks: which are free, which the update windows have, and how many pages of each are valid.

use super::layout::is_page;
use nandscape_core::{BlockId, BlockState as DeviceBlocks, Geometry, Ppn, Token};
use nandscape_ftl::victim::{BlockInfo, BlockState, VictimPolicy};
use std::collections::VecDeque;

/// The state of a block in its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockUse {
    /// All its pages are erased, or the block can be erased.
    Free = 0,
    /// In an update window, or of the system.
    Updating = 1,
    /// No page of it is free.
    Used = 2,
    /// Bad.
    Bad = 3,
}

/// What is kept of a block on the flash: 20 bits of erases, 10 of invalid pages, 2 of state [thesis A.3].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Erases; 2^20 - 1 stands for more.
    pub erases: u32,
    /// Invalid pages, or fewer; at most 1023.
    pub invalid: u32,
    /// Its state.
    pub state: BlockUse,
}

impl BlockEntry {
    /// As 32 bits, erases first.
    pub fn encode(self) -> u32 {
        self.erases.min((1 << 20) - 1) << 12 | self.invalid.min(1023) << 2 | self.state as u32
    }

    /// The entry of 32 bits.
    pub const fn decode(word: u32) -> Self {
        let state = match word & 3 {
            0 => BlockUse::Free,
            1 => BlockUse::Updating,
            2 => BlockUse::Used,
            _ => BlockUse::Bad,
        };
        Self { erases: word >> 12, invalid: word >> 2 & 1023, state }
    }
}

/// A block with free pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenBlock {
    pub block: u32,
    /// The page that is programmed next.
    pub next: u32,
}

/// The blocks that take pages of a kind, and whose pages the index on the flash need not know.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub open: Vec<OpenBlock>,
    /// Blocks without free pages.
    pub full: Vec<u32>,
    /// Blocks that are written by turns.
    lanes: usize,
    turn: usize,
    /// Free pages.
    pub room: u64,
}

impl Window {
    pub fn blocks(&self) -> impl Iterator<Item = u32> {
        self.full.iter().copied().chain(self.open.iter().map(|open| open.block))
    }

    pub const fn len(&self) -> usize {
        self.full.len() + self.open.len()
    }

    pub fn add(&mut self, block: u32, next: u32, pages: u32) {
        if next == pages {
            self.full.push(block);
        } else {
            self.open.push(OpenBlock { block, next });
            self.room += u64::from(pages - next);
        }
    }
}

/// All blocks.
pub(super) struct Blocks {
    pub pages: u32,
    pub infos: Vec<BlockInfo>,
    /// Blocks of which `valid` is the most there can be.
    inexact: Vec<bool>,
    inexact_count: u32,
    /// By die.
    free: Vec<VecDeque<u32>>,
    pub free_count: u64,
    die: usize,
    /// For data, and for metadata.
    pub windows: [Window; 2],
    /// Programs into a block wait for this.
    pub after: Vec<Token>,
    /// Entries as they are on the flash.
    pub persisted: Vec<u32>,
    pub victims: Box<dyn VictimPolicy>,
    /// Blocks of which a program failed, and which have left the windows.
    pub failed: Vec<u32>,
    /// Pages programmed so far: the clock of the victim policy.
    pub now: u64,
    /// Erases of all blocks.
    pub erases: u64,
    /// Blocks with more erases are not taken while others are there.
    pub most_erases: u32,
}

/// Which window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Data = 0,
    Metadata = 1,
}

impl Blocks {
    pub fn new(geometry: &Geometry, lanes: usize, victims: Box<dyn VictimPolicy>) -> Self {
        let count = geometry.blocks() as usize;
        let window = Window { lanes, ..Window::default() };
        Self {
            pages: geometry.pages_per_block,
            infos: vec![BlockInfo::default(); count],
            inexact: vec![false; count],
            inexact_count: 0,
            free: vec![VecDeque::new(); geometry.units() as usize],
            free_count: 0,
            die: 0,
            windows: [window.clone(), window],
            after: vec![Token::NONE; count],
            persisted: vec![0; count],
            victims,
            failed: Vec::new(),
            now: 0,
            erases: 0,
            most_erases: u32::MAX,
        }
    }

    /// The entry of a block as it is.
    pub fn entry(&self, block: u32, erases: u32) -> BlockEntry {
        let info = self.infos[block as usize];
        let state = match info.state {
            BlockState::Free => BlockUse::Free,
            BlockState::Open => BlockUse::Updating,
            BlockState::Bad => BlockUse::Bad,
            BlockState::Sealed | BlockState::Victim | BlockState::Failed | BlockState::Cache => {
                BlockUse::Used
            }
        };
        let invalid = if state == BlockUse::Used { self.pages - info.valid } else { 0 };
        BlockEntry { erases, invalid, state }
    }

    /// A block can be taken from now on.
    pub fn free(&mut self, block: u32, die: u32) {
        self.infos[block as usize] = BlockInfo { valid: 0, state: BlockState::Free };
        self.set_exact(block, true);
        self.free[die as usize].push_back(block);
        self.free_count += 1;
    }

    /// Takes a free block, of one die after the other; of a die the first that has not been erased too often.
    pub fn take_free(&mut self, device: &impl DeviceBlocks) -> Option<u32> {
        for _ in 0..self.free.len() {
            let die = self.die;
            self.die = (self.die + 1) % self.free.len();
            let fits = |block: &u32| device.erase_count(BlockId(*block)) <= self.most_erases;
            let index = self.free[die].iter().position(fits).unwrap_or(0);
            if let Some(block) = self.free[die].remove(index) {
                self.free_count -= 1;
                assert_eq!(device.write_pointer(BlockId(block)), 0, "block {block} is free");
                self.infos[block as usize] = BlockInfo { valid: 0, state: BlockState::Open };
                return Some(block);
            }
        }
        None
    }

    /// The next free page of a window, which has one.
    #[inline]
    pub fn allocate(&mut self, which: Which) -> Ppn {
        let window = &mut self.windows[which as usize];
        assert!(window.room > 0, "the window of {which:?} pages has room");
        let index = window.turn % window.lanes.min(window.open.len());
        window.turn = index + 1;
        let open = &mut window.open[index];
        let page = Ppn(open.block * self.pages + open.next);
        open.next += 1;
        window.room -= 1;
        if open.next == self.pages {
            let block = window.open.remove(index).block;
            window.full.push(block);
            window.turn = index;
        }
        page
    }

    /// A program of a window's block failed: nothing more goes there.
    pub fn give_up(&mut self, which: Which, block: u32) {
        let window = &mut self.windows[which as usize];
        if let Some(index) = window.open.iter().position(|open| open.block == block) {
            window.room -= u64::from(self.pages - window.open[index].next);
            window.open.remove(index);
            window.full.push(block);
        }
        self.infos[block as usize].state = BlockState::Failed;
    }

    #[inline]
    pub fn validate(&mut self, place: u32) {
        self.infos[(place / self.pages) as usize].valid += 1;
        self.now += 1;
    }

    /// A page is needed no more.
    #[inline]
    pub fn invalidate(&mut self, place: u32) {
        if !is_page(place) {
            return;
        }
        let block = place / self.pages;
        let info = &mut self.infos[block as usize];
        assert!(info.valid > 0, "page {place}: block {block} has a valid page");
        info.valid -= 1;
        if info.state == BlockState::Sealed {
            self.victims.invalidated(block, info.valid, self.now);
        }
    }

    /// A block has left the window: it can be collected.
    pub fn seal(&mut self, block: u32) {
        let info = &mut self.infos[block as usize];
        if info.state == BlockState::Failed {
            self.failed.push(block);
            return;
        }
        info.state = BlockState::Sealed;
        self.victims.sealed(block, info.valid, self.now);
    }

    /// A block is being emptied.
    pub fn take_victim(&mut self, block: u32) {
        if self.infos[block as usize].state == BlockState::Sealed {
            self.victims.removed(block);
            self.infos[block as usize].state = BlockState::Victim;
        }
    }

    pub fn is_exact(&self, block: u32) -> bool {
        !self.inexact[block as usize]
    }

    /// The number of valid pages is at most so many, or exactly.
    pub fn set_valid(&mut self, block: u32, valid: u32, is_exact: bool) {
        self.infos[block as usize].valid = valid;
        self.set_exact(block, is_exact);
        if self.infos[block as usize].state == BlockState::Sealed {
            self.victims.invalidated(block, valid, self.now);
        }
    }

    fn set_exact(&mut self, block: u32, is_exact: bool) {
        let before = std::mem::replace(&mut self.inexact[block as usize], !is_exact);
        self.inexact_count = self.inexact_count + u32::from(!is_exact) - u32::from(before);
    }

    /// Sealed blocks whose number of valid pages is not known exactly.
    pub fn inexact(&self) -> impl Iterator<Item = u32> {
        let end = if self.inexact_count == 0 { 0 } else { self.infos.len() as u32 };
        (0..end).filter(|block| {
            self.inexact[*block as usize] && self.infos[*block as usize].state == BlockState::Sealed
        })
    }

    pub fn bad(&mut self, block: u32) {
        self.infos[block as usize] = BlockInfo { valid: 0, state: BlockState::Bad };
        self.set_exact(block, true);
    }

    pub fn good(&self) -> u64 {
        self.infos.iter().filter(|info| info.state != BlockState::Bad).count() as u64
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        let each = size_of::<BlockInfo>() + 1 + size_of::<Token>() + 4 + 8 + 4;
        self.infos.len() as u64 * each as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_32_bits_as_documented() {
        let entry = BlockEntry { erases: 0xabcde, invalid: 0x155, state: BlockUse::Used };
        assert_eq!(entry.encode(), 0xabcd_e556);
        assert_eq!(BlockEntry::decode(0xabcd_e556), entry);
        let most = BlockEntry { erases: u32::MAX, invalid: 5_000, state: BlockUse::Bad };
        assert_eq!(most.encode(), u32::MAX);
        for state in [BlockUse::Free, BlockUse::Updating, BlockUse::Used, BlockUse::Bad] {
            let entry = BlockEntry { erases: 3, invalid: 64, state };
            assert_eq!(BlockEntry::decode(entry.encode()), entry);
        }
    }
}
