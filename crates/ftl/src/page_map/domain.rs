//! A collection domain: the blocks among which victims are chosen, their free pools and their open blocks.
//! The whole device or a reclaim group with dynamic allocation, one plane with static.

mod choose;
mod parts;
mod sizes;

use super::candidates::{Candidates, Part};
use super::config::Frontiers;
use super::erases::Erases;
use super::logs::{HOST, Log, LogKind, LogShape};
use super::marks::{DomainShape, Marks};
use super::pieces::Pieces;
use super::pool::Pool;
use crate::victim::{BlockInfo, BlockState};
use crate::wear::WearPolicy;
use nandscape_core::{Ppn, QuietRoom, Token, state};

/// An open block: the next page to program and one past the last. Without a block both are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frontier {
    pub next: u32,
    pub end: u32,
    /// Device block number; meaningful while `next < end`.
    pub block: u32,
    pub lane: u32,
    /// The next border of a program unit, where the log steps on to another block.
    border: u32,
}

/// A partly written block that a start found when its log had all the open blocks it may have.
#[derive(Clone, Copy, Debug, Default)]
struct Leftover {
    block: u32,
    log: usize,
    next: u32,
}

/// Blocks and pages of a domain by what they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub free_blocks: u32,
    /// Pages that can still be programmed, in free and in open blocks.
    pub free_pages: u64,
    /// Blocks that are not bad.
    pub good_blocks: u32,
    /// Invalid pages in sealed blocks: what collection could gain.
    pub invalid_sealed: u64,
    pub sealed: u32,
}

pub(super) struct Domain {
    pub base: u32,
    pub blocks: u32,
    pub pages_per_block: u32,
    program_pages: u32,
    /// Erased blocks of each die or plane.
    pub lanes: Vec<Pool>,
    /// Open blocks of each log on each lane, a log at a time.
    pub open_on: Vec<u32>,
    /// Where the search for the next lane starts.
    rotor: usize,
    pub logs: Vec<Log>,
    /// Open blocks that each log may have, by what is in use, and while as much is in use as now.
    frontiers: Frontiers,
    share: u32,
    /// Open blocks of all logs, a log at a time.
    pub slots: Vec<Frontier>,
    /// Who owns what, where there are streams.
    pub pieces: Option<Box<Pieces>>,
    pub counts: Counts,
    pub marks: Marks,
    /// The victim that is being emptied step by step, and the completion of the moves so far.
    pub victim_in_hand: Option<(u32, Token)>,
    leftovers: Vec<Leftover>,
    pub erases: Erases,
    pub candidates: Candidates,
    pub wear: Box<dyn WearPolicy>,
}

state!(impl [] Domain {
    saved: rotor, share, slots, counts, marks, victim_in_hand, leftovers, erases, candidates, wear;
    tables: lanes, open_on, logs;
    parts: pieces;
    fixed: base, blocks, pages_per_block, program_pages, frontiers;
});

state!(impl [] Frontier { saved: next, end, block, lane, border; });
state!(impl [] Leftover { saved: block, log, next; });
state!(impl [] Counts { saved: free_blocks, free_pages, good_blocks, invalid_sealed, sealed; });

