//! Reads a workload a few requests ahead, so that what a request will need can be prepared while others run.

use std::collections::VecDeque;

/// Requests between being known and being issued. A memory access takes about as long as one or two requests;
/// more only adds to what a cache must hold.
const AHEAD: usize = 8;

/// An iterator read [`AHEAD`] items ahead.
pub(crate) struct Lookahead<I: Iterator> {
    source: I,
    known: VecDeque<I::Item>,
}

impl<I: Iterator> Lookahead<I> {
    pub fn new(source: I) -> Self {
        Self { source, known: VecDeque::with_capacity(AHEAD + 1) }
    }

    /// The next item. `prepare` is called once for each item, up to [`AHEAD`] items before it is given out.
    #[inline]
    pub fn next(&mut self, mut prepare: impl FnMut(&I::Item)) -> Option<I::Item> {
        while self.known.len() <= AHEAD {
            let Some(item) = self.source.next() else { break };
            prepare(&item);
            self.known.push_back(item);
        }
        self.known.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_each_is_prepared_once_before_it_is_given() {
        let mut prepared = Vec::new();
        let mut given = Vec::new();
        let mut ahead = Lookahead::new(0..100);
        while let Some(item) = ahead.next(|item| prepared.push(*item)) {
            assert!(prepared.contains(&item));
            given.push(item);
        }
        assert_eq!(given, (0..100).collect::<Vec<_>>());
        assert_eq!(prepared, given);
    }
}
