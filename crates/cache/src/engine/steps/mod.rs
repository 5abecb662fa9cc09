//! What is to be done at the stores, in the order of time.
//!
//! A step does its work on the bytes when it is submitted, and takes its time from when all that it waits for
//! has ended. So a step is started at once, or is put aside with what it waits for. Invariants:
//! * every store is started in nondecreasing time: whatever is due comes before what a later command asks
//!   for;
//! * steps that wait for the same thing are started in the order in which they were submitted;
//! * a step that waits for one that could not be started is never started, and ends when that one failed.

mod slab;

use super::side::{Bytes, Side};
use nandscape_core::ftl::Hint;
use nandscape_core::{Applied, Command, Completion, Extent, Op, SimTime, StoreError, Token};
use nandscape_policies::BlockKey;
use nandscape_policies::hash::KeyMap;
use slab::{Slab, State, StepId};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The fast store among the stores; the disk of volume `v` is the store `1 + v`.
pub(super) const FAST: u16 = 0;

/// When something is done: at a time, or with a step of which nobody knows yet. As a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(u64);

impl Moment {
    /// Before anything else.
    pub const PAST: Self = Self(0);

    /// When an answer is given.
    pub const fn of(token: Token) -> Self {
        Self(token.0)
    }

    const fn at(time: SimTime) -> Self {
        Self(time.0)
    }

    const fn step(id: StepId) -> Self {
        Self(id.to_token())
    }
}

/// The moment at which several things are done, of which more may come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gather {
    /// The latest of those whose time is known.
    at: SimTime,
    /// The others: one of them, or a join of them.
    step: Option<StepId>,
    /// Whether `step` is a join that nobody else knows.
    is_open: bool,
}

/// What has to wait for a moment: steps on a slot, or disk accesses to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Place {
    const SLOT: u64 = 1 << 63;
    const TAKING: u64 = 1 << 62;

    pub const fn slot(slot: u32) -> Self {
        Self(Self::SLOT | slot as u64)
    }

    /// A slot for another block than the one that it has.
    pub const fn taking(slot: u32) -> Self {
        Self(Self::TAKING | slot as u64)
    }

    pub const fn block(key: BlockKey) -> Self {
        Self(key.0)
    }
}

/// What the engine is to be told of when a moment is past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// The answer with this number of the meter's is given.
    Answer(u32),
    /// So many blocks that cleaning has written are on the disk.
    Cleaned(u32),
    /// A commit is done for which others wait that are to be made as one.
    Committed,
    /// A host's read or write of the fast store that began at this time has ended.
    Served(Op, SimTime),
}

/// A step that a store refused when it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateError {
    /// The volume whose disk it was; `None` for the fast store.
    pub volume: Option<u16>,
    /// What was to be done there.
    pub command: Command,
    /// When.
    pub at: SimTime,
    /// Why not.
    pub error: StoreError,
}

/// The stores and what is under way.
pub(super) struct Steps {
    sides: Vec<Side>,
    now: SimTime,
    slab: Slab,
    /// Steps that begin or end at a time that is known: time, order of coming, index.
    queue: BinaryHeap<Reverse<(SimTime, u64, u32)>>,
    order: u64,
    /// Steps that wait for nothing any more.
    ready: VecDeque<u32>,
    /// Steps under way whose end is unknown.
    watched: u32,
    heard: Vec<Completion>,
    /// What the host asked for and was not told yet.
    reports: VecDeque<Completion>,
    /// What has to wait, and for what.
    holds: KeyMap,
    purge_at: usize,
    /// Slots whose filling has begun.
    filled: Vec<u32>,
    /// Errors at starts.
    errors: Vec<LateError>,
    /// What the engine is to be told of, and when it was.
    noticed: VecDeque<(Notice, SimTime)>,
    /// Among these is one that lets the engine begin something, so that time must not go on before.
    must_stop: bool,
    /// The latest time that anything is known to begin or end.
    last: SimTime,
    /// The fast store is used no more: what was to be done there is passed over.
    is_fast_gone: bool,
}

