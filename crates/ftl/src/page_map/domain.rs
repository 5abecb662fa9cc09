//! A collection domain: the blocks among which victims are chosen, their free pools and their open blocks. The whole device with dynamic
//! allocation, one plane with static.

use super::pool::Pool;
use crate::victim::{BlockInfo, BlockState, VictimFacts, VictimPolicy};
use crate::wear::WearPolicy;

/// Log of host writes.
pub(super) const HOST: usize = 0;
/// Log of moved pages, unless they share the host's.
pub(super) const GC: usize = 1;
/// Log of cold pages moved by static wear levelling.
pub(super) const WEAR: usize = 2;
const LOGS: usize = 3;

/// An open block: the next page to program and one past the last. Without a block both are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frontier {
    pub next: u32,
    pub end: u32,
    /// Device block number; meaningful while `next < end`.
    pub block: u32,
    lane: u32,
    /// The next border of a program unit, where the log steps on to another block.
    border: u32,
}

/// Open blocks that are written round robin, a program unit at a time.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub slots: Vec<Frontier>,
    cursor: usize,
}

/// Erased blocks of one die or plane.
#[derive(Debug)]
struct Lane {
    pool: Pool,
    /// Open blocks here, for each log.
    open: [u32; LOGS],
}

/// What a domain is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainShape {
    /// First device block.
    pub base: u32,
    pub lanes: u32,
    pub blocks_per_lane: u32,
    pub planes_per_lane: u32,
    pub pages_per_block: u32,
    /// Pages that are programmed together ([`nandscape_core::Capabilities::program_pages`]).
    pub program_pages: u32,
    /// Open blocks of each log; 0 where a log is not used.
    pub slots: [u32; LOGS],
}

pub(super) struct Domain {
    pub base: u32,
    pub blocks: u32,
    blocks_per_lane: u32,
    pages_per_block: u32,
    program_pages: u32,
    lanes: Vec<Lane>,
    /// Where the search for the next lane starts.
    rotor: usize,
    pub logs: [Log; LOGS],
    free_blocks: u32,
    /// Pages that can still be programmed, in free and in open blocks.
    pub free_pages: u64,
    /// Blocks that are not bad.
    pub good_blocks: u32,
    /// Invalid pages in sealed blocks: what collection could gain.
    pub invalid_sealed: u64,
    pub sealed: u32,
    /// GC runs while `free_pages` is below this ...
    pub low_pages: u64,
    /// ... until it is not below this.
    pub high_pages: u64,
    pub background_pages: u64,
    /// Blocks without which `logical_pages` do not fit any more.
    pub needed_blocks: u32,
    pub victim: Box<dyn VictimPolicy>,
    pub wear: Box<dyn WearPolicy>,
}

impl Domain {
    /// A domain whose good blocks are all erased. `good` says which are good.
    pub fn new(
        shape: &DomainShape,
        victim: Box<dyn VictimPolicy>,
        wear: Box<dyn WearPolicy>,
        good: impl Fn(u32) -> bool,
        erase_count: impl Fn(u32) -> u32,
    ) -> Self {
        let sorted = wear.sorts_free_blocks();
        let per_lane = shape.blocks_per_lane;
        let per_plane = per_lane / shape.planes_per_lane;
        let mut free_blocks = 0;
        let lanes = (0..shape.lanes)
            .map(|lane| {
                let mut pool = Pool::new(sorted, per_lane as usize);
                // Neighbouring blocks of different planes follow each other.
                for i in 0..per_lane {
                    let in_lane = i % shape.planes_per_lane * per_plane + i / shape.planes_per_lane;
                    let block = lane * per_lane + in_lane;
                    if good(shape.base + block) {
                        pool.put(block, erase_count(shape.base + block));
                        free_blocks += 1;
                    }
                }
                Lane { pool, open: [0; LOGS] }
            })
            .collect();
        let logs =
            shape.slots.map(|slots| Log { slots: vec![Frontier::default(); slots as usize], cursor: 0 });
        Self {
            base: shape.base,
            blocks: shape.lanes * per_lane,
            blocks_per_lane: per_lane,
            pages_per_block: shape.pages_per_block,
            program_pages: shape.program_pages,
            lanes,
            rotor: 0,
            logs,
            free_blocks,
            free_pages: u64::from(free_blocks) * u64::from(shape.pages_per_block),
            good_blocks: free_blocks,
            invalid_sealed: 0,
            sealed: 0,
            low_pages: 0,
            high_pages: 0,
            background_pages: 0,
            needed_blocks: 0,
            victim,
            wear,
        }
    }

