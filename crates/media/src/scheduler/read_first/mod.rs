//! Parallel timing, event-driven: reads go before programs and erases.
//!
//! **Resources.** A die runs one operation at a time and is held from its start to its end, transfers
//! included (one page register). A channel bus carries one transfer at a time. A read uses the array, then
//! the bus; a program the bus, then the array; an erase the array. With [`Timing::command_ns`] above zero
//! every operation first holds the bus for that long; with zero, commands do not need the bus.
//!
//! **Ready.** An operation is ready once its time has come, the token it was given has completed and every
//! earlier operation it conflicts with is done:
//! * a read waits for an erase of its block and for a program of its page that were submitted before it;
//! * a program waits for earlier reads of its page, an erase for earlier reads of its block;
//! * a program or an erase is not ready before the programs and erases of its block submitted before it are.
//!
//! Nothing else orders operations: reads of one block run in any order, and a program that still waits for
//! its data does not stop programs of other blocks of the die.
//!
//! **Order.** A die that is free takes the read that became ready first; only if there is none, the program
//! or erase that became ready first; of those that became ready at one instant, the one submitted first. So
//! programs and erases of a die keep their submission order except where one must wait for something, and
//! those of a block keep it always. What runs is never interrupted. A bus that is free first takes read data
//! that waits, in the order the arrays finished, then commands of reads, then programs and erases, each by
//! submission. Reads can starve programs; nothing bounds that here.
//!
//! This is the order of `MQSim`'s out-of-order transaction scheduler with suspension off and one die a chip
//! (Tavakkol et al., FAST 2018, section 4), with these departures: `MQSim` serves idle chips of a channel in
//! rotation instead of by age; it joins operations on equal page offsets of two planes to a multi-plane
//! command; and it does not check reads against queued programs.
//!
//! **Time.** Events of one instant are all applied before anything is started at that instant, so the outcome
//! does not depend on the order of simultaneous events. What is submitted at the present starts at the next
//! [`Clocked::advance`].
//!
//! All that is so with [`Options::default`]. What each option changes stands with it:
//! * `channel`: bursts of program data, hold-off, decoder, no contention;
//! * `die`: order of the host against the layer, cached programs, operations on several planes;
//! * `array`: times of pages and word lines, suspension, cached reads;
//! * `unit`: programs of several pages;
//! * `front`: command core, host link, write buffer; `front::pace`: how fast it fills.

mod array;
mod channel;
mod die;
mod front;
mod order;
mod rules;
mod slab;
mod unit;

use super::{Follows, Options, Scheduler, SchedulerEntry, TimedOp, Timing};
use channel::Channel;
use die::Die;
use front::Front;
use nandscape_core::{Clocked, Completion, Geometry, Info, Sender, SimTime, SlcBlocks, Token, Way, state};
use rules::Rules;
use slab::{Kind, NEVER, NIL, Place, Slab, Stage, Watch};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use unit::Units;

/// The event of an operation: from high to low its time (64 bits), its submission number (the low 32) and its
/// slot (32), so that one comparison orders two. Simultaneous events may come in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event(u128);

impl Event {
    #[inline]
    const fn new(at_ns: u64, seq: u64, slot: u32) -> Self {
        Self((at_ns as u128) << 64 | (seq as u32 as u128) << 32 | slot as u128)
    }

    #[inline]
    const fn at_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    const fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// Registry entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    info: Info {
        name: "read-first",
        summary: "dies and buses are resources; event-driven, reads overtake",
        source: "",
        params: &[],
    },
    follows: Follows::Everything,
};

/// Parallel timing with reads before programs and erases. Tokens are slab slots with a generation.
#[derive(Clone, Debug)]
pub struct ReadFirst {
    rules: Rules,
    now_ns: u64,
    /// The latest time anything known so far happens.
    last_ns: u64,
    slab: Slab,
    /// Of an operation the one at its `due_ns` counts, the others are void.
    events: BinaryHeap<Reverse<Event>>,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// Dies and channels that may be able to start something.
    dirty_dies: Vec<u32>,
    dirty_channels: Vec<u32>,
    /// Channels whose command core has done a read while others of the layer wait.
    idle_cores: Vec<u32>,
    /// Newest pending read of each block, or `NIL`.
    block_reads: Vec<u32>,
    /// Newest pending program or erase of each block, or `NIL`.
    block_writes: Vec<u32>,
    units: Units,
    front: Front,
    /// Became ready at the present, not queued at their dies yet: submission number, slot.
    ready: Vec<(u64, u32)>,
    /// Operations queued at dies so far.
    queued: u64,
    completing: Vec<u32>,
    watch: Watched,
    /// Operations of the layer that the host waits for.
    urgent: u32,
}

// A state is saved right after a reset, when nothing is queued anywhere.
state!(impl [] ReadFirst {
    saved: now_ns, last_ns, slab, units, front, queued;
    fixed: rules, events, dies, channels, dirty_dies, dirty_channels, idle_cores, block_reads, block_writes,
        ready, completing, watch, urgent;
});

