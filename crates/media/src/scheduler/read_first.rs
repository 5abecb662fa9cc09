//! Parallel timing, event-driven: reads go before programs and erases.
//!
//! **Resources.** A die runs one operation at a time and is held from its start to its end, transfers included (one page register). A
//! channel bus carries one transfer at a time. A read uses the array, then the bus; a program the bus, then the array;
//! an erase the array. With [`Timing::command_ns`] above zero every operation first holds the bus for that long;
//! with zero, commands do not need the bus.
//!
//! **Ready.** An operation is ready once its time has come, the token it was given has completed and every earlier operation it
//! conflicts with is done:
//! * a read waits for an erase of its block and for a program of its page that were submitted before it;
//! * a program waits for earlier reads of its page, an erase for earlier reads of its block;
//! * a program or an erase is not ready before the programs and erases of its block submitted before it are.
//!
//! Nothing else orders operations: reads of one block run in any order, and a program that still waits for its data does not stop
//! programs of other blocks of the die.
//!
//! **Order.** A die that is free takes the read that became ready first; only if there is none, the program or erase that became ready
//! first; of those that became ready at one instant, the one submitted first. So programs and erases of a die keep their
//! submission order except where one must wait for something, and those of a block keep it always. What runs is never
//! interrupted. A bus that is free first takes read data that waits, in the order the arrays finished, then commands of
//! reads, then programs and erases, each by submission. Reads can starve programs; nothing bounds that here.
//!
//! This is the order of `MQSim`'s out-of-order transaction scheduler with suspension off and one die a chip (Tavakkol et al., FAST 2018,
//! section 4), with these departures: `MQSim` serves idle chips of a channel in rotation instead of by age; it joins
//! operations on equal page offsets of two planes to a multi-plane command; and it does not check reads against queued programs.
//!
//! **Time.** Events of one instant are all applied before anything is started at that instant, so the outcome does not depend on the order
//! of simultaneous events. What is submitted at the present starts at the next [`Scheduler::advance`].

mod slab;

use super::{Scheduler, TimedOp, Timing};
use nandscape_core::{Completion, Geometry, SimTime, Token};
use slab::{Kind, List, NIL, Slab, Stage};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Set in the key by which waiting programs and erases are compared, so that reads sort before.
const WRITE_CLASS: u64 = 1 << 63;

#[derive(Clone, Debug)]
struct Die {
    channel: u32,
    busy: bool,
    /// Listed in `dirty_dies`.
    dirty: bool,
    /// Listed in the channel's `waiting`.
    waiting: bool,
    reads: List,
    writes: List,
}

#[derive(Clone, Debug)]
struct Channel {
    busy: bool,
    /// Listed in `dirty_channels`.
    dirty: bool,
    /// Reads whose data waits in the page register.
    data_ready: List,
    /// Dies that wanted the bus for what they would run next, in no order. Some may have started something without it since.
    waiting: Vec<u32>,
}

/// Parallel timing with reads before programs and erases. Tokens are slab slots with a generation.
#[derive(Clone, Debug)]
pub struct ReadFirst {
    timing: Timing,
    page_bytes: u32,
    page_transfer_ns: u64,
    pages_per_block: u32,
    blocks_per_unit: u32,
    now_ns: u64,
    /// The latest time anything known so far happens.
    last_ns: u64,
    slab: Slab,
    /// One event at most for each operation: time, submission number, slot.
    events: BinaryHeap<Reverse<(u64, u64, u32)>>,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// Dies and channels that may be able to start something.
    dirty_dies: Vec<u32>,
    dirty_channels: Vec<u32>,
    /// Newest pending read of each block, or `NIL`.
    block_reads: Vec<u32>,
    /// Newest pending program or erase of each block, or `NIL`.
    block_writes: Vec<u32>,
    /// Became ready at the present, not queued at their dies yet: submission number, slot.
    ready: Vec<(u64, u32)>,
    /// Scratch of `complete`.
    completing: Vec<u32>,
    /// Watched and completed at `now_ns`, not given out yet: submission number, tag.
    finished: Vec<(u64, u64)>,
    /// Watched after they had completed: time, tag.
    late: Vec<(u64, u64)>,
}