impl Domain {
    /// Erased good blocks are free, the others wait to be taken over; `is_erased` is `None` for a bad one.
    pub fn new(
        shape: &DomainShape,
        logs: &[LogShape],
        frontiers: Frontiers,
        candidates: Candidates,
        wear: Box<dyn WearPolicy>,
        is_erased: impl Fn(u32) -> Option<bool>,
        erase_count: impl Fn(u32) -> u32,
    ) -> Self {
        let sorted = wear.sorts_free_blocks();
        let per_lane = shape.blocks_per_lane;
        let per_plane = per_lane / shape.planes_per_lane;
        let (mut free_blocks, mut good_blocks) = (0, 0);
        let lanes = (0..shape.lanes)
            .map(|lane| {
                let mut pool = Pool::new(sorted, per_lane as usize);
                // Neighbouring blocks of different planes follow each other.
                for i in 0..per_lane {
                    let in_lane = i % shape.planes_per_lane * per_plane + i / shape.planes_per_lane;
                    let block = lane * per_lane + in_lane;
                    let Some(is_free) = is_erased(shape.base + block) else { continue };
                    good_blocks += 1;
                    if is_free {
                        pool.put(block, erase_count(shape.base + block));
                        free_blocks += 1;
                    }
                }
                pool
            })
            .collect();
        let blocks = shape.lanes * per_lane;
        let has_streams = shape.blocks_per_piece > 0;
        // A stream's logs count from its first write on.
        let logs_in_use = Log::lay_out(logs, !has_streams);
        let slots = logs_in_use.iter().map(|log| log.width() as usize).sum();
        let mut this = Self {
            base: shape.base,
            blocks,
            pages_per_block: shape.pages_per_block,
            program_pages: shape.program_pages,
            lanes,
            open_on: vec![0; logs.len() * shape.lanes as usize],
            rotor: 0,
            logs: logs_in_use,
            share: frontiers.of(1),
            frontiers,
            slots: vec![Frontier::default(); slots],
            pieces: has_streams.then(|| Box::new(Pieces::new(blocks, shape.blocks_per_piece, logs))),
            counts: Counts {
                free_blocks,
                free_pages: u64::from(free_blocks) * u64::from(shape.pages_per_block),
                good_blocks,
                invalid_sealed: 0,
                sealed: 0,
            },
            marks: Marks::new(shape),
            victim_in_hand: None,
            leftovers: Vec::new(),
            erases: Erases::new(shape.erases_under_way as usize),
            candidates,
            wear,
        };
        this.set_marks();
        this
    }

    /// Whether the block is one of this domain.
    pub const fn owns(&self, block: u32) -> bool {
        block.wrapping_sub(self.base) < self.blocks
    }

    /// Blocks of a lane.
    pub const fn blocks_per_lane(&self) -> u32 {
        self.blocks / self.lanes.len() as u32
    }

    /// Free blocks that host writes leave to collection: none if logs lend each other room.
    fn kept_blocks(&self) -> u32 {
        self.pieces.is_some().into()
    }

    /// Watermarks for the logs that are in use.
    fn set_marks(&mut self) {
        self.marks.set(self.open_slots().into(), self.pieces.is_some());
    }

    /// Puts collection off until only the floor is left, or does not.
    pub fn defer(&mut self, deferred: bool) {
        self.marks.deferred = deferred;
        self.set_marks();
    }

    /// Room for host writes above the floor; `None` with streams, whose pieces divide the room.
    pub fn quiet_room(&self) -> Option<QuietRoom> {
        let floor = self.marks.floor_pages(self.pieces.is_some());
        self.pieces.is_none().then(|| QuietRoom {
            now_pages: self.counts.free_pages.saturating_sub(floor),
            least_pages: self.marks.low_pages - floor,
        })
    }

    /// Takes over a block that a log was writing when the device was last used, up to page `next`.
    pub fn reopen(&mut self, block: u32, log: usize, next: u32, infos: &mut [BlockInfo]) {
        assert!(next < self.pages_per_block, "block {block} is reopened at page {next}, and is full");
        self.adopt(block, log, infos);
        self.counts.free_pages += u64::from(self.pages_per_block - next);
        let leftover = Leftover { block, log, next };
        let is_empty = |slot: &usize| self.slots[*slot].next == self.slots[*slot].end;
        match self.logs[log].range().find(is_empty) {
            Some(slot) => self.slots[slot] = self.go_on(log, leftover),
            None => self.leftovers.push(leftover),
        }
    }

    /// A log goes on in a block from its next page.
    fn go_on(&mut self, log: usize, Leftover { block, next, .. }: Leftover) -> Frontier {
        let lane = (block - self.base) / self.blocks_per_lane();
        assert!(next < self.pages_per_block, "log {log} goes on in block {block} at page {next}");
        self.open_on[log * self.lanes.len() + lane as usize] += 1;
        let first = block * self.pages_per_block;
        let end = first + self.pages_per_block;
        let unit = next / self.program_pages * self.program_pages + self.program_pages;
        Frontier { next: first + next, end, block, lane, border: end.min(first + unit) }
    }

