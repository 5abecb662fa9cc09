//! What a die does next.

use super::ReadFirst;
use super::slab::{Kind, List, NEVER, NIL, Stage};
use crate::scheduler::GcOrder;

/// Queued operations in which a die looks for partners on other planes: those of a host that outruns the
/// device queue by the ten thousands.
const JOIN_WINDOW: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Die {
    pub channel: u32,
    /// What has the array, of a read until its data is out or in the second register; or `NIL`.
    pub array: u32,
    /// The read whose data is in the second register, or `NIL`.
    pub out: u32,
    /// The stopped program or erase, or `NIL`.
    pub stopped: u32,
    /// The program that is being loaded, or is loaded and waits for the array; or `NIL`.
    pub loading: u32,
    /// The data of `loading` is on the bus.
    pub is_loading: bool,
    /// Listed in `dirty_dies`.
    pub dirty: bool,
    /// Listed in the channel's `waiting`.
    pub waiting: bool,
    /// Ready operations of the host and of the layer.
    pub reads: List,
    own_reads: List,
    writes: List,
    own_writes: List,
    /// Before this time the layer starts no program and no erase here, if it is limited.
    own_from_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Read(u32),
    Erase(u32),
    /// Loads the next page of a program, or goes on with one.
    Load(u32),
    /// Programs what has been loaded.
    Program(u32),
    Resume,
}

impl Die {
    pub const fn new(channel: u32) -> Self {
        Self {
            channel,
            array: NIL,
            out: NIL,
            stopped: NIL,
            loading: NIL,
            is_loading: false,
            dirty: false,
            waiting: false,
            reads: List::EMPTY,
            own_reads: List::EMPTY,
            writes: List::EMPTY,
            own_writes: List::EMPTY,
            own_from_ns: 0,
        }
    }

    #[inline]
    const fn queue(&mut self, kind: Kind, host: bool) -> &mut List {
        match (matches!(kind, Kind::Read), host) {
            (true, true) => &mut self.reads,
            (true, false) => &mut self.own_reads,
            (false, true) => &mut self.writes,
            (false, false) => &mut self.own_writes,
        }
    }
}

impl ReadFirst {
    fn queue_ready(&mut self) {
        if self.ready.len() > 1 {
            self.ready.sort_unstable();
        }
        for index in 0..self.ready.len() {
            let slot = self.ready[index].1;
            self.queued += 1;
            let op = &mut self.slab[slot];
            op.order = self.queued;
            let unit = op.place.unit;
            let die = &mut self.dies[unit as usize];
            let queue = die.queue(op.kind, op.host);
            self.slab.push_back(queue, slot);
            self.mark_die(unit);
        }
        self.ready.clear();
    }

    #[inline]
    fn older(&self, a: u32, b: u32) -> u32 {
        if b == NIL || (a != NIL && self.slab[a].order < self.slab[b].order) { a } else { b }
    }

    /// What an idle die would do next.
    #[inline]
    pub(super) fn next_of(&self, unit: u32) -> Option<Next> {
        let die = &self.dies[unit as usize];
        if die.is_loading {
            return None;
        }
        if die.array != NIL {
            return if self.rules.options.load_overlap { self.next_load(die) } else { None };
        }
        if die.loading != NIL && self.slab[die.loading].run.left_ns > 0 {
            return Some(Next::Load(die.loading));
        }
        let host_first = self.rules.options.gc_order == GcOrder::HostFirst && self.urgent == 0;
        let read = if host_first || die.stopped != NIL {
            die.reads.head
        } else {
            self.older(die.reads.head, die.own_reads.head)
        };
        if read != NIL && !(self.drains() && self.yields(die, read)) {
            return Some(Next::Read(read));
        }
        if die.stopped != NIL {
            return Some(Next::Resume);
        }
        if die.loading != NIL {
            let program = &self.slab[die.loading];
            let is_loaded = program.parts.loaded == program.parts.loads;
            return Some(if is_loaded { Next::Program(die.loading) } else { Next::Load(die.loading) });
        }
        if host_first && die.writes.is_empty() && !die.own_reads.is_empty() {
            return Some(Next::Read(die.own_reads.head));
        }
        self.next_write(die)
    }

    /// Whether a read of the host comes after what its die has begun or got before.
    fn yields(&self, die: &Die, read: u32) -> bool {
        let is_older = |next| match next {
            Next::Erase(slot) | Next::Load(slot) => self.slab[slot].order < self.slab[read].order,
            Next::Read(_) | Next::Program(_) | Next::Resume => false,
        };
        let has_begun = die.stopped != NIL || die.loading != NIL;
        self.slab[read].host && (has_begun || self.next_write(die).is_some_and(is_older))
    }

    /// The program or erase that is due.
    #[inline]
    fn next_write(&self, die: &Die) -> Option<Next> {
        let slot = match self.rules.options.gc_order {
            GcOrder::HostFirst if self.urgent == 0 => {
                if die.writes.is_empty() {
                    die.own_writes.head
                } else {
                    die.writes.head
                }
            }
            GcOrder::RateLimited { .. } if self.urgent == 0 && die.own_from_ns > self.now_ns => {
                die.writes.head
            }
            _ => self.older(die.writes.head, die.own_writes.head),
        };
        if slot == NIL {
            None
        } else if self.slab[slot].kind == Kind::Erase {
            Some(Next::Erase(slot))
        } else {
            Some(Next::Load(slot))
        }
    }

