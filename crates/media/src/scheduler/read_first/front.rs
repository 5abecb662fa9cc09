//! What lies between the host and the dies: front latency, link, write buffer, and the command core of each
//! channel.

mod pace;

use super::ReadFirst;
use super::rules::Rules;
use super::slab::{Kind, List, Stage};
use crate::scheduler::GcOrder;
use crate::scheduler::{HostLink, Intake, Scheduler};
use nandscape_core::rng::{Xoshiro256PlusPlus, seeded};
use nandscape_core::sample::exponential;
use nandscape_core::{Token, Way};
use pace::Pace;

/// Seed of the times that the controller takes.
const DRAWS: u64 = 0x696e_7461_6b65;

#[derive(Clone, Debug)]
pub(super) struct Front {
    host: HostLink,
    buffer_bytes: u64,
    /// When the link is free, to the device and to the host.
    in_free_ns: u64,
    out_free_ns: u64,
    /// When the controller is through with what it was given, at its rate in the long run.
    intake_ns: u64,
    /// Draws of the times that it takes.
    draws: Xoshiro256PlusPlus,
    /// Pages of the layer that wait for the controller, in order; the first has a turn.
    turns: List,
    /// They are being served: what becomes ready meanwhile only joins them.
    is_taking_turns: bool,
    /// Bytes left in the buffer; below zero where an incomplete program had to be let in to free any.
    room: i64,
    /// Pages that wait for room, in order.
    blocked: List,
    /// Pages with room whose data is on the link.
    inbound: u32,
    /// How fast they come, where that is limited.
    pace: Option<Pace>,
    /// Programs with pages of the host in a volatile buffer; some have ended.
    buffered: Vec<Token>,
}

// The link, the controller and the buffer are idle after a reset, and programs in the buffer have ended.
nandscape_core::state!(impl [] Front {
    parts: pace;
    fixed: host, buffer_bytes, in_free_ns, out_free_ns, intake_ns, draws, turns, is_taking_turns, room, blocked,
        inbound, buffered;
});

impl Front {
    pub fn new(rules: &Rules) -> Self {
        Self {
            host: rules.options.host,
            buffer_bytes: rules.options.buffer.bytes,
            in_free_ns: 0,
            out_free_ns: 0,
            intake_ns: 0,
            draws: seeded(DRAWS),
            turns: List::EMPTY,
            is_taking_turns: false,
            room: rules.options.buffer.bytes.cast_signed(),
            blocked: List::EMPTY,
            inbound: 0,
            pace: rules.options.buffer.is_paced.then(|| Pace::new(rules)),
            buffered: Vec::new(),
        }
    }

    pub fn reset(&mut self, at_ns: u64) {
        self.in_free_ns = at_ns;
        self.out_free_ns = at_ns;
        self.intake_ns = at_ns;
        self.draws = seeded(DRAWS);
        self.turns = List::EMPTY;
        self.room = self.buffer_bytes.cast_signed();
        self.blocked = List::EMPTY;
        self.inbound = 0;
        if let Some(pace) = &mut self.pace {
            pace.reset(at_ns);
        }
    }

    /// When the controller takes bytes that come at `now_ns`.
    fn take_in(&mut self, rules: &Rules, now_ns: u64, bytes: u32) -> u64 {
        let Intake { bytes_per_s, spread, .. } = rules.options.intake;
        if bytes_per_s == 0 {
            return now_ns;
        }
        let mut ns = u64::from(bytes) * 1_000_000_000 / bytes_per_s;
        if spread > 0.0 {
            ns = self.vary(ns, spread);
        }
        self.intake_ns = self.intake_ns.max(now_ns) + ns;
        now_ns.max(self.intake_ns.saturating_sub(rules.intake_ahead_ns))
    }

    /// A time with the mean `ns`, a share of which is exponential.
    #[inline(never)]
    fn vary(&mut self, ns: u64, spread: f64) -> u64 {
        (ns as f64 * (1.0 - spread + spread * exponential(&mut self.draws))).round() as u64
    }