impl ReadFirst {
    /// Operations submitted and not complete, joins included.
    pub const fn outstanding(&self) -> u32 {
        self.slab.live
    }

    #[inline]
    fn transfer_ns(&self, bytes: u32) -> u64 {
        if bytes == self.page_bytes { self.page_transfer_ns } else { self.timing.transfer_ns(bytes) }
    }

    #[inline]
    fn schedule(&mut self, slot: u32, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
        self.events.push(Reverse((at_ns, self.slab[slot].seq, slot)));
    }

    #[inline]
    fn mark_die(&mut self, unit: u32) {
        let die = &mut self.dies[unit as usize];
        if !die.dirty {
            die.dirty = true;
            self.dirty_dies.push(unit);
        }
    }

    #[inline]
    fn mark_channel(&mut self, channel: u32) {
        let state = &mut self.channels[channel as usize];
        if !state.dirty {
            state.dirty = true;
            self.dirty_channels.push(channel);
        }
    }

    /// Lets a new operation wait for the earlier ones of its block that it conflicts with, and lists it there.
    fn order_in_block(&mut self, slot: u32) {
        let block = self.slab[slot].block as usize;
        let page = self.slab[slot].page;
        match self.slab[slot].kind {
            Kind::Read => {
                let mut other = self.block_writes[block];
                while other != NIL {
                    let write = &self.slab[other];
                    if write.kind == Kind::Erase || write.page == page {
                        // Writes of a block complete in order, so the newest conflict stands for the earlier ones.
                        self.slab.follow(other, slot);
                        break;
                    }
                    other = write.older;
                }
                self.slab.link(&mut self.block_reads[block], slot);
            }
            Kind::Program | Kind::Erase => {
                let erase = self.slab[slot].kind == Kind::Erase;
                let mut other = self.block_reads[block];
                while other != NIL {
                    let read = &self.slab[other];
                    let older = read.older;
                    if erase || read.page == page {
                        self.slab.follow(other, slot);
                    }
                    other = older;
                }
                let newest = self.block_writes[block];
                if newest != NIL && self.slab[newest].stage == Stage::Waiting {
                    self.slab[slot].waits += 1;
                }
                self.slab.link(&mut self.block_writes[block], slot);
            }
            Kind::Join => {}
        }
    }

    /// One thing that `slot` waited for has happened.
    #[inline]
    fn settle(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        op.waits -= 1;
        if op.waits == 0 {
            if op.kind == Kind::Join {
                self.completing.push(slot);
            } else {
                self.enqueue(slot);
            }
        }
    }

    /// Notes a ready operation, and with it later writes of the block that only waited for their turn.
    fn enqueue(&mut self, slot: u32) {
        let mut slot = slot;
        loop {
            let op = &mut self.slab[slot];
            op.stage = Stage::Queued;
            self.ready.push((op.seq, slot));
            let newer = op.newer;
            if op.kind == Kind::Read || newer == NIL {
                return;
            }
            let next = &mut self.slab[newer];
            next.waits -= 1;
            if next.waits > 0 {
                return;
            }
            slot = newer;
        }
    }

    /// Queues what became ready at its dies.
    fn queue_ready(&mut self) {
        if self.ready.len() > 1 {
            self.ready.sort_unstable();
        }
        for index in 0..self.ready.len() {
            let slot = self.ready[index].1;
            let op = &self.slab[slot];
            let (unit, kind) = (op.unit, op.kind);
            let die = &mut self.dies[unit as usize];
            let queue = if kind == Kind::Read { &mut die.reads } else { &mut die.writes };
            self.slab.push_back(queue, slot);
            self.mark_die(unit);
        }
        self.ready.clear();
    }

