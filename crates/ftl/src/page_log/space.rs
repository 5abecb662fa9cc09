//! The space of a page map: groups of blocks that are filled page by page, lanes of groups that take turns,
//! and groups that are kept erased.
//!
//! A group is one block (`PM_GCL`) or a row of one block of every unit (`PM_GCC`); a lane is the groups of
//! one unit, or all of them. Pages of a group are given out unit first, then page. Invariants: a group with
//! room is in its lane's queue or a spare; `free_pages` counts the unwritten pages of the queues; the first
//! group of a queue has room at `next`.

use crate::parts::base::{Base, LOST};
use crate::parts::candidates::Candidates;
use crate::parts::ring_set::RingSet;
use nandscape_core::{BlockId, Divider, FlashDevice, Geometry, Ppn, Token, state, state_of_enum};
use std::cmp::Reverse;
use std::collections::VecDeque;

pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In a queue or a spare: has room.
    Room,
    /// Nothing more is written to it; a candidate for collection.
    Full,
    /// Like `Full`, and a program failed in it: it is emptied and given up.
    Failed,
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

/// The mark of a group of blocks that is taken to be copied into. Its first block and how often that was
/// erased make it differ from those of other times, all but surely; if not, more is thrown away than need be,
/// but nothing that is needed. Never 0, which host data has.
pub(super) const fn mark(first: u32, erase_count: u32) -> u16 {
    let mixed = first.wrapping_mul(0x9E37_79B1) ^ erase_count.wrapping_mul(0x85EB_CA77);
    ((mixed ^ mixed >> 15) % (LOST as u32 - 1)) as u16 + 1
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) state: State,
    pub(super) next: u32,
    /// Unwritten pages, of groups in a queue.
    pub(super) room: u32,
    pub(super) live: u32,
    /// When it became full: its place in the order of all groups.
    pub(super) filled_at: u64,
    /// [`nandscape_core::Oob::stream`] of copies to it: see [`super::spares`].
    pub(super) mark: u16,
}

/// Groups, lanes and spares.
pub(super) struct Space {
    geometry: Geometry,
    pages_per_block: Divider,
    /// Blocks of a group, and pages.
    pub(super) width: Divider,
    pub size: u32,
    per_lane: Divider,
    /// Blocks of the groups, one group after the other; `NONE` where there is none.
    blocks: Vec<u32>,
    group_of: Vec<u32>,
    pub(super) groups: Vec<Group>,
    pub(super) lanes: Vec<Lane>,
    /// Lanes with a group in the queue.
    pub(super) open: RingSet,
    /// Erased groups that only a collection may take.
    pub(super) spares: VecDeque<u32>,
    /// How many of them there should be.
    pub(super) wanted_spares: usize,
    /// Full groups by live pages, where they are chosen by these one at a time.
    full: Option<Candidates>,
    /// Failed groups that still hold live pages.
    pub(super) failed: Vec<u32>,
    /// How many groups became full so far.
    pub(super) filled: u64,
    pub(super) rotor: u32,
    pub(super) free_pages: u64,
    /// Good blocks of each unit that belong to no group.
    pub(super) surplus: Vec<VecDeque<u32>>,
}

state!(impl [] Space {
    saved: open, spares, failed, filled, rotor, free_pages;
    tables: blocks, group_of, groups, lanes, surplus;
    parts: full;
    fixed: geometry, pages_per_block, width, size, per_lane, wanted_spares;
});

state!(impl [] Group { saved: state, next, room, live, filled_at, mark; });
state!(impl [] Lane { saved: queue, gate; });
state_of_enum!(State: Room, Full, Failed, Gone);

impl Space {
    /// No groups yet and no spares, with room for `per_lane` in each of `lanes`.
    pub(super) fn new(geometry: Geometry, lanes: u32, per_lane: u32, width: u32) -> Self {
        let gone = Group { state: State::Gone, next: 0, room: 0, live: 0, filled_at: 0, mark: 0 };
        let groups = vec![gone; (lanes * per_lane) as usize];
        Self {
            geometry,
            pages_per_block: Divider::new(geometry.pages_per_block),
            width: Divider::new(width),
            size: width * geometry.pages_per_block,
            per_lane: Divider::new(per_lane),
            blocks: vec![NONE; groups.len() * width as usize],
            group_of: vec![NONE; geometry.blocks() as usize],
            groups,
            lanes: (0..lanes)
                .map(|_| Lane { queue: VecDeque::with_capacity(per_lane as usize), gate: Token::NONE })
                .collect(),
            open: RingSet::new(lanes),
            spares: VecDeque::new(),
            wanted_spares: 0,
            full: (width == 1).then(|| Candidates::new(lanes, per_lane)),
            failed: Vec::new(),
            filled: 0,
            rotor: 0,
            free_pages: 0,
            surplus: vec![VecDeque::new(); geometry.units() as usize],
        }
    }

