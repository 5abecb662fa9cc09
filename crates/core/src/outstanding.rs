//! Requests under way, whether their completion was known at submission or events find it out.

use crate::clock::{Clocked, Completion, Token};
use crate::time::SimTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests under way at something [`Clocked`], which is given to each call. Nothing is allocated once as
/// many were under way as ever are.
#[derive(Clone, Debug)]
pub struct Outstanding<T> {
    /// By tag.
    requests: Vec<T>,
    free: Vec<u32>,
    /// Completion and tag of each of the others, in one number: one comparison without a branch.
    known: BinaryHeap<Reverse<u128>>,
    /// The top of `known` has been taken and waits to be overwritten by the next completion: one sift
    /// instead of two, since in a closed loop each completion makes room for one request.
    is_top_taken: bool,
    /// Requests whose completion was not known at submission.
    watched: u32,
    /// Of these, what events have completed, in the order of time; the first `taken` were handed out.
    ready: Vec<Completion>,
    taken: usize,
    reached: SimTime,
}

impl<T> Default for Outstanding<T> {
    fn default() -> Self {
        Self {
            requests: Vec::new(),
            free: Vec::new(),
            known: BinaryHeap::new(),
            is_top_taken: false,
            watched: 0,
            ready: Vec::new(),
            taken: 0,
            reached: SimTime::ZERO,
        }
    }
}

impl<T: Copy> Outstanding<T> {
    /// How many are under way.
    #[inline]
    pub const fn count(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// How many of them have a completion that was not known at submission.
    pub const fn watched(&self) -> u32 {
        self.watched
    }

    /// Up to when events were run here.
    pub const fn reached(&self) -> SimTime {
        self.reached
    }

    /// A request was submitted at `at` and has this token. Gives its completion, not before `at`, if that is
    /// known.
    #[inline]
    pub fn submitted(
        &mut self,
        clock: &mut (impl Clocked + ?Sized),
        token: Token,
        at: SimTime,
        request: T,
    ) -> Option<SimTime> {
        let known = clock.completion(token).map(|done| done.max(at));
        match known {
            Some(done) => self.completes_at(done, request),
            None => self.watch(clock, token, request),
        }
        known
    }

    /// A request was submitted that completes at a time that is known.
    #[inline]
    pub fn completes_at(&mut self, at: SimTime, request: T) {
        let tag = self.add(request);
        if std::mem::take(&mut self.is_top_taken)
            && let Some(mut top) = self.known.peek_mut()
        {
            *top = Reverse(packed(at, tag));
            return;
        }
        self.known.push(Reverse(packed(at, tag)));
    }

    /// A request was submitted whose completion only events find out.
    pub fn watch(&mut self, clock: &mut (impl Clocked + ?Sized), token: Token, request: T) {
        let tag = self.add(request);
        self.watched += 1;
        clock.watch(token, u64::from(tag));
    }

    /// The next completion, running events as far as needed; of equal times, those that events find out come
    /// first. `None` if nothing is under way, or if no event completes what is.
    #[inline]
    pub fn next(&mut self, clock: &mut (impl Clocked + ?Sized)) -> Option<(SimTime, T)> {
        self.next_until(clock, SimTime(u64::MAX))
    }

    /// The same up to `until`, inclusive; no event after the completion is run.
    #[inline]
    pub fn next_until(
        &mut self,
        clock: &mut (impl Clocked + ?Sized),
        until: SimTime,
    ) -> Option<(SimTime, T)> {
        if self.watched > 0
            && let Some(done) = self.next_watched(clock, until)
        {
            return Some(done);
        }
        let (at, tag) = self.first().filter(|(at, _)| *at <= until)?;
        self.is_top_taken = true;
        Some((at, self.remove(tag)))
    }

    /// Runs events up to `until` at once, whether or not anything under way waits for them.
    pub fn advance(&mut self, clock: &mut (impl Clocked + ?Sized), until: SimTime) {
        if self.taken == self.ready.len() {
            self.ready.clear();
            self.taken = 0;
        }
        clock.advance(until, &mut self.ready);
        self.reached = self.reached.max(until);
    }

    /// Runs events up to `until`, and goes no further than the last of them.
    pub fn run_events(&mut self, clock: &mut (impl Clocked + ?Sized), until: SimTime) {
        while let Some(event) = clock.next_event().filter(|event| *event <= until) {
            self.advance(clock, event);
        }
    }

    /// Of what events find out, the next one up to `until` that does not come after what is known.
    fn next_watched(&mut self, clock: &mut (impl Clocked + ?Sized), until: SimTime) -> Option<(SimTime, T)> {
        let until = self.first().map_or(until, |(known, _)| known.min(until));
        if self.taken == self.ready.len() {
            self.ready.clear();
            self.taken = 0;
            let last = clock.advance_to_completion(until, &mut self.ready)?;
            self.reached = self.reached.max(last);
        }
        let done = *self.ready.get(self.taken)?;
        if done.at > until {
            return None;
        }
        self.taken += 1;
        self.watched -= 1;
        Some((done.at, self.remove(done.tag as u32)))
    }

    #[inline]
    fn add(&mut self, request: T) -> u32 {
        if let Some(tag) = self.free.pop() {
            self.requests[tag as usize] = request;
            tag
        } else {
            self.requests.push(request);
            self.requests.len() as u32 - 1
        }
    }

    #[inline]
    fn remove(&mut self, tag: u32) -> T {
        self.free.push(tag);
        self.requests[tag as usize]
    }

    /// The first known completion that was not taken.
    #[inline]
    fn first(&mut self) -> Option<(SimTime, u32)> {
        if std::mem::take(&mut self.is_top_taken) {
            self.known.pop();
        }
        self.known.peek().map(|Reverse(first)| (SimTime((first >> 64) as u64), *first as u32))
    }
}

/// When what was submitted at `at` with this token completes, not before `at`. Runs events until then, where
/// that is not known; nothing else may be watched.
pub fn wait(clock: &mut (impl Clocked + ?Sized), token: Token, at: SimTime) -> SimTime {
    let mut one = Outstanding::default();
    one.submitted(clock, token, at, ());
    let (done, ()) = one.next(clock).expect("a token that is watched completes with some event");
    done.max(at)
}

/// A completion and a tag, so that earlier ones are smaller, and of equal times the smaller tag.
#[inline]
const fn packed(at: SimTime, tag: u32) -> u128 {
    (at.0 as u128) << 64 | tag as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens below 1000 are times; of the others an event at the token's number less 1000 tells.
    #[derive(Default)]
    struct Device {
        events: Vec<Completion>,
    }

    impl Clocked for Device {
        fn completion(&self, token: Token) -> Option<SimTime> {
            (token.0 < 1000).then_some(SimTime(token.0))
        }

        fn watch(&mut self, token: Token, tag: u64) {
            self.events.push(Completion { tag, at: SimTime(token.0 - 1000) });
            self.events.sort_by_key(|event| event.at);
        }

        fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
            let due = self.events.partition_point(|event| event.at <= until);
            out.extend(self.events.drain(..due));
        }

        fn next_event(&self) -> Option<SimTime> {
            self.events.first().map(|event| event.at)
        }

        fn idle_from(&self) -> SimTime {
            SimTime::ZERO
        }
    }