    /// Ends an operation, and the joins that end with it.
    fn complete(&mut self, slot: u32) {
        self.completing.push(slot);
        while let Some(slot) = self.completing.pop() {
            let op = &self.slab[slot];
            if op.watched {
                self.finished.push((op.seq, op.tag));
            }
            let block = op.block as usize;
            match op.kind {
                Kind::Read => self.slab.unlink(&mut self.block_reads[block], slot),
                Kind::Program | Kind::Erase => self.slab.unlink(&mut self.block_writes[block], slot),
                Kind::Join => {}
            }
            let mut followers = self.slab.release(slot, self.now_ns);
            while let Some(follower) = self.slab.next_follower(&mut followers) {
                self.settle(follower);
            }
        }
    }

    /// The event of an operation: what it was doing is over.
    fn step(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        let unit = op.unit;
        match (op.stage, op.kind) {
            (Stage::Waiting, _) => self.settle(slot),
            (Stage::Command, _) => {
                self.free_bus(unit);
                self.start_array(slot);
            }
            (Stage::Array, Kind::Read) => {
                op.stage = Stage::DataReady;
                let channel = self.dies[unit as usize].channel;
                self.slab.push_back(&mut self.channels[channel as usize].data_ready, slot);
                self.mark_channel(channel);
            }
            (Stage::Array, _) => self.finish(slot, unit),
            (Stage::DataOut, _) => {
                self.free_bus(unit);
                self.finish(slot, unit);
            }
            (stage, kind) => unreachable!("event of a {kind:?} in stage {stage:?}"),
        }
    }

    fn free_bus(&mut self, unit: u32) {
        let channel = self.dies[unit as usize].channel;
        self.channels[channel as usize].busy = false;
        self.mark_channel(channel);
    }

    fn finish(&mut self, slot: u32, unit: u32) {
        self.dies[unit as usize].busy = false;
        self.mark_die(unit);
        self.complete(slot);
    }

    fn start_array(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        op.stage = Stage::Array;
        let span = match op.kind {
            Kind::Read => self.timing.read_ns,
            Kind::Program => self.timing.program_ns,
            Kind::Erase => self.timing.erase_ns,
            Kind::Join => unreachable!("a join does not run"),
        };
        self.schedule(slot, self.now_ns + span);
    }

    /// What an idle die would run next, and its key among those that wait for the bus.
    #[inline]
    fn candidate(&self, unit: u32) -> Option<(u32, u64)> {
        let die = &self.dies[unit as usize];
        if die.busy {
            None
        } else if die.reads.head != NIL {
            Some((die.reads.head, self.slab[die.reads.head].seq))
        } else if die.writes.head != NIL {
            Some((die.writes.head, self.slab[die.writes.head].seq | WRITE_CLASS))
        } else {
            None
        }
    }

    /// Takes the die's candidate out of its queue and holds the die.
    fn hold_die(&mut self, unit: u32) {
        let die = &mut self.dies[unit as usize];
        die.busy = true;
        let queue = if die.reads.head == NIL { &mut die.writes } else { &mut die.reads };
        self.slab.pop_front(queue);
    }

    /// Starts all that can start now.
    fn dispatch(&mut self) {
        self.queue_ready();
        while let Some(unit) = self.dirty_dies.pop() {
            self.dies[unit as usize].dirty = false;
            let Some((slot, _)) = self.candidate(unit) else { continue };
            if self.timing.command_ns == 0 && self.slab[slot].kind != Kind::Program {
                self.hold_die(unit);
                self.start_array(slot);
                continue;
            }
            let die = &mut self.dies[unit as usize];
            let channel = die.channel;
            if !die.waiting {
                die.waiting = true;
                self.channels[channel as usize].waiting.push(unit);
            }
            self.mark_channel(channel);
        }
        while let Some(channel) = self.dirty_channels.pop() {
            self.channels[channel as usize].dirty = false;
            if !self.channels[channel as usize].busy {
                self.grant(channel);
            }
        }
    }

