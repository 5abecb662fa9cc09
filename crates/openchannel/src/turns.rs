//! Actors side by side in virtual time.

use crate::Host;
use nandscape_core::{SimTime, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who has its turn when. An actor waits for one token at a time.
#[derive(Debug, Default)]
pub struct Turns {
    /// The earliest first, of equals the lowest actor.
    ready: BinaryHeap<Reverse<(SimTime, u32)>>,
    /// Actors of whose tokens only events tell the end.
    waiting: usize,
}

impl Turns {
    /// An actor is ready at a time.
    pub fn ready(&mut self, at: SimTime, actor: u32) {
        self.ready.push(Reverse((at, actor)));
    }

    /// An actor is ready when a token completes.
    pub fn after(&mut self, host: &mut Host<'_>, token: Token, actor: u32, now: SimTime) {
        if let Some(done) = host.subsystem().completion(token) {
            self.ready(done.max(now), actor);
        } else {
            host.subsystem().watch(token, actor.into());
            self.waiting += 1;
        }
    }

    /// The next actor whose turn it is, and when; runs the events before that.
    pub fn next(&mut self, host: &mut Host<'_>) -> Option<(SimTime, u32)> {
        loop {
            let ready = self.ready.peek().map(|Reverse((at, _))| *at);
            let event = (self.waiting > 0).then(|| host.subsystem().next_event()).flatten();
            let Some(event) = event.filter(|event| ready.is_none_or(|ready| *event <= ready)) else {
                return self.ready.pop().map(|Reverse(next)| next);
            };
            let mut completions = Vec::new();
            host.subsystem().advance(event, &mut completions);
            for completion in completions {
                self.waiting -= 1;
                self.ready(completion.at, completion.tag as u32);
            }
        }
    }
}