    #[inline]
    pub(super) const fn lane_of(&self, group: u32) -> u32 {
        self.per_lane.quotient(group)
    }

    #[inline]
    pub(super) fn group(&self, group: u32) -> &Group {
        &self.groups[group as usize]
    }

    #[inline]
    fn group_mut(&mut self, group: u32) -> &mut Group {
        &mut self.groups[group as usize]
    }

    fn slots(&self, group: u32) -> std::ops::Range<usize> {
        let width = self.width.divisor() as usize;
        group as usize * width..(group as usize + 1) * width
    }

    pub(super) fn blocks(&self, group: u32) -> impl Iterator<Item = BlockId> + use<'_> {
        let blocks = self.blocks[self.slots(group)].iter();
        blocks.filter(|block| **block != NONE).map(|block| BlockId(*block))
    }

    #[inline(always)]
    pub(super) fn block_at(&self, group: u32, slot: u32) -> Option<BlockId> {
        let block = self.blocks[(group * self.width.divisor() + slot) as usize];
        (block != NONE).then_some(BlockId(block))
    }

    #[inline]
    pub(super) fn group_of(&self, page: Ppn) -> u32 {
        self.group_of[self.pages_per_block.quotient(page.0) as usize]
    }

    /// The page at a place of a group, unit first, then page; `None` in a hole of a row.
    #[inline(always)]
    pub(super) fn page(&self, group: u32, place: u32) -> Option<Ppn> {
        let (index, slot) = self.width.split(place);
        self.block_at(group, slot).map(|block| self.geometry.page(block, index))
    }

    /// The page that the next allocation gets, if there is any room, and its group.
    #[inline(always)]
    pub(super) fn next_page(&self) -> Option<(Ppn, u32)> {
        let group = match &self.lanes[..] {
            [lane] => *lane.queue.front()?,
            lanes => lanes[self.open.first_from(self.rotor)? as usize].queue[0],
        };
        Some((self.page(group, self.group(group).next)?, group))
    }

    /// When host data may go to a group.
    #[inline]
    pub(super) fn gate(&self, group: u32) -> Token {
        self.lanes[self.lane_of(group) as usize].gate
    }

    /// The next turn is that of the lane after this group's.
    #[inline]
    pub(super) fn turn_rotor(&mut self, group: u32) {
        if self.lanes.len() > 1 {
            let lane = self.lane_of(group) + 1;
            debug_assert!(lane as usize <= self.lanes.len(), "group {group} is of lane {}", lane - 1);
            self.rotor = if lane as usize == self.lanes.len() { 0 } else { lane };
        }
    }

    /// The page that [`Self::next_page`] gave was programmed and is live.
    #[inline(always)]
    pub(super) fn took<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        self.free_pages -= 1;
        self.turn_rotor(group);
        let this = self.group_mut(group);
        assert!(this.room > 0, "group {group} took a page and had no room: {this:?}");
        this.room -= 1;
        this.live += 1;
        this.next += 1;
        if this.room == 0 {
            self.close(group, false);
        } else {
            self.skip_written(base, group);
        }
    }

    /// Moves `next` past holes, and what was written before the last start.
    #[inline(always)]
    fn skip_written<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        let Group { next, room, .. } = *self.group(group);
        if room < self.size - next {
            self.skip(base, group);
        }
    }

    #[cold]
    fn skip<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        let next = self.group(group).next;
        let is_unwritten = |place: &u32| {
            let (index, slot) = self.width.split(*place);
            self.block_at(group, slot).is_some_and(|block| base.device.write_pointer(block) <= index)
        };
        let next = (next..self.size).find(is_unwritten).unwrap_or(self.size);
        let room = self.group(group).room;
        assert!(next < self.size || room == 0, "group {group} has room for {room} pages, and no place");
        self.group_mut(group).next = next;
    }

    /// A group that is filled becomes a candidate.
    fn seal(&mut self, group: u32) {
        let filled_at = self.filled;
        let this = self.group_mut(group);
        assert_eq!((this.state, this.room), (State::Room, 0), "group {group}, which is full");
        (this.state, this.filled_at) = (State::Full, filled_at);
        let live = this.live;
        self.filled += 1;
        if let Some(full) = &mut self.full {
            full.insert(group, live, filled_at);
        }
    }

    /// The full group with the fewest live pages, the first from the rotor on, and their number.
    pub(super) fn emptiest(&self) -> Option<(u32, u32)> {
        if let Some(full) = &self.full {
            return full.first_from(self.rotor);
        }
        let full = (0..).zip(&self.groups).filter(|(_, this)| this.state == State::Full);
        let least = full.min_by_key(|(_, this)| (this.live, this.filled_at));
        least.map(|(group, this)| (group, this.live))
    }

    /// The full group of which most pages are not live, the first filled of equal rows, and its number of
    /// live pages. `None` if no group has any: holes of a row are no gain.
    pub(super) fn most_gain(&self) -> Option<(u32, u32)> {
        if self.full.is_some() {
            return self.emptiest().filter(|(_, live)| *live < self.size);
        }
        let full = (0..).zip(&self.groups).filter(|(_, this)| this.state == State::Full);
        let gains = full.map(|(group, this)| {
            let pages = self.blocks(group).count() as u32 * self.geometry.pages_per_block;
            assert!(this.live <= pages, "group {group} of {pages} pages: {this:?}");
            (pages - this.live, group, this)
        });
        let most = gains.max_by_key(|(gain, _, this)| (*gain, Reverse(this.filled_at)));
        most.filter(|(gain, ..)| *gain > 0).map(|(_, group, this)| (group, this.live))
    }

    /// A group is no candidate any more.
    pub(super) fn take_candidate(&mut self, group: u32) {
        if let Some(full) = self.full.as_mut().filter(|full| full.contains(group)) {
            full.remove(group);
        }
    }

    pub(super) fn is_candidate(&self, group: u32) -> bool {
        let is_full = self.group(group).state == State::Full;
        self.full.as_ref().map_or(is_full, |full| full.contains(group))
    }

    fn leave_queue(&mut self, group: u32) {
        let lane = self.lane_of(group);
        let queue = &mut self.lanes[lane as usize].queue;
        let place = queue.iter().position(|queued| *queued == group);
        assert!(place.is_some(), "group {group} is not in the queue of lane {lane}");
        place.map(|place| queue.remove(place));
        if queue.is_empty() {
            self.open.remove(lane);
        }
    }

    /// A page of a group has lost its data.
    #[inline(always)]
    pub(super) fn lose(&mut self, page: Ppn) {
        let group = self.group_of(page);
        if group == NONE {
            // In a block that belongs to no group, since it or others of its unit's row have failed.
            return;
        }
        let this = self.group_mut(group);
        assert!(this.live > 0, "{page:?} of group {group} was live: {this:?}");
        this.live -= 1;
        let live = this.live;
        if let Some(full) = self.full.as_mut().filter(|full| full.contains(group)) {
            full.lower(group, live);
        }
    }

    /// The rest of a group with room is given up: it becomes a candidate, or failed.
    pub(super) fn close(&mut self, group: u32, failed: bool) {
        let room = u64::from(std::mem::take(&mut self.group_mut(group).room));
        assert!(room <= self.free_pages, "group {group} has room for {room} of {}", self.free_pages);
        self.free_pages -= room;
        self.leave_queue(group);
        if failed {
            self.group_mut(group).state = State::Failed;
            self.failed.push(group);
        } else {
            self.seal(group);
        }
    }

    /// Puts blocks together to a group, which holds this many live pages; its place in a queue or among the
    /// candidates follows with [`Self::place`].
    pub(super) fn form(&mut self, group: u32, blocks: impl Iterator<Item = BlockId>, live: u32) {
        for (slot, block) in self.slots(group).zip(blocks) {
            self.blocks[slot] = block.0;
            let other = std::mem::replace(&mut self.group_of[block.index()], group);
            assert_eq!(other, NONE, "the group of {block:?}, which is put into {group}");
        }
        let this = self.group_mut(group);
        assert_eq!(this.state, State::Gone, "group {group}, which is put together");
        (this.state, this.next, this.live) = (State::Room, 0, live);
    }

    /// Takes a block out of its group, which keeps a hole in its place; without blocks it is gone.
    pub(super) fn remove(&mut self, block: BlockId) {
        let group = std::mem::replace(&mut self.group_of[block.index()], NONE);
        assert_ne!(group, NONE, "the group that {block:?} leaves");
        let slots = self.slots(group);
        let slot = self.blocks[slots.clone()].iter_mut().find(|own| **own == block.0);
        *slot.expect("a block of the group") = NONE;
        if self.blocks[slots].iter().all(|block| *block == NONE) {
            self.group_mut(group).state = State::Gone;
        }
    }

    /// Takes a group that was formed, with its live pages counted, into its lane or among the candidates.
    pub(super) fn place<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        let unwritten =
            self.blocks(group).map(|block| self.geometry.pages_per_block - base.device.write_pointer(block));
        let room = unwritten.sum();
        assert_eq!(self.group(group).state, State::Room, "group {group} with room for {room}");
        self.group_mut(group).room = room;
        self.skip_written(base, group);
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
        let this = self.group_mut(group);
        assert_eq!(this.live, 0, "live pages of group {group}, which was erased");
        (this.state, this.next, this.mark) = (State::Room, 0, 0);
        if self.spares.len() < self.wanted_spares {
            self.spares.push_back(group);
        } else {
            self.place(base, group);
        }
    }

    /// Lets a spare be filled; gives its lane.
    pub(super) fn take_spare<D: FlashDevice>(&mut self, base: &Base<D>) -> Option<u32> {
        let group = self.spares.pop_front()?;
        let first = self.block_at(group, 0)?;
        let written: u32 = self.blocks(group).map(|block| base.device.write_pointer(block)).sum();
        debug_assert_eq!(written, 0, "pages of group {group}, which was a spare");
        self.group_mut(group).mark = mark(first.0, base.device.erase_count(first));
        self.place(base, group);
        Some(self.lane_of(group))
    }

    /// Makes the last group of the fullest queue a spare, if it is erased and `keep` pages stay free.
    pub(super) fn hold_back(&mut self, keep: u64) -> bool {
        let size = self.size;
        if self.free_pages < keep + u64::from(size) {
            return false;
        }
        let by_length = (0..self.lanes.len()).filter(|lane| {
            let last = self.lanes[*lane].queue.back();
            last.is_some_and(|group| self.group(*group).room == size)
        });
        // Of equals the last, so that the first units are filled first.
        let Some(lane) = by_length.max_by_key(|lane| self.lanes[*lane].queue.len()) else { return false };
        let queue = &mut self.lanes[lane].queue;
        let group = queue.pop_back().expect("it has a last");
        assert_eq!(self.groups[group as usize].live, 0, "live pages of group {group}, which is erased");
        if queue.is_empty() {
            self.open.remove(lane as u32);
        }
        self.free_pages -= u64::from(size);
        self.spares.push_back(group);
        true
    }

    /// The group has no blocks any more. Its good ones wait among the surplus.
    pub(super) fn dissolve<D: FlashDevice>(&mut self, base: &Base<D>, group: u32) {
        assert_eq!(self.group(group).live, 0, "live pages of group {group}, which is dissolved");
        self.failed.retain(|failed| *failed != group);
        for slot in self.slots(group) {
            let block = BlockId(self.blocks[slot]);
            self.remove(block);
            if !base.device.is_bad(block) {
                self.surplus[self.geometry.unit_of(block).index()].push_back(block.0);
            }
        }
    }

    /// A group of surplus blocks, one of every unit that a group spans, erased; `None` if some unit has none.
    pub(super) fn form_from_surplus(&mut self) -> Option<u32> {
        let group = self.groups.iter().position(|group| group.state == State::Gone)? as u32;
        let width = self.width.divisor() as usize;
        // A block alone can only take the place it always had.
        if width == 1 || self.surplus.iter().filter(|unit| !unit.is_empty()).count() < width {
            return None;
        }
        let blocks: Vec<u32> = self.surplus.iter_mut().filter_map(VecDeque::pop_front).collect();
        assert_eq!(blocks.len(), width, "blocks of group {group}, one of each unit: {blocks:?}");
        self.form(group, blocks.into_iter().map(BlockId), 0);
        Some(group)
    }

    pub(super) fn dram_bytes(&self) -> u64 {
        4 * (self.blocks.len() + self.group_of.len() + 3 * self.groups.len()) as u64
    }
}
