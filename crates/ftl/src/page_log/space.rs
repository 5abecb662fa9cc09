//! The space of a copy-first page map: groups of blocks that are filled page by page, lanes of groups that
//! take turns, and groups that are kept erased.
//!
//! A group is one block (`PM_GCL`) or a row of one block of every unit (`PM_GCC`); a lane is the groups of
//! one unit, or all of them. Pages of a group are given out unit first, then page. Invariants: a group with
//! room is in its lane's queue or a spare; `free_pages` counts the unwritten pages of the queues; the first
//! group of a queue has room at `next`.

use super::spares::mark;
use crate::parts::base::Base;
use crate::parts::candidates::Candidates;
use crate::parts::ring_set::RingSet;
use nandscape_core::{BlockId, FlashDevice, Geometry, Ppn, Token};
use std::collections::VecDeque;

/// No group.
pub(super) const NONE: u32 = u32::MAX;

/// What a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In a queue or a spare: has room.
    Room,
    /// Nothing more is written to it; a candidate for collection.
    Full,
    /// Like `Full`, and a program failed in it: it is emptied and given up.
    Failed,
    /// No blocks.
    Gone,
}

/// The groups that one turn chooses from.
pub(super) struct Lane {
    /// Groups with room; the first is the one being filled.
    pub(super) queue: VecDeque<u32>,
    /// Host data goes to the lane only after this: the erases of the victims whose copies lie here, so that
    /// the copies could still be thrown away if the power went before.
    pub(super) gate: Token,
}

/// Groups, lanes and spares.
pub(super) struct Space {
    geometry: Geometry,
    /// Blocks of a group.
    pub(super) width: u32,
    per_lane: u32,
    /// Blocks of the groups, one group after the other; `NONE` throughout where there is none.
    blocks: Vec<u32>,
    /// Group of each block.
    group_of: Vec<u32>,
    state: Vec<State>,
    next: Vec<u32>,
    /// Unwritten pages, of groups in a queue.
    room: Vec<u32>,
    live: Vec<u32>,
    /// [`nandscape_core::Oob::stream`] of copies to each group: see [`super::spares`].
    mark: Vec<u16>,
    pub(super) lanes: Vec<Lane>,
    /// Lanes with a group in the queue.
    open: RingSet,
    /// Erased groups that only a collection may take.
    pub(super) spares: VecDeque<u32>,
    /// How many of them there should be.
    pub(super) wanted_spares: usize,
    /// Full groups by live pages.
    pub(super) full: Candidates,
    /// Failed groups that still hold live pages.
    pub(super) failed: Vec<u32>,
    /// The order in which groups became full.
    filled_at: Vec<u64>,
    filled: u64,
    pub(super) rotor: u32,
    pub(super) free_pages: u64,
    /// Good blocks of each unit that belong to no group.
    pub(super) surplus: Vec<VecDeque<u32>>,
}

impl Space {
    /// No groups yet, with room for `per_lane` in each of `lanes`.
    pub(super) fn new(geometry: Geometry, lanes: u32, per_lane: u32, width: u32) -> Self {
        let groups = (lanes * per_lane) as usize;
        Self {
            geometry,
            width,
            per_lane,
            blocks: vec![NONE; groups * width as usize],
            group_of: vec![NONE; geometry.blocks() as usize],
            state: vec![State::Gone; groups],
            next: vec![0; groups],
            room: vec![0; groups],
            live: vec![0; groups],
            mark: vec![0; groups],
            lanes: (0..lanes)
                .map(|_| Lane { queue: VecDeque::with_capacity(per_lane as usize), gate: Token::NONE })
                .collect(),
            open: RingSet::new(lanes),
            spares: VecDeque::new(),
            wanted_spares: 1,
            full: Candidates::new(lanes, per_lane),
            failed: Vec::new(),
            filled_at: vec![0; groups],
            filled: 0,
            rotor: 0,
            free_pages: 0,
            surplus: vec![VecDeque::new(); geometry.units() as usize],
        }
    }

    pub(super) fn groups(&self) -> u32 {
        self.state.len() as u32
    }

    /// Pages of a group.
    pub(super) const fn size(&self) -> u32 {
        self.width * self.geometry.pages_per_block
    }

    pub(super) const fn lane_of(&self, group: u32) -> u32 {
        group / self.per_lane
    }

    pub(super) fn state(&self, group: u32) -> State {
        self.state[group as usize]
    }

