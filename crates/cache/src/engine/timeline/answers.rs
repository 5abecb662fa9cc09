//! Answers to the commands of hosts, and their reports.

use super::Timeline;
use super::moment::{Gather, Moment, StepId};
use super::slab::{Slab, State};
use nandscape_core::{Completion, SimTime, Token};

impl Timeline {
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
        self.agenda.push(at, index);
    }

    /// Appends the reports that are due.
    pub fn take_reports(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while self.reports.front().is_some_and(|report| report.at <= until) {
            out.extend(self.reports.pop_front());
        }
    }
}