/// Who asked for completions.
#[derive(Clone, Debug, Default)]
struct Watched {
    /// Watched and not complete.
    count: u32,
    /// Watched and completed at the present, not given out yet: submission number, tag.
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
    fn schedule(&mut self, slot: u32, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
        let op = &mut self.slab[slot];
        op.due_ns = at_ns;
        self.events.push(Reverse(Event::new(at_ns, op.seq, slot)));
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

    /// A slot for an operation on a page, with nothing to wait for.
    #[inline]
    fn take(&mut self, kind: Kind, page: u32, host: bool) -> u32 {
        let slot = self.slab.take(kind);
        let block = page / self.rules.pages_per_block;
        let op = &mut self.slab[slot];
        op.place = Place { page, block, unit: block / self.rules.blocks_per_unit };
        op.host = host;
        slot
    }

    /// Lets an operation wait for a time, if that is still to come.
    #[inline]
    fn wait_until(&mut self, slot: u32, at_ns: u64) {
        if at_ns > self.now_ns {
            self.slab[slot].waits += 1;
            self.schedule(slot, at_ns);
        }
    }

    /// The event of an operation: what it was doing is over.
    #[inline]
    fn step(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        let unit = op.place.unit;
        match (op.stage, op.kind) {
            (Stage::Waiting, _) => self.settle(slot),
            (Stage::Blocked, _) => self.let_in_blocked(),
            (Stage::Inbound, _) => self.arrive(slot),
            (Stage::Turns, _) => self.end_turn(),
            (Stage::Passing, _) => self.cross_link(slot),
            (Stage::Core, _) => self.leave_core(slot),
            (Stage::Command, _) => {
                self.free_bus(unit);
                self.start_array(slot);
            }
            (Stage::Load, _) => self.loaded(slot),
            // What held it back is over.
            (Stage::Queued | Stage::LoadPaused, _) => self.mark_die(unit),
            (Stage::Array, Kind::Read) => self.array_read(slot),
            (Stage::Array, _) => self.leave_die(slot),
            (Stage::Stopping, _) => self.stopped(slot),
            (Stage::DataOut, _) => self.data_out(slot),
            (Stage::Decode, _) => self.deliver(slot),
            (Stage::Outbound, _) => self.complete(slot),
            (stage, kind) => unreachable!("event of a {kind:?} in stage {stage:?}"),
        }
    }

    /// Gives out what completed at the present, in submission order.
    #[inline]
    fn flush(&mut self, out: &mut Vec<Completion>) {
        // Mostly none or one: for so few a drain costs more than what it gives out.
        let finished = &mut self.watch.finished;
        if finished.is_empty() {
            return;
        }
        if finished.len() > 1 {
            finished.sort_unstable();
        }
        let at = SimTime(self.now_ns);
        for &(_, tag) in &*finished {
            out.push(Completion { tag, at });
        }
        finished.clear();
    }

    /// Whether an entry of the queue is the event of an operation still.
    #[inline]
    fn is_valid(&self, event: Event) -> bool {
        let op = &self.slab[event.slot()];
        event == Event::new(op.due_ns, op.seq, event.slot())
    }

    /// The time of the next event, void ones thrown away.
    #[inline]
    fn peek(&mut self) -> Option<u64> {
        while let Some(&Reverse(event)) = self.events.peek() {
            if self.is_valid(event) {
                return Some(event.at_ns());
            }
            self.events.pop();
        }
        None
    }
}

impl Clocked for ReadFirst {
    fn completion(&self, _: Token) -> Option<SimTime> {
        None
    }

