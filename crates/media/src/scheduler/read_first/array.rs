//! What the flash array of a die does: times, and how reads stop it.
//!
//! A read of the host that waits at a die makes it stop a program or an erase, if the options allow it: at
//! once, but not before the array has run for [`Suspension::run_ns`], not in its last
//! [`Suspension::tail_ns`], and not more than [`Suspension::most`] times. The die takes reads
//! [`Suspension::stop_ns`] later, all that wait, and then needs [`Suspension::resume_ns`] before the array
//! goes on. Nothing is programmed or erased while the array is being stopped or started.

use super::ReadFirst;
use super::slab::{Kind, List, NIL, Stage};
#[cfg(doc)]
use crate::scheduler::Suspension;

impl ReadFirst {
    /// Gives the array of a die to an operation.
    pub(super) fn start_array(&mut self, slot: u32) {
        let mut span = self.span(slot);
        let mut partner = self.slab[slot].partners.head;
        while partner != NIL {
            // Planes that work together are done with the slowest.
            span = span.max(self.span(partner));
            partner = self.slab[partner].next;
        }
        let unit = self.slab[slot].place.unit;
        let die = &mut self.dies[unit as usize];
        die.array = slot;
        let op = &mut self.slab[slot];
        op.stage = Stage::Array;
        op.run.from_ns = self.now_ns;
        op.run.left_ns = span;
        let end = self.now_ns + span;
        self.schedule(slot, end);
    }

    /// How long the array needs for an operation by itself.
    #[inline]
    fn span(&self, slot: u32) -> u64 {
        let op = &self.slab[slot];
        match op.kind {
            Kind::Read => self.rules.read_ns(op.place),
            Kind::Program => self.rules.program_ns(op.place, self.units.erases(op.place.block)),
            Kind::Erase => {
                self.rules.timing.erase_ns + u64::from(op.bytes) * self.rules.options.blocks.erase_page_ns
            }
            Kind::Join | Kind::Page => unreachable!("not an operation of the medium"),
        }
    }

    /// The array of a die has read a page, or one of each of some planes.
    pub(super) fn array_read(&mut self, slot: u32) {
        let unit = self.slab[slot].place.unit;
        let die = &mut self.dies[unit as usize];
        let channel = die.channel;
        if self.rules.options.read_overlap {
            if die.out != NIL {
                self.slab[slot].stage = Stage::DataHeld;
                return;
            }
            die.out = slot;
            die.array = NIL;
            self.mark_die(unit);
        }
        let mut partners = std::mem::replace(&mut self.slab[slot].partners, List::EMPTY);
        // The die is free when the data of the lead is out, so that comes last.
        while let Some(partner) = self.slab.pop_front(&mut partners) {
            self.data_is_ready(channel, partner);
        }
        self.data_is_ready(channel, slot);
        self.mark_channel(channel);
    }

    fn data_is_ready(&mut self, channel: u32, slot: u32) {
        self.slab[slot].stage = Stage::DataReady;
        self.slab.push_back(&mut self.channels[channel as usize].data_ready, slot);
    }

    /// A program or an erase has ended.
    pub(super) fn leave_die(&mut self, slot: u32) {
        let unit = self.slab[slot].place.unit;
        self.dies[unit as usize].array = NIL;
        self.mark_die(unit);
        let mut partners = std::mem::replace(&mut self.slab[slot].partners, List::EMPTY);
        self.deliver(slot);
        while let Some(partner) = self.slab.pop_front(&mut partners) {
            self.deliver(partner);
        }
    }

    /// Stops the array of a die for the reads of the host that wait there, if that may be.
    pub(super) fn stop_array(&mut self, unit: u32) {
        let rules = &self.rules.options.suspension;
        let die = &self.dies[unit as usize];
        let slot = die.array;
        if slot == NIL || die.reads.is_empty() || self.drains() {
            return;
        }
        let op = &mut self.slab[slot];
        let (allowed, most) = match op.kind {
            Kind::Program => (rules.programs, rules.most),
            Kind::Erase => (rules.erases, rules.erase_most),
            Kind::Read | Kind::Join | Kind::Page => (false, 0),
        };
        if !allowed || op.stage != Stage::Array || op.run.stops >= most {
            return;
        }
        let end = op.run.from_ns + op.run.left_ns;
        let stop = self.now_ns.max(op.run.from_ns + rules.run_ns);
        if end <= stop + rules.tail_ns {
            return;
        }
        op.stage = Stage::Stopping;
        op.run.stops += 1;
        op.run.left_ns = end - stop;
        let stop_ns = if op.kind == Kind::Erase { rules.erase_stop_ns } else { rules.stop_ns };
        let stopped = stop + stop_ns;
        self.schedule(slot, stopped);
    }

    pub(super) fn stopped(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        op.stage = Stage::Stopped;
        let unit = op.place.unit;
        let die = &mut self.dies[unit as usize];
        die.array = NIL;
        die.stopped = slot;
        self.mark_die(unit);
    }

    /// The array goes on.
    pub(super) fn resume(&mut self, unit: u32) {
        let die = &mut self.dies[unit as usize];
        let slot = std::mem::replace(&mut die.stopped, NIL);
        die.array = slot;
        let op = &mut self.slab[slot];
        op.stage = Stage::Array;
        op.run.from_ns = self.now_ns + self.rules.options.suspension.resume_ns;
        let end = op.run.from_ns + op.run.left_ns;
        self.schedule(slot, end);
    }
}