    /// The page that `log` programs next, as its frontier: opens a block if need be, and falls back to another log when there is
    /// no free block. Gives the log that the page belongs to; `None` if nothing in the domain can be programmed.
    #[inline]
    pub fn frontier(&mut self, log: usize, infos: &mut [BlockInfo]) -> Option<(usize, Frontier)> {
        if let Some(slot) = self.logs[log].slots.get(self.logs[log].cursor)
            && slot.next < slot.end
        {
            return Some((log, *slot));
        }
        [log, HOST, GC, WEAR].into_iter().find_map(|log| Some((log, self.find_slot(log, infos)?)))
    }

    /// Moves the cursor of a log to a slot with room, opening a block where there is none.
    #[inline(never)]
    fn find_slot(&mut self, log: usize, infos: &mut [BlockInfo]) -> Option<Frontier> {
        for _ in 0..self.logs[log].slots.len() {
            let cursor = self.logs[log].cursor;
            let slot = self.logs[log].slots[cursor];
            if slot.next < slot.end {
                return Some(slot);
            }
            if self.free_blocks > 0 {
                let slot = self.open(log, infos);
                self.logs[log].slots[cursor] = slot;
                return Some(slot);
            }
            self.logs[log].step();
        }
        None
    }

    /// Takes a free block from the lane where this log has the fewest open blocks, the first from the rotor on.
    fn open(&mut self, log: usize, infos: &mut [BlockInfo]) -> Frontier {
        let lanes = self.lanes.len();
        let lane = (0..lanes)
            .map(|i| if self.rotor + i < lanes { self.rotor + i } else { self.rotor + i - lanes })
            .filter(|lane| !self.lanes[*lane].pool.is_empty())
            .min_by_key(|lane| self.lanes[*lane].open[log])
            .expect("a free block is in some lane");
        self.rotor = if lane + 1 == lanes { 0 } else { lane + 1 };
        let Lane { pool, open } = &mut self.lanes[lane];
        let block = if log == WEAR { pool.take_most_worn() } else { pool.take() };
        let block = self.base + block.expect("the lane is not empty");
        open[log] += 1;
        self.free_blocks -= 1;
        infos[block as usize] = BlockInfo { valid: 0, state: BlockState::Open };
        let next = block * self.pages_per_block;
        let end = next + self.pages_per_block;
        Frontier { next, end, block, lane: lane as u32, border: end.min(next + self.program_pages) }
    }

    /// The page at the cursor of a log was programmed. Seals the block when it was the last.
    #[inline]
    pub fn programmed(&mut self, log: usize, infos: &mut [BlockInfo], now: u64) {
        self.free_pages -= 1;
        let Log { slots, cursor } = &mut self.logs[log];
        let slot = &mut slots[*cursor];
        slot.next += 1;
        if slot.next < slot.border {
            return;
        }
        slot.border = slot.end.min(slot.next + self.program_pages);
        let slot = *slot;
        *cursor = if *cursor + 1 == slots.len() { 0 } else { *cursor + 1 };
        if slot.next == slot.end {
            self.lanes[slot.lane as usize].open[log] -= 1;
            self.seal(slot.block, infos, now);
        }
    }

    /// Makes a full block a candidate.
    pub fn seal(&mut self, block: u32, infos: &mut [BlockInfo], now: u64) {
        let info = &mut infos[block as usize];
        info.state = BlockState::Sealed;
        self.sealed += 1;
        self.invalid_sealed += u64::from(self.pages_per_block - info.valid);
        self.victim.sealed(block - self.base, info.valid, now);
    }

    /// The candidate is about to be emptied.
    pub fn unseal(&mut self, block: u32, infos: &mut [BlockInfo]) {
        let info = &mut infos[block as usize];
        info.state = BlockState::Victim;
        self.sealed -= 1;
        self.invalid_sealed -= u64::from(self.pages_per_block - info.valid);
        self.victim.removed(block - self.base);
    }

    /// The block at the cursor of a log failed a program: closes it. Gives the block.
    pub fn abandon(&mut self, log: usize, infos: &mut [BlockInfo]) -> u32 {
        let Log { slots, cursor } = &mut self.logs[log];
        let slot = std::mem::take(&mut slots[*cursor]);
        self.free_pages -= u64::from(slot.end - slot.next);
        self.lanes[slot.lane as usize].open[log] -= 1;
        infos[slot.block as usize].state = BlockState::Failed;
        slot.block
    }