    /// A partly written block of this log, or of any of its family.
    fn leftover(&mut self, log: usize, of_family: bool) -> Option<Frontier> {
        if self.leftovers.is_empty() {
            return None;
        }
        let family = |log: usize| self.logs[log].shape.family;
        let suits = |other: &Leftover| other.log == log || of_family && family(other.log) == family(log);
        let index = self.leftovers.iter().position(suits)?;
        let leftover = self.leftovers.swap_remove(index);
        assert!(self.counts.free_pages > 0, "{leftover:?} has room, and the domain has none");
        Some(self.go_on(log, leftover))
    }

    /// Pages that can be programmed in partly written blocks of some logs that wait.
    pub fn leftover_pages(&self, counts: impl Fn(usize) -> bool) -> u64 {
        let leftovers = self.leftovers.iter().filter(|leftover| counts(leftover.log));
        leftovers.map(|leftover| u64::from(self.pages_per_block - leftover.next)).sum()
    }

    /// Takes over a block that is written no further.
    pub fn take_over(&mut self, block: u32, log: usize, infos: &mut [BlockInfo], now: u64) {
        self.adopt(block, log, infos);
        self.seal(block, infos, now);
    }

    /// A block that a log had opened before this start.
    fn adopt(&mut self, block: u32, log: usize, infos: &mut [BlockInfo]) {
        let info = &mut infos[block as usize];
        assert_eq!(info.state, BlockState::Free, "block {block}, which log {log} wrote before");
        info.state = BlockState::Open;
        self.opened(block - self.base, log);
    }

    /// A log holds data from before: it is in use.
    pub fn use_log(&mut self, log: usize) {
        if self.logs[log].shape.kind == LogKind::Host {
            self.activate(log);
        } else {
            self.begin_logs(log);
        }
    }

    /// A stream is written for the first time: its logs are kept in reserve from now on.
    pub fn activate(&mut self, log: usize) {
        assert_eq!(self.logs[log].shape.kind, LogKind::Host, "log {log}, which a host write comes to");
        self.logs[log].active = true;
        let is_in_use = |log: &&Log| log.active && log.shape.kind == LogKind::Host;
        self.share = self.frontiers.of(self.logs.iter().filter(is_in_use).count());
        self.begin_logs(log);
    }

    /// Gives a log, and those that its survivors go to, their slots, unless they have them.
    fn begin_logs(&mut self, log: usize) {
        let LogShape { gc, wear, .. } = self.logs[log].shape;
        for log in [log, usize::from(gc), usize::from(wear)] {
            if self.logs[log].width() == 0 {
                let first = self.slots.len();
                let slots = self.slots_of(log);
                self.slots.resize(first + slots as usize, Frontier::default());
                self.logs[log].begin(first as u32, slots);
            }
            assert!(self.logs[log].range().end <= self.slots.len(), "slots of {:?}", self.logs[log]);
        }
        self.share_out();
    }

    /// Open blocks that a log may have now.
    fn slots_of(&self, log: usize) -> u32 {
        let LogShape { kind, slots, .. } = self.logs[log].shape;
        if kind == LogKind::Wear || slots == 0 { slots } else { self.share }
    }

    /// Divides the open blocks among the logs in use. One that has more than its share keeps a block that is
    /// partly written until it is full ([`Self::give_up_slot`]).
    fn share_out(&mut self) {
        for log in 0..self.logs.len() {
            while self.logs[log].width() > self.slots_of(log) && self.has_no_block(self.logs[log].last()) {
                self.logs[log].narrow();
            }
        }
        self.set_marks();
    }

    /// Takes the full slot at the cursor from a log that has more than its share; whether it did.
    fn give_up_slot(&mut self, log: usize) -> bool {
        if self.pieces.is_none() || self.logs[log].width() <= self.slots_of(log) {
            return false;
        }
        let (cursor, last) = (self.logs[log].cursor as usize, self.logs[log].last());
        assert!(self.has_no_block(cursor), "log {log} gives up {:?}, which has room", self.slots[cursor]);
        self.slots[cursor] = std::mem::take(&mut self.slots[last]);
        self.logs[log].narrow();
        self.set_marks();
        true
    }

