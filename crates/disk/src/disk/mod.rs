//! A disk: arm, rotation, zones, a queue that is reordered, read-ahead, and a write cache that loses power.
//!
//! One access at a time has the arm. What is queued is decided when the arm is free, among all that has
//! arrived until then; so a completion is not known at submission, except of what the buffer answers.
//! Commands pass the controller one after another, each for [`DiskOptions::command_ns`].

mod answers;
mod buffer;
mod mechanics;
mod order;
#[cfg(test)]
pub mod tests;

pub use mechanics::{Build, SECTOR_BYTES};
pub use order::Order;

use crate::base::{Base, of_base};
use crate::contents::Keep;
use answers::Answers;
use buffer::{Dirty, ReadBuffer};
use mechanics::Mechanics;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Applied, BlockCommand, Clocked, Completion, Extent, Op, SimTime, Store, StoreResult, Token,
};
use order::Candidate;
use std::collections::VecDeque;

/// How a disk is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Order of the queue.
    pub order: Order,
    /// Commands among which the disk chooses; more wait outside, in the order of their coming.
    pub depth: u32,
    /// A command that has waited longer is next, whatever the order; in nanoseconds.
    pub wait_ns_max: u64,
    /// Controller time of a command, in nanoseconds.
    pub command_ns: u64,
    /// Bytes per second between buffer and host.
    pub interface_bytes_per_s: u64,
    /// Bytes of written data that the write cache holds; 0 answers writes when they are on the medium.
    pub write_cache_bytes: u64,
    /// Ranges that were read and are kept.
    pub read_segments: u32,
    /// How far reading goes on after a read, in bytes; 0 turns it off.
    pub read_ahead_bytes: u64,
}

/// What the mechanics did since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskCounts {
    /// Accesses for which the arm was positioned.
    accesses: u64,
    /// Moving the arm and switching heads before them.
    seek_ns: u64,
    /// Waiting for their first sector.
    rotation_ns: u64,
    transfer_ns: u64,
    /// Reads answered from the buffer or by reading on.
    read_hits: u64,
    /// Writes answered by the write cache.
    cached_writes: u64,
}

/// A command in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    is_write: bool,
    sector: u64,
    count: u64,
    ready_ns: u64,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug)]
enum Pick {
    /// A command of the queue, by index.
    Host(usize),
    /// A read of the queue, by index, that the disk comes to by reading on.
    Ahead(usize),
    /// Written data in the cache, by its first sector.
    Dirty(u64),
}

#[derive(Debug)]
pub struct Disk {
    base: Base,
    mechanics: Mechanics,
    options: DiskOptions,
    counts: DiskCounts,
    answers: Answers,
    queue: VecDeque<Waiting>,
    /// Flushes under way, by number.
    flushes: VecDeque<(u64, u64)>,
    dirty: Dirty,
    buffer: ReadBuffer,
    /// Cylinder and head in use.
    arm: (u64, u32),
    /// Where the last access ended.
    last_sector: u64,
    /// The arm is free from then on.
    busy_until: u64,
    /// The last write access ends then.
    written_at: u64,
    controller_until: u64,
    interface_until: u64,
}

impl Disk {
    /// A new disk. Panics if the capacity is not whole blocks, a rate or depth is 0, or the build is wrong.
    pub fn new(build: Build, options: DiskOptions, block_bytes: u32, keep: Keep) -> Self {
        let has_interface = options.interface_bytes_per_s > 0;
        assert!(options.depth > 0 && has_interface, "no queue or no interface: {options:?}");
        Self {
            base: Base::new(build.capacity_bytes, block_bytes, keep),
            mechanics: Mechanics::new(build),
            counts: DiskCounts::default(),
            answers: Answers::default(),
            queue: VecDeque::new(),
            flushes: VecDeque::new(),
            dirty: Dirty::default(),
            buffer: ReadBuffer::new(options.read_segments as usize, options.read_ahead_bytes / SECTOR_BYTES),
            options,
            arm: (0, 0),
            last_sector: 0,
            busy_until: 0,
            written_at: 0,
            controller_until: 0,
            interface_until: 0,
        }
    }

    /// Written bytes that are not on the medium yet.
    const fn dirty_bytes(&self) -> u64 {
        self.dirty.sectors * SECTOR_BYTES
    }

