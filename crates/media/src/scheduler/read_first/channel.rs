//! The bus and the decoder of a channel.
//!
//! A free bus takes read data first, then commands of reads, then erases and program data, each by
//! submission. With [`Options::read_overlap`] commands of reads go before read data. Program data goes page
//! by page. With [`Options::burst_bytes`] the bus leaves a page at the next border of a burst for a read; one
//! event stands for all bursts that no read interrupts. With [`Options::hold_off_ns`] a page does not begin
//! while the channel has reads under way, from the command core to the end of their data, but waits for that
//! only so long.
//!
//! Without contention the bus, the core and the decoder take their time but none of them is ever busy, and
//! nothing holds off.
//!
//! [`Options::read_overlap`]: crate::scheduler::Options::read_overlap
//! [`Options::burst_bytes`]: crate::scheduler::Options::burst_bytes
//! [`Options::hold_off_ns`]: crate::scheduler::Options::hold_off_ns

use super::ReadFirst;
use super::die::Next;
use super::slab::{List, NIL, Stage};

#[derive(Clone, Debug)]
pub(super) struct Channel {
    busy: bool,
    /// Listed in `dirty_channels`.
    pub dirty: bool,
    /// The program whose data is on the bus and has not been told to leave it, or `NIL`.
    load: u32,
    /// Reads of the channel that have not left the bus.
    pub reads: u32,
    pub core_free_ns: u64,
    /// Reads of the layer that let those of the host into the core first.
    pub core_own: List,
    decoder_free_ns: u64,
    /// Reads whose data waits in the page register.
    pub data_ready: List,
    /// Dies that wanted the bus for what they would run next, in no order. Some may have started something
    /// without it since.
    pub waiting: Vec<u32>,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            busy: false,
            dirty: false,
            load: NIL,
            reads: 0,
            core_free_ns: 0,
            core_own: List::EMPTY,
            decoder_free_ns: 0,
            data_ready: List::EMPTY,
            waiting: Vec::new(),
        }
    }
}

/// Set in the key by which waiting programs and erases are compared, so that reads sort before.
const WRITE_CLASS: u64 = 1 << 63;

impl ReadFirst {
    pub(super) fn free_bus(&mut self, unit: u32) {
        let channel = self.dies[unit as usize].channel;
        let bus = &mut self.channels[channel as usize];
        bus.busy = false;
        bus.load = NIL;
        self.mark_channel(channel);
    }

    /// Gives the bus to whom it is due, and asks a program for it where a read wants it.
    pub(super) fn serve_channel(&mut self, channel: u32) {
        loop {
            let bus = &mut self.channels[channel as usize];
            if bus.busy {
                if bus.load != NIL && self.rules.burst_ns > 0 {
                    self.interrupt(channel);
                }
                return;
            }
            let has_data = !bus.data_ready.is_empty();
            // A cached read is told before the data of the last one leaves the die.
            if has_data
                && self.rules.options.read_overlap
                && let Some((unit, next)) = self.first_waiting(channel, true)
            {
                self.start_on_bus(channel, unit, next);
                continue;
            }
            let bus = &mut self.channels[channel as usize];
            if let Some(slot) = self.slab.pop_front(&mut bus.data_ready) {
                bus.busy = self.rules.options.contention;
                let op = &mut self.slab[slot];
                op.stage = Stage::DataOut;
                let end = self.now_ns + op.transfer_ns;
                self.schedule(slot, end);
            } else if let Some((unit, next)) = self.first_waiting(channel, false) {
                self.start_on_bus(channel, unit, next);
            } else {
                return;
            }
        }
    }

    fn start_on_bus(&mut self, channel: u32, unit: u32, next: Next) {
        let contention = self.rules.options.contention;
        let bus = &mut self.channels[channel as usize];
        bus.busy = contention;
        match next {
            Next::Read(slot) | Next::Erase(slot) => {
                self.take_from_queue(slot);
                self.dies[unit as usize].array = slot;
                self.slab[slot].stage = Stage::Command;
                self.schedule(slot, self.now_ns + self.rules.timing.command_ns);
            }
            Next::Load(slot) => {
                if contention {
                    bus.load = slot;
                }
                if self.slab[slot].stage == Stage::Queued {
                    self.take_from_queue(slot);
                    self.dies[unit as usize].loading = slot;
                }
                self.dies[unit as usize].is_loading = true;
                let op = &mut self.slab[slot];
                op.stage = Stage::Load;
                op.run.hold_until_ns = 0;
                if op.run.left_ns == 0 {
                    op.run.left_ns = self.rules.timing.command_ns + op.transfer_ns;
                }
                op.run.from_ns = self.now_ns;
                let end = self.now_ns + op.run.left_ns;
                self.schedule(slot, end);
            }
            Next::Program(_) | Next::Resume => unreachable!("{next:?} needs no bus"),
        }
    }