    /// Where the pages of a block go that is emptied because of wear or of anything else.
    pub fn target(&self, block: u32, is_wear: bool) -> usize {
        let source = self.pieces.as_ref().map_or(HOST, |pieces| pieces.log_of(block - self.base));
        let LogShape { gc, wear, .. } = self.logs[source].shape;
        usize::from(if is_wear { wear } else { gc })
    }

    /// Pages that the host or collection can program in a log: free blocks, open blocks of its family.
    pub fn room(&self, log: usize, is_host: bool) -> u64 {
        if self.pieces.is_none() {
            return self.counts.free_pages;
        }
        let family = self.logs[log].shape.family;
        let kept = if is_host { self.kept_blocks() } else { 0 };
        let free = u64::from(self.counts.free_blocks.saturating_sub(kept)) * u64::from(self.pages_per_block);
        let relatives = self.logs.iter().filter(|other| other.shape.family == family);
        let open: u64 = relatives.map(|log| self.open_pages_of(log)).sum();
        free + open + self.leftover_pages(|log| self.logs[log].shape.family == family)
    }

    fn open_pages_of(&self, log: &Log) -> u64 {
        self.slots[log.range()].iter().map(|slot| u64::from(slot.end - slot.next)).sum()
    }

    /// Pages that can be programmed in the open blocks of a log.
    pub fn open_pages(&self, log: usize) -> u64 {
        self.open_pages_of(&self.logs[log])
    }

    /// The page that a log programs next, if there is one in the block at its cursor, and that block.
    #[inline(always)]
    pub fn frontier(&self, log: usize) -> Option<(Ppn, u32)> {
        debug_assert!(self.logs[log].shape.slots > 0, "log {log} is not used");
        let slot = &self.slots[self.logs[log].cursor as usize];
        (slot.next < slot.end).then_some((Ppn(slot.next), slot.block))
    }

    /// Makes room at the cursor of a log: opens a block if need be, or, without a free block, falls back to
    /// another log of the family. Gives the log with room, if there is one.
    #[inline(never)]
    pub fn find_frontier(&mut self, log: usize, is_host: bool, infos: &mut [BlockInfo]) -> Option<usize> {
        let kept_blocks = if is_host { self.kept_blocks() } else { 0 };
        let family = self.logs[log].shape.family;
        let relatives = (0..self.logs.len()).filter(|other| *other != log);
        std::iter::once(log).chain(relatives).find(|other| {
            self.logs[*other].shape.family == family && self.find_slot(*other, kept_blocks, infos)
        })
    }

    fn has_no_block(&self, slot: usize) -> bool {
        self.slots[slot].next == self.slots[slot].end
    }

    /// Moves the cursor of a log to a slot with room, opening a block where there is none.
    fn find_slot(&mut self, log: usize, kept_blocks: u32, infos: &mut [BlockInfo]) -> bool {
        for _ in 0..self.logs[log].width() {
            while self.has_no_block(self.logs[log].cursor as usize) && self.give_up_slot(log) {}
            let cursor = self.logs[log].cursor as usize;
            let slot = self.slots[cursor];
            assert!(self.logs[log].range().contains(&cursor), "cursor {cursor} of {:?}", self.logs[log]);
            if slot.next < slot.end {
                return true;
            }
            if let Some(frontier) = self.leftover(log, false) {
                self.slots[cursor] = frontier;
                return true;
            }
            if self.counts.free_blocks > kept_blocks {
                self.slots[cursor] = self.open(log, infos);
                return true;
            }
            if let Some(frontier) = self.leftover(log, true) {
                self.slots[cursor] = frontier;
                return true;
            }
            self.logs[log].step();
        }
        false
    }