    /// When the data of a write submitted at `at_ns` is in the controller, without a buffer that it might
    /// have to wait for.
    #[inline]
    pub fn inbound(&mut self, at_ns: u64, bytes: u32) -> u64 {
        if !self.host.is_some() {
            return at_ns;
        }
        let start = self.in_free_ns.max(at_ns + self.host.write_front_ns);
        self.in_free_ns = start + self.host.transfer_ns(bytes);
        self.in_free_ns
    }
}

impl ReadFirst {
    /// A read that is ready goes through the command core of its channel to its die, or back at once if the
    /// buffer has its data.
    pub(super) fn enter(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        if op.marks.buffered {
            self.deliver(slot);
            return;
        }
        let channel = &mut self.channels[self.dies[op.place.unit as usize].channel as usize];
        channel.reads += 1;
        if self.rules.options.core_ns == 0 {
            op.stage = Stage::Queued;
            self.ready.push((op.seq, slot));
            return;
        }
        if !op.host
            && self.rules.options.contention
            && self.rules.options.gc_order == GcOrder::HostFirst
            && self.urgent == 0
            && channel.core_free_ns > self.now_ns
        {
            // The core is busy until an event of this channel, which looks here.
            op.stage = Stage::Waiting;
            self.slab.push_back(&mut channel.core_own, slot);
            return;
        }
        self.enter_core(slot);
    }

    fn enter_core(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        let channel = &mut self.channels[self.dies[op.place.unit as usize].channel as usize];
        let start =
            if self.rules.options.contention { channel.core_free_ns.max(self.now_ns) } else { self.now_ns };
        channel.core_free_ns = start + self.rules.options.core_ns;
        op.stage = Stage::Core;
        let end = channel.core_free_ns;
        self.schedule(slot, end);
    }

    /// A read has left the command core of its channel.
    pub(super) fn leave_core(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        op.stage = Stage::Queued;
        self.ready.push((op.seq, slot));
        let channel = self.dies[op.place.unit as usize].channel;
        if !self.channels[channel as usize].core_own.is_empty() {
            self.idle_cores.push(channel);
        }
    }

    /// Lets the layer's reads into cores that no read of the host wants, or all of them once the host waits
    /// for the layer.
    pub(super) fn serve_cores(&mut self) {
        while let Some(channel) = self.idle_cores.pop() {
            while self.urgent > 0 || self.channels[channel as usize].core_free_ns <= self.now_ns {
                let Some(slot) = self.slab.pop_front(&mut self.channels[channel as usize].core_own) else {
                    break;
                };
                self.enter_core(slot);
            }
        }
    }

    /// An operation has been done; the host hears of it after the link and the completion latency.
    #[inline]
    pub(super) fn deliver(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        if op.host && op.parts.host_pages == 0 && self.rules.options.host.is_some() {
            op.stage = Stage::Outbound;
            let mut end = self.now_ns;
            if op.kind == Kind::Read {
                end = end.max(self.front.out_free_ns) + self.rules.options.host.transfer_ns(op.bytes);
                self.front.out_free_ns = end;
            }
            self.schedule(slot, end + self.rules.options.host.completion_ns);
        } else {
            self.complete(slot);
        }
    }

    /// Bytes cross the link without a flash operation. Those that come in wait for the pages that wait for
    /// room.
    pub(super) fn pass_link(&mut self, way: Way, bytes: u32, at_ns: u64, after: Token) -> Token {
        let host = self.rules.options.host;
        let front_ns = if way == Way::In { host.write_front_ns } else { host.read_front_ns };
        let mut done = after;
        if at_ns + front_ns + host.transfer_ns(bytes) + host.completion_ns > self.now_ns {
            let slot = self.slab.take(Kind::Join);
            let op = &mut self.slab[slot];
            (op.stage, op.bytes, op.host) = (Stage::Passing, bytes, way == Way::In);
            self.schedule(slot, at_ns + front_ns);
            let passed = self.slab.token(slot);
            done = self.join(passed, done);
        }
        if way == Way::In && !self.front.blocked.is_empty() {
            let last = self.slab.token(self.front.blocked.tail);
            done = self.join(last, done);
        }
        done
    }