    /// Passes `bytes` to or from the host once both are ready. Gives when that is done.
    fn pass(&mut self, bytes: u64, ready_ns: u64) -> u64 {
        let start = self.interface_until.max(ready_ns);
        self.interface_until = start + crate::transfer_ns(bytes, self.options.interface_bytes_per_s);
        self.interface_until
    }

    fn enter(&mut self, command: BlockCommand, at: u64) -> Token {
        self.controller_until = self.controller_until.max(at) + self.options.command_ns;
        let ready_ns = self.controller_until;
        let number = self.answers.open(at);
        let Extent { offset, len } = command.extent;
        let (sector, count) = (offset / SECTOR_BYTES, len / SECTOR_BYTES);
        let waiting = |is_write| Waiting { number, is_write, sector, count, ready_ns };
        match command.op {
            Op::Flush => {
                self.flushes.push_back((number, ready_ns));
                self.answer_flushes();
            }
            Op::Trim => self.answers.decide(number, ready_ns),
            Op::Read | Op::Write | Op::WriteZeroes if count == 0 => self.answers.decide(number, ready_ns),
            Op::Read if self.dirty.covers(sector, count) || self.buffer.covers(sector, count) => {
                self.counts.read_hits += 1;
                let done = self.pass(len, ready_ns);
                self.answers.decide(number, done);
            }
            Op::Read => self.queue.push_back(waiting(false)),
            Op::Write | Op::WriteZeroes => {
                self.buffer.forget(sector, count, &self.mechanics, at);
                let room = self.options.write_cache_bytes / SECTOR_BYTES;
                if self.dirty.sectors + count <= room {
                    let done = self.pass(len, ready_ns);
                    self.dirty.insert(sector, count, number, done);
                    self.counts.cached_writes += 1;
                    self.answers.decide(number, done);
                } else {
                    self.queue.push_back(waiting(true));
                }
            }
        }
        Token(number)
    }

    fn visible(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter().take(self.options.depth as usize)
    }

    /// Whether written data in the cache competes with the queue.
    fn is_cleaning(&self) -> bool {
        self.queue.is_empty()
            || !self.flushes.is_empty()
            || self.dirty_bytes() > self.options.write_cache_bytes / 2
            || self.visible().any(|waiting| waiting.is_write)
    }

    /// When the next access begins, as things stand.
    fn next_access_ns(&self) -> Option<u64> {
        let host = self.queue.front().map(|waiting| waiting.ready_ns);
        let dirty = self.dirty.first_ready_ns().filter(|_| self.is_cleaning());
        Some(host.into_iter().chain(dirty).min()?.max(self.busy_until))
    }

    /// Begins every access that is due before `until`, or at it as well.
    fn run(&mut self, until: u64, is_inclusive: bool) {
        while let Some(now) = self.next_access_ns()
            && (now < until || is_inclusive && now == until)
        {
            match self.pick(now) {
                Pick::Host(index) => {
                    let waiting = self.queue.remove(index).expect("it was picked");
                    self.serve(waiting, now);
                }
                Pick::Ahead(index) => {
                    let waiting = self.queue.remove(index).expect("it was picked");
                    self.serve_ahead(waiting, now);
                }
                Pick::Dirty(sector) => {
                    let count = self.dirty.remove(sector);
                    self.buffer.cut(&self.mechanics, now);
                    self.reach(sector, count, now);
                    self.written_at = self.busy_until;
                }
            }
            self.answer_flushes();
        }
    }

    fn pick(&self, now: u64) -> Pick {
        let ready = || self.visible().take_while(|waiting| waiting.ready_ns <= now);
        if let Some(oldest) = self.queue.front()
            && oldest.ready_ns + self.options.wait_ns_max < now
        {
            return Pick::Host(0);
        }
        if self.options.order != Order::Fifo || self.queue.len() == 1 {
            let near = ready().enumerate().filter(|(_, waiting)| {
                !waiting.is_write && self.buffer.is_ahead(waiting.sector, waiting.count, &self.mechanics, now)
            });
            if let Some((index, _)) = near.min_by_key(|(_, waiting)| waiting.sector) {
                return Pick::Ahead(index);
            }
        } else if let Some(waiting) = self.queue.front()
            && !waiting.is_write
            && self.buffer.is_ahead(waiting.sector, waiting.count, &self.mechanics, now)
        {
            return Pick::Ahead(0);
        }
        let limit = self.flushes.front().map_or(u64::MAX, |(number, _)| *number);
        let dirty =
            if self.is_cleaning() { self.dirty.near(self.last_sector, limit, now) } else { Vec::new() };
        let host = ready().count();
        let candidates = ready()
            .map(|waiting| Candidate { sector: waiting.sector, number: waiting.number })
            .chain(dirty.iter().copied());
        let index = self.options.order.pick(&self.mechanics, self.arm, now, candidates);
        let index = index.expect("an access is due");
        if index < host { Pick::Host(index) } else { Pick::Dirty(dirty[index - host].sector) }
    }