    /// Makes the program on the bus leave it at the next border of a burst if a read wants it.
    fn interrupt(&mut self, channel: u32) {
        let bus = &self.channels[channel as usize];
        let slot = bus.load;
        let is_wanted = !bus.data_ready.is_empty()
            || (self.rules.timing.command_ns > 0
                && bus.waiting.iter().any(|unit| matches!(self.next_of(*unit), Some(Next::Read(_)))));
        if !is_wanted {
            return;
        }
        self.channels[channel as usize].load = NIL;
        let op = &self.slab[slot];
        let bursts = (self.now_ns - op.run.from_ns).div_ceil(self.rules.burst_ns).max(1);
        let border = op.run.from_ns + bursts * self.rules.burst_ns;
        if border < op.due_ns {
            self.schedule(slot, border);
        }
    }

    /// The data of a program has left the bus, a page of it or up to the border of a burst.
    pub(super) fn loaded(&mut self, slot: u32) {
        let unit = self.slab[slot].place.unit;
        self.free_bus(unit);
        self.mark_die(unit);
        let die = &mut self.dies[unit as usize];
        die.is_loading = false;
        let op = &mut self.slab[slot];
        op.run.left_ns -= self.now_ns - op.run.from_ns;
        op.stage = Stage::LoadPaused;
        if op.run.left_ns > 0 {
            return;
        }
        op.parts.loaded += 1;
        if op.parts.loaded == op.parts.loads && die.array == NIL && die.stopped == NIL {
            die.loading = NIL;
            self.start_array(slot);
        }
    }

    /// The data of a read is out: the decoder works on it, and the die is free if no other plane has any.
    pub(super) fn data_out(&mut self, slot: u32) {
        let unit = self.slab[slot].place.unit;
        self.free_bus(unit);
        self.mark_die(unit);
        let die = &mut self.dies[unit as usize];
        let channel = die.channel;
        if die.array == slot {
            die.array = NIL;
        } else if die.out == slot {
            die.out = NIL;
            let next = die.array;
            if next != NIL && self.slab[next].stage == Stage::DataHeld {
                self.array_read(next);
            }
        }
        let channel = &mut self.channels[channel as usize];
        channel.reads -= 1;
        if self.rules.options.decode_ns == 0 {
            self.deliver(slot);
            return;
        }
        let start = if self.rules.options.contention {
            channel.decoder_free_ns.max(self.now_ns)
        } else {
            self.now_ns
        };
        channel.decoder_free_ns = start + self.rules.options.decode_ns;
        let end = channel.decoder_free_ns;
        self.slab[slot].stage = Stage::Decode;
        self.schedule(slot, end);
    }

    /// The waiting die that is due, with what it would do; only of those that would read, if asked so. A
    /// scan, since few dies of a channel wait at a time and what they would run may have changed.
    fn first_waiting(&mut self, channel: u32, only_reads: bool) -> Option<(u32, Next)> {
        let mut best: Option<(u64, Next, usize)> = None;
        let mut index = 0;
        while let Some(&unit) = self.channels[channel as usize].waiting.get(index) {
            let (next, key) = match self.next_of(unit) {
                Some(next @ Next::Read(slot)) if self.rules.timing.command_ns > 0 => {
                    (next, self.slab[slot].seq)
                }
                Some(_) if only_reads => {
                    index += 1;
                    continue;
                }
                Some(next @ Next::Erase(slot)) if self.rules.timing.command_ns > 0 => {
                    (next, self.slab[slot].seq | WRITE_CLASS)
                }
                Some(next @ Next::Load(slot)) => {
                    if self.holds_off(channel, slot) {
                        index += 1;
                        continue;
                    }
                    (next, self.slab[slot].seq | WRITE_CLASS)
                }
                next => {
                    self.stop_waiting(channel, index);
                    // What is due now, since the buffer has filled or has been drained, needs no bus.
                    if next.is_some() {
                        self.mark_die(unit);
                    }
                    continue;
                }
            };
            if best.is_none_or(|(least, ..)| key < least) {
                best = Some((key, next, index));
            }
            index += 1;
        }
        best.map(|(_, next, index)| (self.stop_waiting(channel, index), next))
    }

    /// Whether a page that is to be loaded waits for the reads of its channel.
    fn holds_off(&mut self, channel: u32, slot: u32) -> bool {
        let op = &self.slab[slot];
        let until = op.run.hold_until_ns;
        let is_free = until <= self.now_ns || self.channels[channel as usize].reads == 0;
        if op.run.left_ns > 0 || is_free || self.drains() {
            return false;
        }
        if op.due_ns != until {
            self.schedule(slot, until);
        }
        true
    }

    fn stop_waiting(&mut self, channel: u32, index: usize) -> u32 {
        let unit = self.channels[channel as usize].waiting.swap_remove(index);
        self.dies[unit as usize].waiting = false;
        unit
    }
}