    /// Gives a free bus to whom it is due.
    fn grant(&mut self, channel: u32) {
        let bus = &mut self.channels[channel as usize];
        if let Some(slot) = self.slab.pop_front(&mut bus.data_ready) {
            bus.busy = true;
            let op = &mut self.slab[slot];
            op.stage = Stage::DataOut;
            let end = self.now_ns + op.transfer_ns;
            self.schedule(slot, end);
            return;
        }
        if let Some((unit, slot)) = self.first_waiting(channel) {
            self.hold_die(unit);
            self.channels[channel as usize].busy = true;
            let op = &mut self.slab[slot];
            op.stage = Stage::Command;
            let data_ns = if op.kind == Kind::Program { op.transfer_ns } else { 0 };
            self.schedule(slot, self.now_ns + self.timing.command_ns + data_ns);
        }
    }

    /// The waiting die that is due, with its operation. A scan, since few dies of a channel wait at a time and what they would run may have
    /// changed.
    fn first_waiting(&mut self, channel: u32) -> Option<(u32, u32)> {
        let mut best: Option<(u64, u32, usize)> = None;
        let mut index = 0;
        while let Some(&unit) = self.channels[channel as usize].waiting.get(index) {
            let Some((slot, key)) = self.candidate(unit) else {
                self.stop_waiting(channel, index);
                continue;
            };
            if best.is_none_or(|(least, ..)| key < least) {
                best = Some((key, slot, index));
            }
            index += 1;
        }
        best.map(|(_, slot, index)| (self.stop_waiting(channel, index), slot))
    }

    fn stop_waiting(&mut self, channel: u32, index: usize) -> u32 {
        let unit = self.channels[channel as usize].waiting.swap_remove(index);
        self.dies[unit as usize].waiting = false;
        unit
    }

    /// Gives out what completed at the present, in submission order.
    fn flush(&mut self, out: &mut Vec<Completion>) {
        if self.finished.len() > 1 {
            self.finished.sort_unstable();
        }
        let at = SimTime(self.now_ns);
        out.extend(self.finished.drain(..).map(|(_, tag)| Completion { tag, at }));
    }
}

