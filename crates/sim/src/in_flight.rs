//! Requests under way, and when those complete whose scheduler knew it at submission.

use nandscape_core::SimTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests under way, each with a tag. Nothing is allocated once as many were under way as ever are.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<P> {
    /// By tag.
    requests: Vec<P>,
    free: Vec<u32>,
    known: BinaryHeap<Reverse<(SimTime, u32)>>,
    /// The top of `known` has been taken and waits to be overwritten by the next completion: one sift
    /// instead of two, since in a closed loop each completion makes room for one request.
    is_top_taken: bool,
}

impl<P: Copy> InFlight<P> {
    /// Nothing under way; room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            requests: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            known: BinaryHeap::with_capacity(capacity),
            is_top_taken: false,
        }
    }

    /// How many are under way.
    #[inline]
    pub const fn count(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// A request was submitted. Gives its tag.
    #[inline]
    pub fn add(&mut self, request: P) -> u32 {
        if let Some(tag) = self.free.pop() {
            self.requests[tag as usize] = request;
            tag
        } else {
            self.requests.push(request);
            self.requests.len() as u32 - 1
        }
    }

    /// A request has completed; its tag may be given again.
    #[inline]
    pub fn remove(&mut self, tag: u32) -> P {
        self.free.push(tag);
        self.requests[tag as usize]
    }

    /// It is known when a request completes.
    #[inline]
    pub fn completes_at(&mut self, at: SimTime, tag: u32) {
        if std::mem::take(&mut self.is_top_taken)
            && let Some(mut top) = self.known.peek_mut()
        {
            *top = Reverse((at, tag));
            return;
        }
        self.known.push(Reverse((at, tag)));
    }

    /// The first known completion that was not taken.
    #[inline]
    pub fn first(&mut self) -> Option<(SimTime, u32)> {
        if std::mem::take(&mut self.is_top_taken) {
            self.known.pop();
        }
        self.known.peek().map(|Reverse(first)| *first)
    }

    /// Takes what [`InFlight::first`] gave.
    #[inline]
    pub const fn take_first(&mut self) {
        self.is_top_taken = true;
    }
}