const PURGE_LEAST: usize = 64;

impl Steps {
    pub fn new(fast: Side) -> Self {
        Self {
            sides: vec![fast],
            now: SimTime::ZERO,
            slab: Slab::default(),
            queue: BinaryHeap::new(),
            order: 0,
            ready: VecDeque::new(),
            watched: 0,
            heard: Vec::new(),
            reports: VecDeque::new(),
            holds: KeyMap::new(8),
            purge_at: PURGE_LEAST,
            filled: Vec::new(),
            errors: Vec::new(),
            noticed: VecDeque::new(),
            must_stop: false,
            last: SimTime::ZERO,
            is_fast_gone: false,
        }
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

    /// A moment of which nobody knows anything before [`Steps::settle`] says it.
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
                self.queue_up(at, index);
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
    ) -> Result<Moment, StoreError> {
        let command = Command::new(op, extent, Hint::default());
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

    /// As [`Steps::submit`] for a write that fills a slot. If it has to wait, the slot is in
    /// [`Steps::filled`] once it has begun, and no flush waits for it; that is told beside.
    pub fn submit_fill(
        &mut self,
        slot: u32,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<bool, StoreError> {
        if self.is_past(after) {
            self.submit(FAST, Op::Write, extent, bytes, after)?;
            return Ok(true);
        }
        let command = Command::new(Op::Write, extent, Hint::default());
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
    pub fn flush(&mut self, side: u16, after: Moment) -> Result<Moment, StoreError> {
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
        command: Command,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<StepId, StoreError> {
        let applied = self.sides[usize::from(side)].apply(command, bytes)?;
        let id = self.slab.put(Some(side), command, applied, SimTime::ZERO);
        match (self.known(after), StepId::of_token(after.0)) {
            (Some(at), _) => {
                self.slab.get_mut(Slab::index(id)).at = at;
                self.queue_up(at, Slab::index(id));
            }
            (None, Some(before)) => self.slab.follow(before, id),
            (None, None) => unreachable!("a time is known"),
        }
        Ok(id)
    }

    fn queue_up(&mut self, at: SimTime, index: u32) {
        self.last = self.last.max(at);
        self.queue.push(Reverse((at, self.order, index)));
        self.order += 1;
    }

    fn watch(&mut self, index: u32, token: Token) {
        let step = self.slab.get_mut(index);
        step.state = State::Running;
        let side = &mut self.sides[usize::from(step.side.expect("a join is not started"))];
        side.store.watch(token, u64::from(index));
        side.watched += 1;
        self.watched += 1;
    }

    /// A command comes at `at`: whatever is due until then is started first.
    #[inline]
    pub fn arrive(&mut self, at: SimTime) {
        if self.queue.is_empty() && self.watched == 0 {
            self.now = self.now.max(at);
        } else {
            // What an event-driven store chooses at this very moment it chooses when all that comes at it is
            // there.
            self.run(at, false);
        }
    }

    /// Runs until a time, which [`Steps::arrive`] leaves out for what stores do by themselves. `false` if it
    /// stopped before, since cleaning or a commit has ended and the engine may want to begin something.
    #[cold]
    pub fn run(&mut self, until: SimTime, is_inclusive: bool) -> bool {
        loop {
            let event = self.store_event().filter(|event| *event < until || is_inclusive && *event == until);
            let queued = self.queue.peek().map(|Reverse((at, ..))| *at).filter(|at| *at <= until);
            let next = match (event, queued) {
                (Some(event), Some(queued)) => event.min(queued),
                (Some(next), None) | (None, Some(next)) => next,
                (None, None) => break,
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                self.hear(next);
            }
            while let Some(Reverse((at, _, index))) = self.queue.peek().copied()
                && at <= self.now
            {
                self.queue.pop();
                match self.slab.get(index).state {
                    State::Ending => self.end(index, at),
                    _ => self.begin(index),
                }
                self.run_ready();
            }
            if self.must_stop {
                return false;
            }
        }
        self.now = self.now.max(until);
        true
    }

    /// Whether nothing is under way.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.watched == 0
    }

    /// The engine is told when this moment is past.
    #[cold]
    pub fn notify(&mut self, moment: Moment, notice: Notice) {
        let join = match (self.known(moment), StepId::of_token(moment.0)) {
            (Some(at), _) if at <= self.now => {
                self.noticed.push_back((notice, at));
                self.must_stop |= matches!(notice, Notice::Cleaned(_) | Notice::Committed);
                return;
            }
            (Some(at), _) => {
                let join = self.slab.put_join(at);
                self.slab.get_mut(Slab::index(join)).state = State::Ending;
                self.queue_up(at, Slab::index(join));
                join
            }
            (None, Some(step)) => self.join_after(step, SimTime::ZERO),
            (None, None) => unreachable!("a time is known"),
        };
        self.slab.get_mut(Slab::index(join)).notice = Some(notice);
    }

    /// What the engine is to be told of.
    pub fn take_noticed(&mut self) -> Option<(Notice, SimTime)> {
        self.must_stop = false;
        self.noticed.pop_front()
    }

    /// Steps that have not ended.
    pub const fn under_way(&self) -> usize {
        self.slab.len()
    }

    /// Whether anything has to wait.
    #[inline]
    pub const fn has_holds(&self) -> bool {
        self.holds.len() > 0
    }

    /// Runs everything to its end.
    pub fn drain(&mut self) {
        while let Some(next) = self.next_step() {
            self.run(next, true);
        }
        debug_assert_eq!(self.slab.len(), 0, "steps that nothing ends");
    }

    fn store_event(&self) -> Option<SimTime> {
        if self.watched == 0 {
            return None;
        }
        self.sides.iter().filter(|side| side.watched > 0).filter_map(|side| side.store.next_event()).min()
    }

    fn next_step(&self) -> Option<SimTime> {
        let queued = self.queue.peek().map(|Reverse((at, ..))| *at);
        match (self.store_event(), queued) {
            (Some(event), Some(queued)) => Some(event.min(queued)),
            (event, queued) => event.or(queued),
        }
    }

    /// When something happens next by itself, or is to be reported.
    pub fn next_event(&self) -> Option<SimTime> {
        let next = self.next_step();
        match self.reports.front() {
            Some(report) => Some(next.map_or(report.at, |next| next.min(report.at))),
            None => next,
        }
    }

    /// Lets the stores tell what has ended until `until`.
    fn hear(&mut self, until: SimTime) {
        let mut heard = std::mem::take(&mut self.heard);
        for side in self.sides.iter_mut().filter(|side| side.watched > 0) {
            let before = heard.len();
            side.store.advance(until, &mut heard);
            side.watched -= (heard.len() - before) as u32;
        }
        self.watched -= heard.len() as u32;
        for completion in &heard {
            self.end(completion.tag as u32, completion.at);
        }
        heard.clear();
        self.heard = heard;
        self.run_ready();
    }

    fn run_ready(&mut self) {
        while let Some(index) = self.ready.pop_front() {
            self.begin(index);
        }
    }

    /// Starts a step that waits for nothing any more.
    fn begin(&mut self, index: u32) {
        let step = *self.slab.get(index);
        let (Some(number), false) = (step.side, step.has_failed) else {
            self.end(index, step.at.max(SimTime::ZERO));
            return;
        };
        if number == FAST && self.is_fast_gone {
            self.end(index, self.now);
            return;
        }
        let side = &mut self.sides[usize::from(number)];
        let token = match side.store.start(step.command, step.applied, self.now) {
            Ok(token) => token,
            Err(error) => {
                self.fail(index, error);
                return;
            }
        };
        self.filled.extend(step.fills);
        match self.sides[usize::from(number)].store.completion(token) {
            Some(at) if at <= self.now => self.end(index, self.now),
            Some(at) => {
                let step = self.slab.get_mut(index);
                (step.state, step.at) = (State::Ending, at);
                self.queue_up(at, index);
            }
            None => self.watch(index, token),
        }
    }

    #[cold]
    fn fail(&mut self, index: u32, error: StoreError) {
        let step = self.slab.get_mut(index);
        step.has_failed = true;
        let volume = step.side.filter(|side| *side != FAST).map(|side| side - 1);
        self.errors.push(LateError { volume, command: step.command, at: self.now, error });
        self.end(index, self.now);
    }

    /// A step has ended.
    fn end(&mut self, index: u32, at: SimTime) {
        let step = *self.slab.get(index);
        self.last = self.last.max(at);
        if let Some(tag) = step.tag {
            self.reports.push_back(Completion { tag, at });
        }
        if let Some(notice) = step.notice {
            self.noticed.push_back((notice, at));
            self.must_stop |= matches!(notice, Notice::Cleaned(_) | Notice::Committed);
        }
        while let Some(follower) = self.slab.next_follower(index) {
            let waiting = self.slab.get_mut(follower);
            waiting.waits -= 1;
            waiting.at = waiting.at.max(at);
            waiting.has_failed |= step.has_failed;
            if waiting.waits == 0 {
                let at = waiting.at;
                if at <= self.now { self.ready.push_back(follower) } else { self.queue_up(at, follower) }
            }
        }
        self.slab.end(index);
    }

    /// Until this moment, whatever comes to a place waits.
    pub fn hold(&mut self, place: Place, until: Moment) {
        if self.is_past(until) {
            return;
        }
        if self.holds.len() >= self.purge_at {
            self.purge();
        }
        let until = match self.holds.get(place.0) {
            Some(before) => self.join(Moment(before), until),
            None => until,
        };
        self.holds.insert(place.0, until.0);
    }

    #[cold]
    fn purge(&mut self) {
        let mut holds = std::mem::replace(&mut self.holds, KeyMap::nothing());
        holds.retain(|_, moment| !self.is_past(Moment(moment)));
        self.purge_at = PURGE_LEAST.max(2 * holds.len());
        self.holds = holds;
    }

    /// When a place is free.
    #[inline]
    pub fn free_at(&mut self, place: Place) -> Moment {
        if self.holds.len() == 0 { Moment::PAST } else { self.hold_of(place) }
    }

    /// Whether something has to wait for a place.
    pub fn is_held(&mut self, place: Place) -> bool {
        self.hold_of(place) != Moment::PAST
    }

    /// Whether the engine is to be told of something.
    #[inline]
    pub fn has_noticed(&self) -> bool {
        !self.noticed.is_empty()
    }

    fn hold_of(&mut self, place: Place) -> Moment {
        let Some(moment) = self.holds.get(place.0).map(Moment) else { return Moment::PAST };
        if self.is_past(moment) {
            self.holds.remove(place.0);
            return Moment::PAST;
        }
        moment
    }

    /// When the blocks from `first` until before `end` of a volume are free.
    pub fn blocks_free_at(&mut self, volume: u16, first: u64, end: u64) -> Moment {
        if self.holds.len() == 0 {
            return Moment::PAST;
        }
        let mut all = Gather::default();
        if end - first <= self.holds.len() as u64 {
            for block in first..end {
                let moment = self.hold_of(Place::block(BlockKey::new(volume, block)));
                self.gather(&mut all, moment);
            }
        } else {
            let keys = BlockKey::new(volume, first).0..=BlockKey::new(volume, end - 1).0;
            let holds = std::mem::replace(&mut self.holds, KeyMap::nothing());
            for (_, moment) in holds.iter().filter(|(key, _)| keys.contains(key)) {
                self.gather(&mut all, Moment(moment));
            }
            self.holds = holds;
        }
        self.close(&mut all)
    }

    /// Slots whose filling has begun since they were last asked for.
    pub fn take_filled(&mut self) -> Option<u32> {
        self.filled.pop()
    }

    /// The token of an answer that waits for all of this.
    #[inline]
    pub fn answer(&mut self, gather: &mut Gather) -> Token {
        if gather.step.is_none() {
            return Token(gather.at.0);
        }
        let is_own = gather.is_open;
        let moment = self.close(gather);
        match self.known(moment) {
            Some(at) => Token(at.0),
            None if is_own => Token(moment.0),
            // Several commands may wait for that step, and each is reported by itself.
            None => {
                let step = StepId::of_token(moment.0).expect("a time is known");
                Token(self.join_after(step, SimTime::ZERO).to_token())
            }
        }
    }

    /// When an answer is given, if that is known.
    pub fn completion(&self, token: Token) -> Option<SimTime> {
        self.known(Moment(token.0))
    }

    /// An answer for two.
    pub fn join_tokens(&mut self, a: Token, b: Token) -> Token {
        let mut both = Gather::default();
        self.gather(&mut both, Moment(a.0));
        self.gather(&mut both, Moment(b.0));
        self.answer(&mut both)
    }

    /// Reports this answer.
    pub fn report(&mut self, token: Token, tag: u64) {
        let id = StepId::of_token(token.0);
        if let Some(step) = id.and_then(|id| self.slab.find_mut(id)) {
            step.tag = Some(tag);
            return;
        }
        let at = self.known(Moment(token.0)).expect("what has ended is known");
        if at <= self.now {
            let place = self.reports.partition_point(|report| report.at <= at);
            self.reports.insert(place, Completion { tag, at });
            return;
        }
        let join = self.slab.put_join(at);
        let index = Slab::index(join);
        let step = self.slab.get_mut(index);
        (step.state, step.tag) = (State::Ending, Some(tag));
        self.queue_up(at, index);
    }

    /// Appends the reports that are due.
    pub fn take_reports(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while self.reports.front().is_some_and(|report| report.at <= until) {
            out.extend(self.reports.pop_front());
        }
    }

    /// Errors at starts since they were last asked for.
    pub fn take_errors(&mut self) -> std::vec::Drain<'_, LateError> {
        self.errors.drain(..)
    }

    pub const fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// From when on nothing is under way, as far as that is known.
    pub fn idle_from(&self) -> SimTime {
        self.sides.iter().map(|side| side.store.idle_from()).fold(self.last, SimTime::max)
    }

    /// Everything under way is over, and every store is free at `at`.
    pub fn reset(&mut self, at: SimTime) {
        self.drain();
        self.reports.clear();
        self.holds = KeyMap::new(8);
        (self.now, self.last) = (at, at);
        for side in &mut self.sides {
            (side.behind, side.flushed) = (Gather::default(), Moment::PAST);
            side.flushes = 0;
            side.store.reset_counters(at);
        }
    }

    /// Memory of steps under way, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let queued = self.queue.capacity() * size_of::<Reverse<(SimTime, u64, u32)>>();
        let told = self.reports.capacity() * size_of::<Completion>()
            + self.noticed.capacity() * size_of::<(Notice, SimTime)>();
        self.slab.memory_bytes() + self.holds.memory_bytes() + (queued + told) as u64
    }

    /// Checks what holds between two commands; panics with the values. For tests.
    pub fn check(&self) {
        let watched: u32 = self.sides.iter().map(|side| side.watched).sum();
        assert_eq!(watched, self.watched, "watched steps");
        assert!(self.ready.is_empty(), "{:?} are not started", self.ready);
        assert!(
            self.queue.len() + self.watched as usize <= self.slab.len(),
            "{} steps, {} of them in the queue, {} watched",
            self.slab.len(),
            self.queue.len(),
            self.watched
        );
    }
}
