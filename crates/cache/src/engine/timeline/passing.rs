//! How time passes: steps are started and end, and what waits for them goes on.

use super::moment::{Gather, LateError, Moment, Notice, StepId};
use super::slab::{Slab, State};
use super::{FAST, Timeline};
use nandscape_core::{Completion, SimTime, StoreError};
use nandscape_policies::hash::KeyMap;

impl Timeline {
    /// A command comes at `at`: whatever is due until then is started first.
    #[inline]
    pub fn arrive(&mut self, at: SimTime) {
        if self.agenda.queue.is_empty() && self.watched == 0 {
            self.now = self.now.max(at);
        } else {
            // What an event-driven store chooses at this very moment it chooses when all that comes at it is
            // there.
            self.run(at, false);
        }
    }

    /// Runs until a time, which [`Timeline::arrive`] leaves out for what stores do by themselves. `false` if
    /// it stopped before, since cleaning or a commit has ended and the engine may want to begin something.
    #[cold]
    pub fn run(&mut self, until: SimTime, is_inclusive: bool) -> bool {
        loop {
            let event = self.store_event().filter(|event| *event < until || is_inclusive && *event == until);
            let queued = self.agenda.next().filter(|at| *at <= until);
            let next = match (event, queued) {
                (Some(event), Some(queued)) => event.min(queued),
                (Some(next), None) | (None, Some(next)) => next,
                (None, None) => break,
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                self.hear(next);
            }
            while let Some((at, index)) = self.agenda.pop_due(self.now) {
                match self.slab.get(index).state {
                    State::Ending => self.end(index, at),
                    _ => self.begin(index),
                }
                self.run_ready();
            }
            if self.news.must_stop {
                return false;
            }
        }
        self.now = self.now.max(until);
        true
    }

    /// Whether nothing is under way.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.agenda.queue.is_empty() && self.watched == 0
    }

    /// The engine is told when this moment is past.
    #[cold]
    pub fn notify(&mut self, moment: Moment, notice: Notice) {
        let join = match (self.known(moment), StepId::of_token(moment.0)) {
            (Some(at), _) if at <= self.now => {
                self.news.tell(notice, at);
                return;
            }
            (Some(at), _) => {
                let join = self.slab.put_join(at);
                self.slab.get_mut(Slab::index(join)).state = State::Ending;
                self.agenda.push(at, Slab::index(join));
                join
            }
            (None, Some(step)) => self.join_after(step, SimTime::ZERO),
            (None, None) => unreachable!("a time is known"),
        };
        self.slab.get_mut(Slab::index(join)).notice = Some(notice);
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
        match (self.store_event(), self.agenda.next()) {
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

    pub fn run_ready(&mut self) {
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
        self.news.filled.extend(step.fills);
        match self.sides[usize::from(number)].store.completion(token) {
            Some(at) if at <= self.now => self.end(index, self.now),
            Some(at) => {
                let step = self.slab.get_mut(index);
                (step.state, step.at) = (State::Ending, at);
                self.agenda.push(at, index);
            }
            None => self.watch(index, token),
        }
    }

    #[cold]
    fn fail(&mut self, index: u32, error: StoreError) {
        let step = self.slab.get_mut(index);
        step.has_failed = true;
        let volume = step.side.filter(|side| *side != FAST).map(|side| side - 1);
        self.news.errors.push(LateError { volume, command: step.command, at: self.now, error });
        self.end(index, self.now);
    }

    /// A step has ended.
    pub fn end(&mut self, index: u32, at: SimTime) {
        let step = *self.slab.get(index);
        self.agenda.last = self.agenda.last.max(at);
        if let Some(tag) = step.tag {
            self.reports.push_back(Completion { tag, at });
        }
        if let Some(notice) = step.notice {
            self.news.tell(notice, at);
        }
        while let Some(follower) = self.slab.next_follower(index) {
            let waiting = self.slab.get_mut(follower);
            waiting.waits -= 1;
            waiting.at = waiting.at.max(at);
            waiting.has_failed |= step.has_failed;
            if waiting.waits == 0 {
                let at = waiting.at;
                if at <= self.now { self.ready.push_back(follower) } else { self.agenda.push(at, follower) }
            }
        }
        self.slab.end(index);
    }

    /// From when on nothing is under way, as far as that is known.
    pub fn idle_from(&self) -> SimTime {
        self.sides.iter().map(|side| side.store.idle_from()).fold(self.agenda.last, SimTime::max)
    }

    /// Everything under way is over, and every store is free at `at`.
    pub fn reset(&mut self, at: SimTime) {
        self.drain();
        self.reports.clear();
        self.holds.moments = KeyMap::default();
        (self.now, self.agenda.last) = (at, at);
        for side in &mut self.sides {
            (side.behind, side.flushed) = (Gather::default(), Moment::PAST);
            side.flushes = 0;
            side.store.reset_counters(at);
        }
    }
}
