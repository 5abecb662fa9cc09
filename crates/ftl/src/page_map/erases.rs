//! Erases that may be under way when a block is opened.

use nandscape_core::{Token, state};
use std::collections::VecDeque;

/// The last erases of a domain, where it matters how many are under way.
#[derive(Debug)]
pub(super) struct Erases {
    under_way: usize,
    /// When the last ones complete, each with all before it, the oldest first.
    last: VecDeque<Token>,
}

state!(impl [] Erases { saved: last; fixed: under_way; });

impl Erases {
    /// So many may be under way; 0 where that does not matter.
    pub fn new(under_way: usize) -> Self {
        Self { under_way, last: VecDeque::with_capacity(under_way + 1) }
    }

    /// An erase was submitted, and completes with all before it then.
    pub fn submitted(&mut self, with_all_before: Token) {
        if self.under_way > 0 {
            self.last.push_back(with_all_before);
            if self.last.len() > self.under_way + 1 {
                self.last.pop_front();
            }
            assert!(self.last.len() <= self.under_way + 1, "{} of {}", self.last.len(), self.under_way);
        }
    }

    /// Time starts anew: nothing waits any more for an erase so far.
    pub fn forget(&mut self) {
        self.last.clear();
    }

    /// Completes when all erases so far have, where that matters.
    pub fn last(&self) -> Token {
        self.last.back().copied().unwrap_or(Token::NONE)
    }

    /// What the first program of a block that is opened must wait for: all erases but the last few.
    pub fn gate(&self) -> Token {
        let has_more = self.last.len() > self.under_way;
        self.last.front().copied().filter(|_| has_more).unwrap_or(Token::NONE)
    }
}