    /// Positions the arm and reads or writes.
    fn reach(&mut self, sector: u64, count: u64, now: u64) {
        let (seek_ns, rotation_ns) = self.mechanics.position(self.arm, sector, now);
        let start = now + seek_ns + rotation_ns;
        let (end, last) = self.mechanics.stream(sector, count, start);
        self.counts.accesses += 1;
        self.counts.seek_ns += seek_ns;
        self.counts.rotation_ns += rotation_ns;
        self.counts.transfer_ns += end - start;
        self.arm = (last.cylinder, last.head);
        self.busy_until = end;
        self.last_sector = sector + count;
    }

    fn serve(&mut self, waiting: Waiting, now: u64) {
        let Waiting { number, is_write, sector, count, .. } = waiting;
        if !is_write && self.buffer.covers(sector, count) {
            self.counts.read_hits += 1;
            let done = self.pass(count * SECTOR_BYTES, now);
            self.answers.decide(number, done);
            return;
        }
        self.buffer.cut(&self.mechanics, now);
        self.reach(sector, count, now);
        let done = self.busy_until;
        if is_write {
            self.written_at = done;
        } else {
            let end = self.base.shape.capacity_bytes / SECTOR_BYTES;
            self.buffer.begin(sector, count, done, end);
        }
        self.answers.decide(number, done);
    }

    fn serve_ahead(&mut self, waiting: Waiting, now: u64) {
        let Waiting { number, sector, count, .. } = waiting;
        let end = self.base.shape.capacity_bytes / SECTOR_BYTES;
        let there = self.buffer.follow(sector, count, &self.mechanics, end);
        self.counts.read_hits += 1;
        if there > now {
            self.counts.transfer_ns += there - now.max(self.busy_until);
            let place = self.mechanics.place(sector + count - 1);
            self.arm = (place.cylinder, place.head);
            self.busy_until = there;
            self.last_sector = sector + count;
        }
        let done = self.pass(count * SECTOR_BYTES, now).max(there);
        self.answers.decide(number, done);
    }

    /// Answers the flushes before which nothing is left to write.
    fn answer_flushes(&mut self) {
        while let Some((number, ready_ns)) = self.flushes.front().copied() {
            // The queue is in the order of coming, and may be long.
            let mut before = self.queue.iter().take_while(|waiting| waiting.number < number);
            let is_waiting = before.any(|waiting| waiting.is_write);
            if is_waiting || self.dirty.first_number().is_some_and(|first| first < number) {
                return;
            }
            self.answers.decide(number, self.written_at.max(ready_ns));
            self.flushes.pop_front();
        }
    }
}

impl Store for Disk {
    of_base!();

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        self.base.take(command, payload)?;
        Ok(Applied::default())
    }

    fn start(&mut self, command: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        // What begins at this very moment is chosen when all that comes at it is there.
        self.run(at.0, false);
        Ok(self.enter(command, at.0))
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        self.run(at.0, false);
        Ok(self.enter(BlockCommand::FLUSH, at.0))
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.base.counts = HostCounts::default();
        self.counts = DiskCounts::default();
        self.queue.clear();
        self.flushes.clear();
        self.dirty = Dirty::default();
        self.buffer.clear();
        self.answers.reset(at.0);
        self.busy_until = at.0;
        self.written_at = at.0;
        self.controller_until = at.0;
        self.interface_until = at.0;
    }
}

impl Clocked for Disk {
    nandscape_core::delegate_clock!(self, self.answers; completion, watch);

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        self.run(until.0, true);
        self.answers.report(until, out);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.next_access_ns().into_iter().chain(self.answers.next_ns()).min().map(SimTime)
    }

    /// A lower bound while commands are queued.
    fn idle_from(&self) -> SimTime {
        SimTime(self.busy_until.max(self.answers.last_ns))
    }
}