impl Scheduler for ReadFirst {
    fn new(geometry: &Geometry, timing: &Timing) -> Self {
        let die = |unit| Die {
            channel: unit % geometry.channels,
            busy: false,
            dirty: false,
            waiting: false,
            reads: List::EMPTY,
            writes: List::EMPTY,
        };
        let channel = Channel { busy: false, dirty: false, data_ready: List::EMPTY, waiting: Vec::new() };
        Self {
            timing: *timing,
            page_bytes: geometry.page_bytes,
            page_transfer_ns: timing.transfer_ns(geometry.page_bytes),
            pages_per_block: geometry.pages_per_block,
            blocks_per_unit: geometry.blocks_per_unit(),
            now_ns: 0,
            last_ns: 0,
            slab: Slab::new(),
            events: BinaryHeap::new(),
            dies: (0..geometry.units()).map(die).collect(),
            channels: vec![channel; geometry.channels as usize],
            dirty_dies: Vec::with_capacity(geometry.units() as usize),
            dirty_channels: Vec::with_capacity(geometry.channels as usize),
            block_reads: vec![NIL; geometry.blocks() as usize],
            block_writes: vec![NIL; geometry.blocks() as usize],
            ready: Vec::new(),
            completing: Vec::new(),
            finished: Vec::new(),
            late: Vec::new(),
        }
    }

    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        let (kind, transfer_ns) = match op {
            TimedOp::Read { transfer, .. } => (Kind::Read, self.transfer_ns(transfer)),
            TimedOp::Program { transfer, .. } => (Kind::Program, self.transfer_ns(transfer)),
            TimedOp::Erase { .. } => (Kind::Erase, 0),
        };
        let predecessor = self.slab.find(after);
        let slot = self.slab.take(kind);
        let block = op.page().0 / self.pages_per_block;
        let state = &mut self.slab[slot];
        state.page = op.page().0;
        state.block = block;
        state.unit = block / self.blocks_per_unit;
        state.transfer_ns = transfer_ns;
        self.order_in_block(slot);
        if let Some(predecessor) = predecessor {
            self.slab.follow(predecessor, slot);
        }
        if at.0 > self.now_ns {
            self.slab[slot].waits += 1;
            self.schedule(slot, at.0);
        }
        let token = self.slab.token(slot);
        if self.slab[slot].waits == 0 {
            self.enqueue(slot);
        }
        token
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        match (self.slab.find(a), self.slab.find(b)) {
            (_, None) => a,
            (None, Some(_)) => b,
            (Some(x), Some(y)) if x == y => a,
            (Some(x), Some(y)) => {
                let slot = self.slab.take(Kind::Join);
                self.slab.follow(x, slot);
                self.slab.follow(y, slot);
                self.slab.token(slot)
            }
        }
    }

    fn completion(&self, _: Token) -> Option<SimTime> {
        None
    }

    fn watch(&mut self, token: Token, tag: u64) {
        if let Some(slot) = self.slab.find(token) {
            let op = &mut self.slab[slot];
            debug_assert!(!op.watched, "two watchers of one token");
            op.watched = true;
            op.tag = tag;
        } else {
            self.late.push((self.slab.done_ns(token).unwrap_or(self.now_ns), tag));
        }
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        if !self.late.is_empty() {
            // Stable, so that equal times keep the order of the calls.
            self.late.sort_by_key(|&(at_ns, _)| at_ns);
            out.extend(self.late.drain(..).map(|(at_ns, tag)| Completion { tag, at: SimTime(at_ns) }));
        }
        loop {
            self.dispatch();
            let Some(&Reverse((at_ns, ..))) = self.events.peek() else { break };
            if at_ns > until.0 {
                break;
            }
            if at_ns > self.now_ns {
                self.flush(out);
                self.now_ns = at_ns;
            }
            while let Some(&Reverse((next_ns, _, slot))) = self.events.peek() {
                if next_ns > at_ns {
                    break;
                }
                self.events.pop();
                self.step(slot);
            }
        }
        self.flush(out);
        // The end of time is no time to submit at: draining leaves the clock at the last event.
        if until < SimTime::MAX {
            self.now_ns = self.now_ns.max(until.0);
        }
    }

    /// The present if something may start or be given out now.
    fn next_event(&self) -> Option<SimTime> {
        if self.ready.is_empty() && self.late.is_empty() {
            self.events.peek().map(|&Reverse((at_ns, ..))| SimTime(at_ns))
        } else {
            Some(SimTime(self.now_ns))
        }
    }

    /// A lower bound while operations are queued: when they run is not known yet.
    fn idle_from(&self) -> SimTime {
        SimTime(self.last_ns)
    }

    fn reset(&mut self, at: SimTime) {
        self.slab.release_all(at.0);
        self.events.clear();
        for die in &mut self.dies {
            *die = Die {
                channel: die.channel,
                busy: false,
                dirty: false,
                waiting: false,
                reads: List::EMPTY,
                writes: List::EMPTY,
            };
        }
        for channel in &mut self.channels {
            channel.busy = false;
            channel.dirty = false;
            channel.data_ready = List::EMPTY;
            channel.waiting.clear();
        }
        self.ready.clear();
        self.dirty_dies.clear();
        self.dirty_channels.clear();
        self.block_reads.fill(NIL);
        self.block_writes.fill(NIL);
        self.finished.clear();
        self.late.clear();
        self.now_ns = at.0;
        self.last_ns = at.0;
    }
}
