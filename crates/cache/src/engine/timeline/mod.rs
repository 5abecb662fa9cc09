//! What is to be done at the stores, in the order of time: steps, the stores that take them, and what waits.
//!
//! A step does its work on the bytes when it is submitted, and takes its time from when all that it waits for
//! has ended. So a step is started at once, or is put aside with what it waits for. Invariants:
//! * every store is started in nondecreasing time: whatever is due comes before what a later command asks
//!   for;
//! * steps that wait for the same thing are started in the order in which they were submitted;
//! * a step that waits for one that could not be started is never started, and ends when that one failed.

mod agenda;
mod answers;
mod holds;
mod moment;
mod news;
mod passing;
mod side;
mod slab;
#[cfg(test)]
mod tests;

pub use moment::LateError;
pub(super) use moment::{Gather, Moment, Notice, Place};
pub(super) use side::{Bytes, Side};

use agenda::Agenda;
use holds::Holds;
use moment::StepId;
use nandscape_core::ftl::Hint;
use nandscape_core::{Applied, BlockCommand, Completion, Extent, Op, SimTime, StoreResult, Token};
use news::News;
use slab::{Slab, State};
use std::collections::VecDeque;

/// The fast store among the stores; the disk of volume `v` is the store `1 + v`.
pub(super) const FAST: u16 = 0;

/// The stores and what is under way.
#[derive(Default)]
pub(super) struct Timeline {
    sides: Vec<Side>,
    now: SimTime,
    slab: Slab,
    agenda: Agenda,
    /// Steps that wait for nothing any more.
    ready: VecDeque<u32>,
    /// Steps under way whose end is unknown.
    watched: u32,
    heard: Vec<Completion>,
    /// What the host asked for and was not told yet.
    reports: VecDeque<Completion>,
    holds: Holds,
    pub news: News,
    /// The fast store is used no more: what was to be done there is passed over.
    is_fast_gone: bool,
}

impl Timeline {
    pub fn new(fast: Side) -> Self {
        Self { sides: vec![fast], ..Self::default() }
    }

    /// What is still to be started at the fast store is not, and what waits for it goes on.
    pub const fn pass_over_fast(&mut self) {
        self.is_fast_gone = true;
    }

    pub fn add(&mut self, disk: Side) {
        self.sides.push(disk);
    }

    pub fn side(&self, side: u16) -> &Side {
        &self.sides[usize::from(side)]
    }

    pub fn side_mut(&mut self, side: u16) -> &mut Side {
        &mut self.sides[usize::from(side)]
    }

    pub fn sides_mut(&mut self) -> &mut [Side] {
        &mut self.sides
    }

    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// When it is, as far as that is known.
    pub fn known(&self, moment: Moment) -> Option<SimTime> {
        let Some(id) = StepId::of_token(moment.0) else { return Some(SimTime(moment.0)) };
        match self.slab.find(id) {
            None => Some(self.now),
            Some(step) if step.state == State::Ending => Some(step.at),
            Some(_) => None,
        }
    }

    pub fn is_past(&self, moment: Moment) -> bool {
        self.known(moment).is_some_and(|at| at <= self.now)
    }

    /// Adds to what a gathering waits for.
    pub fn gather(&mut self, gather: &mut Gather, moment: Moment) {
        if let Some(at) = self.known(moment) {
            gather.at = gather.at.max(at);
            return;
        }
        let id = StepId::of_token(moment.0).expect("a time is known");
        let Some(before) = gather.step.filter(|step| self.slab.find(*step).is_some()) else {
            (gather.step, gather.is_open) = (Some(id), false);
            return;
        };
        if gather.is_open {
            self.slab.follow(id, before);
        } else if before != id {
            let join = self.slab.put_join(SimTime::ZERO);
            self.slab.follow(before, join);
            self.slab.follow(id, join);
            (gather.step, gather.is_open) = (Some(join), true);
        }
    }

    /// The moment at which all of it is done. What is gathered later is not part of it.
    pub fn close(&mut self, gather: &mut Gather) -> Moment {
        let Some(step) = gather.step.filter(|step| self.slab.find(*step).is_some()) else {
            gather.step = None;
            return Moment::at(gather.at);
        };
        if gather.at > self.now {
            if gather.is_open {
                let join = self.slab.get_mut(Slab::index(step));
                join.at = join.at.max(gather.at);
            } else {
                gather.step = Some(self.join_after(step, gather.at));
            }
        }
        gather.is_open = false;
        Moment::step(gather.step.expect("it is there"))
    }

    fn join_after(&mut self, step: StepId, at: SimTime) -> StepId {
        let join = self.slab.put_join(at);
        self.slab.follow(step, join);
        join
    }

    /// The later of two moments.
    pub fn join(&mut self, a: Moment, b: Moment) -> Moment {
        match (self.known(a), self.known(b)) {
            (Some(a), Some(b)) => Moment::at(a.max(b)),
            (Some(at), None) if at <= self.now => b,
            (None, Some(at)) if at <= self.now => a,
            _ => {
                let mut both = Gather::default();
                self.gather(&mut both, a);
                self.gather(&mut both, b);
                self.close(&mut both)
            }
        }
    }

    /// A moment of which nobody knows anything before [`Timeline::settle`] says it.
    pub fn open(&mut self) -> Moment {
        let join = self.slab.put_join(SimTime::ZERO);
        self.slab.get_mut(Slab::index(join)).waits = 1;
        Moment::step(join)
    }