    /// The load that a die whose array works can take, with a second page register.
    fn next_load(&self, die: &Die) -> Option<Next> {
        let array = &self.slab[die.array];
        if array.kind != Kind::Program || array.stage != Stage::Array {
            return None;
        }
        if die.loading != NIL {
            let program = &self.slab[die.loading];
            return (program.parts.loaded < program.parts.loads).then_some(Next::Load(die.loading));
        }
        self.next_write(die).filter(|next| matches!(next, Next::Load(_)))
    }

    /// Takes an operation out of its queue, where it is the first.
    pub(super) fn take_from_queue(&mut self, slot: u32) {
        let op = &self.slab[slot];
        let die = &mut self.dies[op.place.unit as usize];
        if let GcOrder::RateLimited { gap_ns } = self.rules.options.gc_order
            && op.kind != Kind::Read
            && !op.host
        {
            die.own_from_ns = self.now_ns + gap_ns;
        }
        let queue = die.queue(op.kind, op.host);
        debug_assert_eq!(queue.head, slot);
        self.slab.pop_front(queue);
        self.slab[slot].parts.loads = self.slab[slot].parts.pages;
        if self.rules.options.multi_plane
            || self.slab[slot].kind == Kind::Read && self.rules.options.read_pages > 1
        {
            let rest = std::mem::replace(queue, List::EMPTY);
            let rest = self.join_planes(slot, rest);
            let op = &self.slab[slot];
            let die = &mut self.dies[op.place.unit as usize];
            *die.queue(op.kind, op.host) = rest;
        }
    }

    /// Takes out of a queue what runs with an operation on other planes: of the same kind, on the same page
    /// of its block or the same row of a block on several planes, one a plane, and with no earlier write of
    /// its block pending, among the first [`JOIN_WINDOW`]. Gives what is left.
    fn join_planes(&mut self, slot: u32, mut queue: List) -> List {
        let lead = &self.slab[slot];
        let kind = lead.kind;
        let (row, mut planes) = self.rules.row_and_plane(lead.place);
        let mut rest = List::EMPTY;
        let mut partners = List::EMPTY;
        let mut loads = lead.parts.loads;
        for _ in 0..JOIN_WINDOW {
            let Some(other) = self.slab.pop_front(&mut queue) else { break };
            let op = &mut self.slab[other];
            let (row_of_other, plane) = self.rules.row_and_plane(op.place);
            let fits = op.kind == kind
                && row_of_other == row
                && planes & plane == 0
                && (kind == Kind::Read || op.links.older == NIL);
            if fits {
                planes |= plane;
                loads += op.parts.pages;
                op.stage = Stage::Joined;
                op.due_ns = NEVER;
                self.slab.push_back(&mut partners, other);
            } else {
                self.slab.push_back(&mut rest, other);
            }
        }
        let lead = &mut self.slab[slot];
        lead.partners = partners;
        lead.parts.loads = loads;
        self.slab.append(&mut rest, queue);
        rest
    }

    /// Starts all that can start now.
    pub(super) fn dispatch(&mut self) {
        self.queue_ready();
        self.serve_cores();
        loop {
            while let Some(unit) = self.dirty_dies.pop() {
                self.dies[unit as usize].dirty = false;
                self.serve_die(unit);
            }
            let Some(channel) = self.dirty_channels.pop() else { break };
            self.channels[channel as usize].dirty = false;
            self.serve_channel(channel);
        }
    }

    /// Starts what needs no bus, and lists the die for the bus otherwise.
    fn serve_die(&mut self, unit: u32) {
        loop {
            match self.next_of(unit) {
                None => break,
                Some(Next::Resume) => self.resume(unit),
                Some(Next::Program(slot)) => {
                    self.dies[unit as usize].loading = NIL;
                    self.start_array(slot);
                }
                Some(Next::Read(slot) | Next::Erase(slot)) if self.rules.timing.command_ns == 0 => {
                    self.take_from_queue(slot);
                    self.start_array(slot);
                }
                Some(next) => {
                    self.wait_for_bus(unit, next);
                    break;
                }
            }
        }
        if self.rules.options.suspension.programs || self.rules.options.suspension.erases {
            self.stop_array(unit);
        }
        if let GcOrder::RateLimited { .. } = self.rules.options.gc_order {
            self.wait_for_turn(unit);
        }
    }

    fn wait_for_bus(&mut self, unit: u32, next: Next) {
        if let Next::Load(slot) = next
            && self.rules.options.hold_off_ns > 0
        {
            let op = &mut self.slab[slot];
            if op.run.left_ns == 0 && op.run.hold_until_ns == 0 {
                op.run.hold_until_ns = self.now_ns + self.rules.options.hold_off_ns;
            }
        }
        let die = &mut self.dies[unit as usize];
        let channel = die.channel;
        if !die.waiting {
            die.waiting = true;
            self.channels[channel as usize].waiting.push(unit);
        }
        self.mark_channel(channel);
    }

    /// Looks again when the layer's next program or erase is due.
    fn wait_for_turn(&mut self, unit: u32) {
        let die = &self.dies[unit as usize];
        let (slot, from_ns) = (die.own_writes.head, die.own_from_ns);
        if slot != NIL && from_ns > self.now_ns && self.slab[slot].due_ns != from_ns {
            self.schedule(slot, from_ns);
        }
    }
}