    fn watch(&mut self, token: Token, tag: u64) {
        if let Some(mut slot) = self.slab.find(token) {
            if self.slab[slot].watch.is_on {
                // Several requests wait for one operation.
                let join = self.slab.take(Kind::Join);
                self.slab.follow(slot, join);
                slot = join;
            }
            self.slab[slot].watch = Watch { is_on: true, tag };
            self.watch.count += 1;
        } else {
            self.watch.late.push((self.slab.done_ns(token).unwrap_or(self.now_ns), tag));
        }
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        if !self.watch.late.is_empty() {
            // Stable, so that equal times keep the order of the calls.
            self.watch.late.sort_by_key(|&(at_ns, _)| at_ns);
            out.extend(self.watch.late.drain(..).map(|(at_ns, tag)| Completion { tag, at: SimTime(at_ns) }));
        }
        loop {
            self.dispatch();
            let Some(at_ns) = self.peek() else {
                if until.0 > self.now_ns && self.unblock() {
                    continue;
                }
                break;
            };
            if at_ns > until.0 {
                break;
            }
            if at_ns > self.now_ns {
                self.flush(out);
                self.now_ns = at_ns;
            }
            while let Some(&Reverse(event)) = self.events.peek() {
                if event.at_ns() > at_ns {
                    break;
                }
                self.events.pop();
                if self.is_valid(event) {
                    self.slab[event.slot()].due_ns = NEVER;
                    self.step(event.slot());
                }
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
        if self.ready.is_empty() && self.watch.late.is_empty() {
            let next = self.events.peek().map(|&Reverse(event)| SimTime(event.at_ns()));
            // When time passes without any event, programs short of pages are done as they are.
            next.or_else(|| self.is_waiting_for_pages().then_some(SimTime(self.now_ns + 1)))
        } else {
            Some(SimTime(self.now_ns))
        }
    }

    /// A lower bound while operations are queued: when they run is not known yet.
    fn idle_from(&self) -> SimTime {
        SimTime(self.last_ns)
    }
}

impl Scheduler for ReadFirst {
    fn new(geometry: &Geometry, timing: &Timing) -> Self {
        Self::with_options(geometry, timing, &Options::default())
    }

    fn with_options(geometry: &Geometry, timing: &Timing, options: &Options) -> Self {
        let rules = Rules::new(geometry, timing, options);
        let blocks = geometry.blocks() as usize;
        Self {
            now_ns: 0,
            last_ns: 0,
            slab: Slab::new(),
            events: BinaryHeap::new(),
            dies: (0..geometry.units()).map(|unit| Die::new(unit % geometry.channels)).collect(),
            channels: vec![Channel::default(); geometry.channels as usize],
            dirty_dies: Vec::with_capacity(geometry.units() as usize),
            dirty_channels: Vec::with_capacity(geometry.channels as usize),
            idle_cores: Vec::with_capacity(geometry.channels as usize),
            block_reads: vec![NIL; blocks],
            block_writes: vec![NIL; blocks],
            units: Units::new(blocks, &rules),
            front: Front::new(&rules),
            ready: Vec::new(),
            queued: 0,
            completing: Vec::new(),
            watch: Watched::default(),
            urgent: 0,
            rules,
        }
    }

    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        self.submit_as(op, Sender::Host, at, after)
    }

    fn submit_as(&mut self, op: TimedOp, sender: Sender, at: SimTime, after: Token) -> Token {
        let host = sender != Sender::Device;
        if self.rules.gathers
            && let TimedOp::Program { page, transfer, held } = op
        {
            return self.submit_page(page.0, (transfer, held), sender, at.0, after);
        }
        let predecessor = self.slab.find(after);
        let mut at_ns = at.0.max(self.now_ns);
        let slot = match op {
            TimedOp::Read { page, transfer } => {
                let slot = self.take(Kind::Read, page.0, host);
                self.slab[slot].transfer_ns = self.rules.data_out_ns(transfer);
                self.slab[slot].bytes = transfer;
                if host {
                    at_ns += self.rules.options.host.read_front_ns;
                }
                slot
            }
            TimedOp::Program { page, transfer, held } => {
                let slot = self.take(Kind::Program, page.0, host);
                self.slab[slot].transfer_ns = self.rules.transfer_ns(transfer + held);
                self.slab[slot].parts.given = 1;
                if host {
                    at_ns = self.front.inbound(at_ns, transfer);
                }
                slot
            }
            TimedOp::Erase { page, pages } => {
                self.close_block(page.0 / self.rules.pages_per_block);
                let slot = self.take(Kind::Erase, page.0, host);
                self.slab[slot].bytes = pages;
                slot
            }
        };
        self.order_in_block(slot);
        if let Some(predecessor) = predecessor {
            self.slab.follow(predecessor, slot);
        }
        self.wait_until(slot, at_ns);
        let token = self.slab.token(slot);
        if self.slab[slot].waits == 0 {
            self.enqueue(slot);
        }
        token
    }

    fn pass(&mut self, way: Way, bytes: u32, at: SimTime, after: Token) -> Token {
        self.pass_link(way, bytes, at.0.max(self.now_ns), after)
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

    fn barrier(&mut self, _: SimTime) -> Token {
        self.flush_buffer()
    }

    fn use_slc(&mut self, blocks: SlcBlocks) {
        self.rules.slc = self.rules.options.blocks.slc.map(|times| (blocks, times));
    }

    fn reset(&mut self, at: SimTime) {
        self.slab.release_all(at.0);
        self.events.clear();
        for die in &mut self.dies {
            *die = Die::new(die.channel);
        }
        self.channels.fill_with(Channel::default);
        self.units.reset();
        self.front.reset(at.0);
        self.ready.clear();
        self.dirty_dies.clear();
        self.dirty_channels.clear();
        self.idle_cores.clear();
        self.block_reads.fill(NIL);
        self.block_writes.fill(NIL);
        self.watch.finished.clear();
        self.watch.late.clear();
        self.watch.count = 0;
        self.urgent = 0;
        self.now_ns = at.0;
        self.last_ns = at.0;
    }
}
