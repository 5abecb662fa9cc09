//! Tokens of commands whose completion is decided later, and who waits for them.

use nandscape_core::{Completion, SimTime, Token};
use std::collections::{BTreeMap, VecDeque};

/// Answers that are remembered after they were given.
const REMEMBERED: usize = 65_536;
const UNKNOWN: u64 = u64::MAX;

/// When commands are answered. A command's number is its token.
#[derive(Debug)]
pub struct Answers {
    first: u64,
    done_ns: VecDeque<u64>,
    /// Latest time of those that are not remembered any more.
    forgotten_ns: u64,
    /// The latest answer that is decided.
    pub last_ns: u64,
    /// Tags of those that are watched and undecided.
    waiting: BTreeMap<u64, u64>,
    /// Decided and not reported: time, number and tag.
    due: BTreeMap<(u64, u64), u64>,
}

impl Default for Answers {
    fn default() -> Self {
        // Number 0 would be `Token::NONE`.
        let (waiting, due) = (BTreeMap::new(), BTreeMap::new());
        Self { first: 1, done_ns: VecDeque::new(), forgotten_ns: 0, last_ns: 0, waiting, due }
    }
}

impl Answers {
    /// A new command at `now_ns`.
    pub fn open(&mut self, now_ns: u64) -> u64 {
        while self.done_ns.len() >= REMEMBERED && self.done_ns[0] <= now_ns {
            self.forgotten_ns = self.forgotten_ns.max(self.done_ns[0]);
            self.done_ns.pop_front();
            self.first += 1;
        }
        self.done_ns.push_back(UNKNOWN);
        self.first + self.done_ns.len() as u64 - 1
    }

    /// A command will be answered at `at_ns`.
    pub fn decide(&mut self, number: u64, at_ns: u64) {
        let slot = &mut self.done_ns[(number - self.first) as usize];
        debug_assert_eq!(*slot, UNKNOWN, "command {number} is answered twice");
        *slot = at_ns;
        self.last_ns = self.last_ns.max(at_ns);
        if let Some(tag) = self.waiting.remove(&number) {
            self.due.insert((at_ns, number), tag);
        }
    }

    /// When a token completes, if decided. For one long past, a time that is not before it and past too.
    pub fn completion(&self, token: Token) -> Option<SimTime> {
        if token == Token::NONE {
            return Some(SimTime::ZERO);
        }
        if token.0 < self.first {
            return Some(SimTime(self.forgotten_ns));
        }
        let done = self.done_ns.get((token.0 - self.first) as usize).copied().unwrap_or(UNKNOWN);
        (done != UNKNOWN).then_some(SimTime(done))
    }

    pub fn watch(&mut self, token: Token, tag: u64) {
        match self.completion(token) {
            Some(done) => drop(self.due.insert((done.0, token.0), tag)),
            None => drop(self.waiting.insert(token.0, tag)),
        }
    }

    /// Reports what is due until `until`, inclusive, in the order of time.
    pub fn report(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= until.0
        {
            out.push(Completion { tag: *entry.get(), at: SimTime(entry.key().0) });
            entry.remove();
        }
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// Everything undecided or later than `at_ns` is answered at `at_ns`, and nobody waits.
    pub fn reset(&mut self, at_ns: u64) {
        for done in &mut self.done_ns {
            *done = (*done).min(at_ns);
        }
        self.last_ns = at_ns;
        self.waiting.clear();
        self.due.clear();
    }
}