    pub(super) fn live(&self, group: u32) -> u32 {
        self.live[group as usize]
    }

    pub(super) fn filled_at(&self, group: u32) -> u64 {
        self.filled_at[group as usize]
    }

    /// How many groups became full so far.
    pub(super) const fn filled(&self) -> u64 {
        self.filled
    }

    pub(super) fn blocks(&self, group: u32) -> impl Iterator<Item = BlockId> + use<'_> {
        let first = (group * self.width) as usize;
        self.blocks[first..first + self.width as usize].iter().map(|block| BlockId(*block))
    }

    #[inline]
    pub(super) fn group_of(&self, block: BlockId) -> u32 {
        self.group_of[block.index()]
    }

    /// The page at a place of a group: unit first, then page.
    #[inline]
    pub(super) fn page(&self, group: u32, place: u32) -> Ppn {
        let block = self.blocks[(group * self.width + place % self.width) as usize];
        self.geometry.page(BlockId(block), place / self.width)
    }

    /// Unwritten pages of a group in a queue.
    pub(super) fn room(&self, group: u32) -> u32 {
        self.room[group as usize]
    }

    /// The page that the next allocation gets, if there is any room, and its group.
    #[inline]
    pub(super) fn next_page(&self) -> Option<(Ppn, u32)> {
        let lane = self.open.first_from(self.rotor)?;
        let group = self.lanes[lane as usize].queue[0];
        Some((self.page(group, self.next[group as usize]), group))
    }

    /// [`nandscape_core::Oob::stream`] of copies to a group.
    pub(super) fn mark(&self, group: u32) -> u16 {
        self.mark[group as usize]
    }

    /// When host data may go to a group.
    #[inline]
    pub(super) fn gate(&self, group: u32) -> Token {
        self.lanes[self.lane_of(group) as usize].gate
    }

    /// The page that [`Self::next_page`] gave was programmed and is live.
    #[inline]
    pub(super) fn took<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        self.free_pages -= 1;
        self.room[group as usize] -= 1;
        self.live[group as usize] += 1;
        let lane = self.lane_of(group);
        self.rotor = if lane as usize + 1 == self.lanes.len() { 0 } else { lane + 1 };
        self.next[group as usize] += 1;
        if self.room[group as usize] == 0 {
            self.leave_queue(group);
            self.seal(group);
        } else {
            self.skip_written(base, group);
        }
    }

    /// Moves `next` past what was written before the last start.
    fn skip_written<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        let mut next = self.next[group as usize];
        while next < self.size() {
            let page = self.page(group, next);
            let block = self.geometry.block_of(page);
            if base.device.write_pointer(block) <= next / self.width {
                break;
            }
            next += 1;
        }
        self.next[group as usize] = next;
    }

    /// A group that is filled becomes a candidate.
    pub(super) fn seal(&mut self, group: u32) {
        self.state[group as usize] = State::Full;
        self.filled_at[group as usize] = self.filled;
        self.filled += 1;
        self.full.insert(group, self.live(group), self.filled_at(group));
    }

    fn leave_queue(&mut self, group: u32) {
        let lane = self.lane_of(group);
        let queue = &mut self.lanes[lane as usize].queue;
        match queue.iter().position(|queued| *queued == group) {
            Some(0) => drop(queue.pop_front()),
            Some(place) => drop(queue.remove(place)),
            None => {}
        }
        if queue.is_empty() {
            self.open.remove(lane);
        }
    }

    /// A page of a group has lost its data.
    #[inline]
    pub(super) fn lose(&mut self, page: Ppn) {
        let group = self.group_of(self.geometry.block_of(page)) as usize;
        if group == NONE as usize {
            // In a block that belongs to no group, since others of its unit's row have failed.
            return;
        }
        self.live[group] -= 1;
        if self.full.contains(group as u32) {
            self.full.lower(group as u32, self.live[group]);
        }
    }

    /// The rest of a group with room is given up: it becomes a candidate, or failed.
    pub(super) fn close(&mut self, group: u32, failed: bool) {
        self.free_pages -= u64::from(std::mem::take(&mut self.room[group as usize]));
        self.leave_queue(group);
        if failed {
            self.state[group as usize] = State::Failed;
            self.failed.push(group);
        } else {
            self.seal(group);
        }
    }

    /// Puts blocks together to a group, which holds this many live pages; its place in a queue or among the
    /// candidates follows with [`Self::place`].
    pub(super) fn form(&mut self, group: u32, blocks: impl Iterator<Item = BlockId>, live: u32) {
        for (slot, block) in blocks.enumerate() {
            self.blocks[group as usize * self.width as usize + slot] = block.0;
            self.group_of[block.index()] = group;
        }
        self.state[group as usize] = State::Room;
        self.next[group as usize] = 0;
        self.live[group as usize] = live;
    }

    /// Takes a group that was formed, with its live pages counted, into its lane or among the candidates.
    pub(super) fn place<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        self.skip_written(base, group);
        let written: u32 = self.blocks(group).map(|block| base.device.write_pointer(block)).sum();
        let room = self.size() - written;
        self.room[group as usize] = room;
        if room == 0 {
            self.seal(group);
        } else {
            let lane = self.lane_of(group);
            self.lanes[lane as usize].queue.push_back(group);
            self.open.insert(lane);
            self.free_pages += u64::from(room);
        }
    }

    /// An erased group becomes a spare if one is wanted, else it can be filled.
    pub(super) fn give<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        self.state[group as usize] = State::Room;
        self.next[group as usize] = 0;
        self.mark[group as usize] = 0;
        debug_assert_eq!(self.live(group), 0);
        if self.spares.len() < self.wanted_spares {
            self.spares.push_back(group);
        } else {
            self.place(base, group);
        }
    }

    /// Lets a spare be filled; gives its lane.
    pub(super) fn take_spare<D: FlashDevice>(&mut self, base: &Base<D>) -> Option<u32> {
        let group = self.spares.pop_front()?;
        let first = self.blocks[(group * self.width) as usize];
        self.mark[group as usize] = mark(first, base.device.erase_count(BlockId(first)));
        self.place(base, group);
        Some(self.lane_of(group))
    }

    /// Keeps an erased group that could be filled back as a spare, if `keep` pages stay free; from the end of
    /// the fullest queue.
    pub(super) fn hold_back(&mut self, keep: u64) -> bool {
        let size = self.size();
        if self.free_pages < keep + u64::from(size) {
            return false;
        }
        let by_length = (0..self.lanes.len()).filter(|lane| {
            let last = self.lanes[*lane].queue.back();
            last.is_some_and(|group| self.room(*group) == size)
        });
        // Of equals the last, so that the first units are filled first.
        let Some(lane) = by_length.max_by_key(|lane| self.lanes[*lane].queue.len()) else { return false };
        let queue = &mut self.lanes[lane].queue;
        let group = queue.pop_back().expect("it has a last");
        if queue.is_empty() {
            self.open.remove(lane as u32);
        }
        self.free_pages -= u64::from(size);
        self.spares.push_back(group);
        true
    }

    /// The group has no blocks any more. Its good ones wait among the surplus.
    pub(super) fn dissolve<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        self.state[group as usize] = State::Gone;
        self.failed.retain(|failed| *failed != group);
        let first = (group * self.width) as usize;
        for slot in first..first + self.width as usize {
            let block = BlockId(std::mem::replace(&mut self.blocks[slot], NONE));
            self.group_of[block.index()] = NONE;
            if !base.device.is_bad(block) {
                self.surplus[self.geometry.unit_of(block).index()].push_back(block.0);
            }
        }
    }

    /// A group of surplus blocks, one of every unit that a group spans, erased; `None` if some unit has none.
    pub(super) fn form_from_surplus(&mut self) -> Option<u32> {
        let group = self.state.iter().position(|state| *state == State::Gone)? as u32;
        if self.width == 1 {
            // A block can only take the place it always had.
            return None;
        }
        let units = self.surplus.iter().filter(|unit| !unit.is_empty()).count();
        if (units as u32) < self.width {
            return None;
        }
        let blocks: Vec<u32> = self.surplus.iter_mut().filter_map(VecDeque::pop_front).collect();
        self.form(group, blocks.into_iter().take(self.width as usize).map(BlockId), 0);
        Some(group)
    }

    pub(super) fn has_open(&self, lane: u32) -> bool {
        self.open.contains(lane)
    }

    pub(super) fn next_place(&self, group: u32) -> u32 {
        self.next[group as usize]
    }

    /// Bytes of lists and counts.
    pub(super) fn dram_bytes(&self) -> u64 {
        4 * (self.blocks.len() + self.group_of.len() + 3 * self.state.len()) as u64
    }
}