    /// An emptied block was erased.
    pub fn release(&mut self, block: u32, erase_count: u32, infos: &mut [BlockInfo]) {
        infos[block as usize] = BlockInfo { valid: 0, state: BlockState::Free };
        let local = block - self.base;
        self.lanes[(local / self.blocks_per_lane) as usize].pool.put(local, erase_count);
        self.free_blocks += 1;
        self.free_pages += u64::from(self.pages_per_block);
        self.wear.erased(erase_count);
    }

    /// An emptied block is given up.
    pub fn retire(&mut self, block: u32, erase_count: u32, infos: &mut [BlockInfo]) {
        infos[block as usize] = BlockInfo { valid: 0, state: BlockState::Bad };
        self.good_blocks -= 1;
        self.wear.retired(erase_count);
    }

    /// The block that collection takes next.
    pub fn pick(&mut self, infos: &[BlockInfo], now: u64) -> Option<u32> {
        let blocks = &infos[self.base as usize..(self.base + self.blocks) as usize];
        let local = self.victim.pick(&VictimFacts { blocks, now })?;
        Some(self.base + local)
    }

    /// The sealed block with the fewest valid pages, by a scan: for policies that do not look and keep drawing full blocks.
    pub fn emptiest(&self, infos: &[BlockInfo]) -> Option<u32> {
        (self.base..self.base + self.blocks)
            .filter(|block| infos[*block as usize].state == BlockState::Sealed)
            .min_by_key(|block| infos[*block as usize].valid)
    }

    /// Open blocks when every log has all of its own.
    pub fn frontiers(&self) -> u32 {
        self.logs.iter().map(|log| log.slots.len() as u32).sum()
    }

    /// Checks counters, pools and frontiers against the blocks; panics with the values.
    pub fn check(&self, infos: &[BlockInfo], write_pointer: impl Fn(u32) -> u32) {
        let range = self.base..self.base + self.blocks;
        let count = |state| range.clone().filter(|b| infos[*b as usize].state == state).count() as u32;
        assert_eq!(self.sealed, count(BlockState::Sealed), "sealed blocks");
        assert_eq!(self.free_blocks, count(BlockState::Free), "free blocks");
        assert_eq!(self.good_blocks, self.blocks - count(BlockState::Bad), "good blocks");
        let invalid: u64 = range
            .clone()
            .filter(|b| infos[*b as usize].state == BlockState::Sealed)
            .map(|b| u64::from(self.pages_per_block - infos[b as usize].valid))
            .sum();
        assert_eq!(self.invalid_sealed, invalid, "invalid pages of sealed blocks");
        let mut pooled = 0;
        for (index, lane) in self.lanes.iter().enumerate() {
            for local in lane.pool.contents() {
                pooled += 1;
                assert_eq!((local / self.blocks_per_lane) as usize, index, "block {local} in a foreign pool");
                let block = self.base + local;
                assert_eq!(infos[block as usize], BlockInfo::default(), "block {block} in a pool");
                assert_eq!(write_pointer(block), 0, "block {block} in a pool");
            }
            let open: Vec<u32> = (0..LOGS)
                .map(|log| {
                    let slots = self.logs[log].slots.iter();
                    slots.filter(|s| s.next < s.end && s.lane as usize == index).count() as u32
                })
                .collect();
            assert_eq!(open, lane.open, "open blocks of lane {index}");
        }
        assert_eq!(pooled, self.free_blocks, "blocks in pools");
        let mut open_pages = 0;
        for slot in self.logs.iter().flat_map(|log| &log.slots).filter(|slot| slot.next < slot.end) {
            assert_eq!(infos[slot.block as usize].state, BlockState::Open, "{slot:?}");
            assert_eq!(write_pointer(slot.block), slot.next % self.pages_per_block, "{slot:?}");
            open_pages += u64::from(slot.end - slot.next);
        }
        let free_pages = u64::from(self.free_blocks) * u64::from(self.pages_per_block) + open_pages;
        assert_eq!(self.free_pages, free_pages, "pages that can be programmed");
    }
}

impl Log {
    fn step(&mut self) {
        self.cursor = if self.cursor + 1 == self.slots.len() { 0 } else { self.cursor + 1 };
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("base", &self.base)
            .field("blocks", &self.blocks)
            .field("free_blocks", &self.free_blocks)
            .field("free_pages", &self.free_pages)
            .field("sealed", &self.sealed)
            .field("invalid_sealed", &self.invalid_sealed)
            .finish_non_exhaustive()
    }
}