    /// Bytes that cross the link alone have come to it.
    pub(super) fn cross_link(&mut self, slot: u32) {
        let (bytes, is_in) = (self.slab[slot].bytes, self.slab[slot].host);
        let mut end = self.now_ns;
        if bytes > 0 {
            let free_ns = if is_in { &mut self.front.in_free_ns } else { &mut self.front.out_free_ns };
            end = end.max(*free_ns) + self.rules.options.host.transfer_ns(bytes);
            *free_ns = end;
            if is_in {
                end = self.front.take_in(&self.rules, end, bytes);
            }
        }
        self.slab[slot].stage = Stage::Outbound;
        self.schedule(slot, end + self.rules.options.host.completion_ns);
    }

    /// A page of the layer wants into the controller, which takes the layer's pages one after the other.
    pub(super) fn ask_for_turns(&mut self, slot: u32) {
        if self.rules.options.intake.bytes_per_s == 0 {
            self.gathered(slot);
            return;
        }
        let bytes = self.rules.page_bytes;
        let op = &mut self.slab[slot];
        (op.stage, op.bytes) = (Stage::Turns, bytes);
        let is_first = self.front.turns.is_empty() && !self.front.is_taking_turns;
        let mut turns = self.front.turns;
        self.slab.push_back(&mut turns, slot);
        self.front.turns = turns;
        if is_first {
            self.take_turns();
        }
    }

    /// A turn of the first page of the layer has ended.
    pub(super) fn end_turn(&mut self) {
        self.take_turns();
        if self.front.turns.is_empty() {
            self.relieve();
        }
    }

    /// The pages of the layer take turns until one has to wait for its end.
    fn take_turns(&mut self) {
        self.front.is_taking_turns = true;
        while !self.front.turns.is_empty() {
            let slot = self.front.turns.head;
            let left = self.slab[slot].bytes;
            if left == 0 {
                let mut turns = self.front.turns;
                self.slab.pop_front(&mut turns);
                self.front.turns = turns;
                self.gathered(slot);
                continue;
            }
            let bytes = left.min(self.rules.options.intake.turn);
            self.slab[slot].bytes = left - bytes;
            let end = self.front.take_in(&self.rules, self.now_ns, bytes);
            if end > self.now_ns {
                self.schedule(slot, end);
                break;
            }
        }
        self.front.is_taking_turns = false;
    }

    /// A page of the host wants into the buffer.
    pub(super) fn ask_for_room(&mut self, slot: u32) {
        if self.front.blocked.is_empty() && self.has_room() && self.is_time() {
            self.let_in(slot);
        } else {
            self.slab[slot].stage = Stage::Blocked;
            let mut blocked = self.front.blocked;
            self.slab.push_back(&mut blocked, slot);
            self.front.blocked = blocked;
            self.let_in_blocked();
            self.relieve();
        }
    }

    const fn has_room(&self) -> bool {
        self.front.room >= self.rules.page_bytes as i64
    }

    /// Whether the buffer is so full that reads do not go first.
    #[inline]
    pub(super) const fn drains(&self) -> bool {
        self.front.room < self.rules.drain_room
    }

    /// Whether the next page may come in now.
    fn is_time(&self) -> bool {
        self.front.pace.as_ref().is_none_or(|pace| pace.from_ns <= self.now_ns)
    }

    /// Lets in those of the pages that wait that have room and whose time has come. The first of the others
    /// is looked at again when its time has.
    pub(super) fn let_in_blocked(&mut self) {
        while !self.front.blocked.is_empty() && self.has_room() {
            if let Some(pace) = &self.front.pace
                && pace.from_ns > self.now_ns
            {
                self.schedule(self.front.blocked.head, pace.from_ns);
                return;
            }
            self.let_in_first();
        }
    }