    /// Opens a free block of the lane where the log has fewest open blocks, from the rotor on.
    fn open(&mut self, log: usize, infos: &mut [BlockInfo]) -> Frontier {
        let lanes = self.lanes.len();
        let lane = (0..lanes)
            .map(|i| if self.rotor + i < lanes { self.rotor + i } else { self.rotor + i - lanes })
            .filter(|lane| !self.lanes[*lane].is_empty())
            .min_by_key(|lane| self.open_on[log * lanes + lane])
            .expect("a free block is in some lane");
        self.rotor = if lane + 1 == lanes { 0 } else { lane + 1 };
        let pool = &mut self.lanes[lane];
        let is_wear = self.logs[log].shape.kind == LogKind::Wear;
        let local = if is_wear { pool.take_most_worn() } else { pool.take() };
        let local = local.expect("the lane is not empty");
        let block = self.base + local;
        self.counts.free_blocks -= 1;
        let info = &mut infos[block as usize];
        assert_eq!(*info, BlockInfo::default(), "block {block}, which lane {lane} gave log {log}");
        info.state = BlockState::Open;
        self.opened(local, log);
        self.go_on(log, Leftover { block, log, next: 0 })
    }

    /// The page at the cursor of a log was programmed. Seals the block when it was the last.
    #[inline(always)]
    pub fn programmed(&mut self, log: usize, infos: &mut [BlockInfo], now: u64) {
        self.counts.free_pages -= 1;
        let cursor = self.logs[log].cursor as usize;
        let slot = &mut self.slots[cursor];
        debug_assert!(slot.next < slot.end, "log {log} programmed {} of a block that is full", slot.next);
        slot.next += 1;
        if slot.next == slot.border {
            slot.border = slot.end.min(slot.next + self.program_pages);
            let is_full = slot.next == slot.end;
            self.logs[log].step();
            if is_full {
                self.filled(log, cursor, infos, now);
            }
        }
    }

    #[inline(never)]
    fn filled(&mut self, log: usize, slot: usize, infos: &mut [BlockInfo], now: u64) {
        let Frontier { block, lane, .. } = self.slots[slot];
        self.left(log, lane, block);
        self.seal(block, infos, now);
    }

    /// A block is not one of a log's open blocks on its lane any more.
    fn left(&mut self, log: usize, lane: u32, block: u32) {
        let open = &mut self.open_on[log * self.lanes.len() + lane as usize];
        assert!(*open > 0, "log {log} leaves block {block}, and has none open on lane {lane}");
        *open -= 1;
    }

    /// Makes a full block a candidate.
    pub fn seal(&mut self, block: u32, infos: &mut [BlockInfo], now: u64) {
        let info = &mut infos[block as usize];
        assert!(matches!(info.state, BlockState::Open | BlockState::Victim), "block {block}: {info:?}");
        assert!(info.valid <= self.pages_per_block, "block {block}: {info:?}");
        let before = std::mem::replace(&mut info.state, BlockState::Sealed);
        let (local, valid) = (block - self.base, info.valid);
        let invalid = self.pages_per_block - valid;
        self.counts.sealed += 1;
        self.counts.invalid_sealed += u64::from(invalid);
        let part = self.part(local);
        self.candidates.sealed(local, BlockInfo { valid, state: before }, invalid, part, now);
        if valid == 0 {
            self.emptied(block);
        }
    }

    /// A candidate lost a page; `valid` are left.
    #[inline]
    pub fn invalidated(&mut self, block: u32, valid: u32, now: u64) {
        self.counts.invalid_sealed += 1;
        debug_assert!(valid < self.pages_per_block, "block {block} lost a page and has {valid} valid ones");
        let local = block - self.base;
        let part = self.part(local);
        self.candidates.invalidated(local, valid, part, now);
        if valid == 0 {
            self.emptied(block);
        }
    }