    /// A moment that is open is when `done` is.
    pub fn settle(&mut self, open: Moment, done: Moment) {
        let join = StepId::of_token(open.0).expect("it was opened");
        let index = Slab::index(join);
        match (self.known(done), StepId::of_token(done.0)) {
            (Some(at), _) => {
                let step = self.slab.get_mut(index);
                step.at = step.at.max(at);
            }
            (None, Some(step)) => self.slab.follow(step, join),
            (None, None) => unreachable!("a time is known"),
        }
        let step = self.slab.get_mut(index);
        step.waits -= 1;
        if step.waits == 0 {
            let at = step.at;
            if at <= self.now {
                self.end(index, at);
                self.run_ready();
            } else {
                self.agenda.push(at, index);
            }
        }
    }

    /// Applies a step, and starts it once `after` is past.
    #[inline]
    pub fn submit(
        &mut self,
        side: u16,
        op: Op,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> StoreResult<Moment> {
        let command = BlockCommand::new(op, extent, Hint::default());
        if !self.is_past(after) {
            let id = self.put_aside(side, command, bytes, after)?;
            if op != Op::Read {
                self.follow_up(side, after);
            }
            return Ok(Moment::step(id));
        }
        let now = self.now;
        let side_number = side;
        let side = &mut self.sides[usize::from(side)];
        let token = side.submit(command, bytes, now)?;
        if let Some(at) = side.store.completion(token) {
            return Ok(Moment::at(at));
        }
        let id = self.slab.put(Some(side_number), command, Applied::default(), now);
        self.watch(Slab::index(id), token);
        Ok(Moment::step(id))
    }

    /// As [`Timeline::submit`] for a write that fills a slot. If it has to wait, the slot is in
    /// [`Timeline::filled`] once it has begun, and no flush waits for it; that is told beside.
    pub fn submit_fill(
        &mut self,
        slot: u32,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> StoreResult<bool> {
        if self.is_past(after) {
            self.submit(FAST, Op::Write, extent, bytes, after)?;
            return Ok(true);
        }
        let command = BlockCommand::new(Op::Write, extent, Hint::default());
        let id = self.put_aside(FAST, command, bytes, after)?;
        self.slab.get_mut(Slab::index(id)).fills = Some(slot);
        Ok(false)
    }

    /// A flush of a store from now on waits for this too.
    pub fn follow_up(&mut self, side: u16, after: Moment) {
        let mut behind = self.sides[usize::from(side)].behind;
        self.gather(&mut behind, after);
        self.sides[usize::from(side)].behind = behind;
    }

    /// Flushes a store if there is a reason to, after all that was submitted to it so far and not before
    /// `after`; gives when that has been done.
    pub fn flush(&mut self, side: u16, after: Moment) -> StoreResult<Moment> {
        let number = usize::from(side);
        if !self.sides[number].is_volatile {
            return Ok(self.sides[number].flushed);
        }
        let mut behind = self.sides[number].behind;
        let begun = self.close(&mut behind);
        self.sides[number].behind = behind;
        let after = self.join(after, begun);
        let flushed = self.submit(side, Op::Flush, Extent::new(0, 0), Bytes::None, after)?;
        let side = &mut self.sides[number];
        (side.is_volatile, side.flushed) = (false, flushed);
        Ok(flushed)
    }

    #[cold]
    fn put_aside(
        &mut self,
        side: u16,
        command: BlockCommand,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> StoreResult<StepId> {
        let applied = self.sides[usize::from(side)].apply(command, bytes)?;
        let id = self.slab.put(Some(side), command, applied, SimTime::ZERO);
        match (self.known(after), StepId::of_token(after.0)) {
            (Some(at), _) => {
                self.slab.get_mut(Slab::index(id)).at = at;
                self.agenda.push(at, Slab::index(id));
            }
            (None, Some(before)) => self.slab.follow(before, id),
            (None, None) => unreachable!("a time is known"),
        }
        Ok(id)
    }

    fn watch(&mut self, index: u32, token: Token) {
        let step = self.slab.get_mut(index);
        step.state = State::Running;
        let side = &mut self.sides[usize::from(step.side.expect("a join is not started"))];
        side.store.watch(token, u64::from(index));
        side.watched += 1;
        self.watched += 1;
    }

    /// Steps that have not ended.
    pub const fn under_way(&self) -> usize {
        self.slab.len()
    }

    /// Memory of steps under way, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let reports = (self.reports.capacity() * size_of::<Completion>()) as u64;
        let told = reports + self.news.memory_bytes();
        self.slab.memory_bytes()
            + self.holds.moments.allocation_size() as u64
            + self.agenda.memory_bytes()
            + told
    }

    /// Checks what holds between two commands; panics with the values. For tests.
    pub fn check(&self) {
        let watched: u32 = self.sides.iter().map(|side| side.watched).sum();
        assert_eq!(watched, self.watched, "watched steps");
        assert!(self.ready.is_empty(), "{:?} are not started", self.ready);
        assert!(
            self.agenda.queue.len() + self.watched as usize <= self.slab.len(),
            "{} steps, {} of them in the queue, {} watched",
            self.slab.len(),
            self.agenda.queue.len(),
            self.watched
        );
    }
}