    fn let_in(&mut self, slot: u32) {
        self.front.room -= i64::from(self.rules.page_bytes);
        if let Some(pace) = &mut self.front.pace {
            pace.let_in(self.now_ns, self.front.room);
        }
        self.front.inbound += 1;
        let op = &mut self.slab[slot];
        op.stage = Stage::Inbound;
        let end = self.front.in_free_ns.max(self.now_ns) + self.rules.options.host.transfer_ns(op.bytes);
        self.front.in_free_ns = end;
        let end = self.front.take_in(&self.rules, end, op.bytes);
        self.schedule(slot, end + self.rules.options.host.completion_ns);
    }

    /// The data of a host page is in the buffer and the host knows.
    pub(super) fn arrive(&mut self, slot: u32) {
        self.front.inbound -= 1;
        let (lead, page) = (self.slab[slot].lead, self.slab[slot].place.page);
        self.page_present(lead, page);
        self.complete(slot);
    }

    /// A program has ended and gives its room back.
    pub(super) fn leave_buffer(&mut self, lead: u32) {
        let pages = self.slab[lead].parts.host_pages;
        let room = self.front.room;
        self.front.room += i64::from(pages) * i64::from(self.rules.page_bytes);
        if let Some(pace) = &mut self.front.pace {
            pace.left(self.now_ns, pages, room);
        }
        self.let_in_blocked();
    }

    fn let_in_first(&mut self) {
        let mut blocked = self.front.blocked;
        if let Some(slot) = self.slab.pop_front(&mut blocked) {
            self.front.blocked = blocked;
            self.let_in(slot);
        }
    }

    /// If pages wait for room that only programs short of pages hold: closes these, and where they are short
    /// of the very pages that wait, lets the first in beyond the buffer's size. While anything is under way
    /// that a program may wait for, an erase or a read of a victim among it, room will come.
    #[inline]
    pub(super) fn relieve(&mut self) {
        if self.is_stuck() {
            self.close_all();
            if self.is_stuck() {
                self.let_in_first();
            }
        }
    }

    #[inline]
    const fn is_stuck(&self) -> bool {
        let front = &self.front;
        !front.blocked.is_empty()
            && !self.has_room()
            && self.units.under_way == 0
            && front.inbound == 0
            && front.turns.is_empty()
    }

    /// Whether someone waits for programs that are short of pages.
    pub(super) fn is_waiting_for_pages(&self) -> bool {
        let is_short = !self.units.open.is_empty() || !self.front.blocked.is_empty();
        self.watch.count > 0 && (is_short || self.rules.gathers && self.has_held_up())
    }

    /// Time would pass without any event: lets go on what would wait for ever. Says whether anything did.
    pub(super) fn unblock(&mut self) -> bool {
        if !self.is_waiting_for_pages() {
            return false;
        }
        self.close_all();
        if self.ready.is_empty() {
            self.let_in_first();
        }
        if self.ready.is_empty() && self.events.is_empty() {
            self.let_go_held_up();
        }
        true
    }

    /// A program has got its first page of the host, for which a flush waits.
    pub(super) fn note_buffered(&mut self, lead: u32) {
        if !self.rules.options.buffer.is_volatile {
            return;
        }
        let (slab, buffered) = (&self.slab, &mut self.front.buffered);
        if buffered.len() == buffered.capacity() {
            buffered.retain(|token| slab.find(*token).is_some());
            // Twice the room if most of them were still there, so that this seldom happens.
            if buffered.len() * 2 > buffered.capacity() {
                buffered.reserve(buffered.capacity());
            }
        }
        buffered.push(slab.token(lead));
    }

    /// Completes when every program of the host that the buffer holds now has ended.
    pub(super) fn flush_buffer(&mut self) -> Token {
        if !self.rules.options.buffer.is_volatile || self.rules.options.buffer.bytes == 0 {
            return Token::NONE;
        }
        self.close_all();
        let mut buffered = std::mem::take(&mut self.front.buffered);
        buffered.retain(|token| self.slab.find(*token).is_some());
        let mut done = Token::NONE;
        if !buffered.is_empty() {
            let join = self.slab.take(Kind::Join);
            for token in &buffered {
                let slot = self.slab.find(*token).expect("it was just there");
                self.slab.follow(slot, join);
            }
            done = self.slab.token(join);
        }
        self.front.buffered = buffered;
        done
    }
}