    /// Closes the open blocks of a log and its piece, so that the next page begins another. Gives the pages
    /// that could still have been programmed in the piece.
    pub fn renew(&mut self, log: usize, infos: &mut [BlockInfo], now: u64) -> u64 {
        let Some(pieces) = &mut self.pieces else { return 0 };
        let left = pieces.present(log);
        let mut room = u64::from(pieces.close(log)) * u64::from(self.pages_per_block);
        for slot in self.logs[log].range() {
            let Frontier { next, end, block, lane, .. } = std::mem::take(&mut self.slots[slot]);
            if next < end {
                room += u64::from(end - next);
                assert_eq!(infos[block as usize].state, BlockState::Open, "block {block} of log {log}");
                self.counts.free_pages -= u64::from(end - next);
                self.left(log, lane, block);
                self.seal(block, infos, now);
            }
        }
        for leftover in self.leftovers.extract_if(.., |leftover| leftover.log == log).collect::<Vec<_>>() {
            room += self.give_up(&leftover, infos, now);
        }
        if let (Some(piece), Some(pieces)) = (left, &self.pieces) {
            let blocks = pieces.blocks_of(piece, log).filter(|blocks| *blocks > 0);
            self.candidates.settle(Part { piece, blocks, family: 0 }, now);
        }
        self.logs[log].rewind();
        room
    }

    /// Gives up what is unwritten of a block that waits to be written on; gives the pages.
    fn give_up(&mut self, leftover: &Leftover, infos: &mut [BlockInfo], now: u64) -> u64 {
        let pages = u64::from(self.pages_per_block - leftover.next);
        assert!(pages <= self.counts.free_pages, "{leftover:?} has {pages} of {:?}", self.counts);
        self.counts.free_pages -= pages;
        self.seal(leftover.block, infos, now);
        pages
    }

    /// The candidate is about to be emptied.
    pub fn unseal(&mut self, block: u32, infos: &mut [BlockInfo]) {
        let info = &mut infos[block as usize];
        assert_eq!(info.state, BlockState::Sealed, "block {block}, which is to be emptied");
        info.state = BlockState::Victim;
        self.counts.sealed -= 1;
        self.counts.invalid_sealed -= u64::from(self.pages_per_block - info.valid);
        let (local, invalid) = (block - self.base, self.pages_per_block - info.valid);
        let info = *info;
        let part = self.part(local);
        self.candidates.removed(local, info, invalid, part);
    }

    /// The block at the cursor of a log failed a program: closes it. Gives the block.
    pub fn abandon(&mut self, log: usize, infos: &mut [BlockInfo]) -> u32 {
        let slot = std::mem::take(&mut self.slots[self.logs[log].cursor as usize]);
        assert!(slot.next < slot.end, "log {log} failed in a block that is full: {slot:?}");
        self.counts.free_pages -= u64::from(slot.end - slot.next);
        self.left(log, slot.lane, slot.block);
        infos[slot.block as usize].state = BlockState::Failed;
        slot.block
    }

    /// An emptied block was erased.
    pub fn release(&mut self, block: u32, erase_count: u32, infos: &mut [BlockInfo], now: u64) {
        let info = &mut infos[block as usize];
        assert_eq!((info.valid, info.state), (0, BlockState::Victim), "block {block}, which was erased");
        *info = BlockInfo::default();
        self.leave(block, now);
        let local = block - self.base;
        let lane = local / self.blocks_per_lane();
        self.lanes[lane as usize].put(local, erase_count);
        self.counts.free_blocks += 1;
        self.counts.free_pages += u64::from(self.pages_per_block);
        self.wear.erased(erase_count);
    }

    /// An emptied block is given up.
    pub fn retire(&mut self, block: u32, erase_count: u32, infos: &mut [BlockInfo], now: u64) {
        let info = &mut infos[block as usize];
        let is_due = matches!(info.state, BlockState::Victim | BlockState::Failed) && info.valid == 0;
        assert!(is_due, "block {block} is given up: {info:?}");
        info.state = BlockState::Bad;
        self.leave(block, now);
        self.counts.good_blocks -= 1;
        self.wear.retired(erase_count);
    }

    /// As [`Self::give_up`] of one such block; whether there was one.
    pub fn close_leftover(&mut self, infos: &mut [BlockInfo], now: u64) -> bool {
        let leftover = self.leftovers.pop();
        leftover.is_some_and(|leftover| self.give_up(&leftover, infos, now) > 0)
    }

    /// Open blocks when every log in use has all of its own.
    fn open_slots(&self) -> u32 {
        self.logs.iter().filter(|log| log.active).map(Log::width).sum()
    }
}