    fn begun(tokens: &[u64]) -> (Device, Outstanding<u64>) {
        let (mut device, mut outstanding) = (Device::default(), Outstanding::default());
        for token in tokens {
            outstanding.submitted(&mut device, Token(*token), SimTime(5), *token);
        }
        (device, outstanding)
    }

    #[test]
    fn completions_come_in_the_order_of_time_whoever_knows_them() {
        let (mut device, mut outstanding) = begun(&[30, 1010, 20, 1020, 0, 1040]);
        assert_eq!((outstanding.count(), outstanding.watched()), (6, 3));
        let order = std::iter::from_fn(|| outstanding.next(&mut device));
        let expected = [(5, 0), (10, 1010), (20, 1020), (20, 20), (30, 30), (40, 1040)];
        assert_eq!(order.map(|(at, token)| (at.0, token)).collect::<Vec<_>>(), expected);
        assert_eq!(outstanding.count(), 0);
    }

    #[test]
    fn one_token_is_waited_for_whoever_knows_its_completion() {
        let mut device = Device::default();
        assert_eq!(wait(&mut device, Token(30), SimTime(40)), SimTime(40));
        assert_eq!(wait(&mut device, Token(1050), SimTime(40)), SimTime(50));
        assert_eq!(wait(&mut device, Token(1020), SimTime(40)), SimTime(40));
    }

    #[test]
    fn no_event_is_run_after_the_completion_that_is_given() {
        let (mut device, mut outstanding) = begun(&[1010, 1040, 25]);
        assert_eq!(outstanding.next_until(&mut device, SimTime(9)), None);
        assert_eq!(outstanding.next_until(&mut device, SimTime(10)), Some((SimTime(10), 1010)));
        assert_eq!(outstanding.next_until(&mut device, SimTime(30)), Some((SimTime(25), 25)));
        assert_eq!((outstanding.reached(), device.next_event()), (SimTime(10), Some(SimTime(40))));
    }

    #[test]
    fn what_was_known_meanwhile_comes_before_what_events_have_found_out() {
        let (mut device, mut outstanding) = begun(&[1010, 1020]);
        outstanding.advance(&mut device, SimTime(50));
        assert_eq!(outstanding.next(&mut device), Some((SimTime(10), 1010)));
        outstanding.completes_at(SimTime(15), 15);
        assert_eq!(outstanding.next(&mut device), Some((SimTime(15), 15)));
        assert_eq!(outstanding.next(&mut device), Some((SimTime(20), 1020)));
    }
}
