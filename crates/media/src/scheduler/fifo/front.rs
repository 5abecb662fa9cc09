//! The host link and the write buffer before a scheduler that knows its completions.
//!
//! A write is answered when it has got room and its data has crossed the link; its program runs from then on
//! and gives the room back at its end. Writes get room in the order they come. Since the end of every program
//! is known, so is the time at which there is room.
//!
//! First come, first served all the same: what is submitted later to a die runs later, even if a write before
//! it still waits for room, and a read of a page in the buffer waits for the program. `read-first` does
//! better in both.

use super::Fifo;
use crate::scheduler::bus::Bus;
use crate::scheduler::{HostLink, Options, TimedOp};
use nandscape_core::{Geometry, SimTime, Token, Way};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
pub(super) struct Front {
    host: HostLink,
    is_volatile: bool,
    /// Pages that the buffer holds; 0 is no buffer.
    pages: usize,
    /// Ends of the programs whose pages are in the buffer, with some that have passed.
    ends: BinaryHeap<Reverse<u64>>,
    /// When the last write so far got room.
    admitted: u64,
    last_program: u64,
    in_free: u64,
    /// Reads complete in any order, so the link to the host is booked as a bus is.
    out: Bus,
}

nandscape_core::state!(impl [] Front {
    saved: ends, admitted, last_program, in_free, out;
    fixed: host, is_volatile, pages;
});

impl Front {
    pub fn new(geometry: &Geometry, options: &Options) -> Option<Self> {
        let pages = (options.buffer.bytes / u64::from(geometry.page_bytes)) as usize;
        let host = options.host;
        (host.is_some() || pages > 0).then(|| Self {
            host,
            is_volatile: options.buffer.is_volatile,
            pages,
            ends: BinaryHeap::with_capacity(pages),
            admitted: 0,
            last_program: 0,
            in_free: 0,
            out: Bus::new(0, host.transfer_ns(geometry.sector_bytes.min(512))),
        })
    }

    pub fn barrier(&self, at: SimTime) -> Token {
        let pending = self.pages > 0 && self.is_volatile && self.last_program > at.0;
        if pending { Token(self.last_program) } else { Token::NONE }
    }

    pub fn reset(&mut self, at: u64) {
        self.ends.clear();
        self.admitted = at;
        self.last_program = at;
        self.in_free = at;
        self.out.reset(at);
    }

    /// Bytes cross the link from `start` on without a flash operation; gives when the host knows. Those that
    /// come in wait behind the writes that wait for room.
    pub fn pass(&mut self, way: Way, bytes: u32, now: u64, start: u64) -> u64 {
        let span = self.host.transfer_ns(bytes);
        let end = match way {
            Way::In => {
                let start = (start + self.host.write_front_ns).max(self.admitted);
                if bytes == 0 {
                    start
                } else {
                    self.in_free = self.in_free.max(start) + span;
                    self.in_free
                }
            }
            Way::Out if span == 0 => start + self.host.read_front_ns,
            Way::Out => self.out.book(now, start + self.host.read_front_ns, span) + span,
        };
        end + self.host.completion_ns
    }

    /// When the data of a write is in the controller.
    fn inbound(&mut self, at: u64, bytes: u32) -> u64 {
        let mut start = at + self.host.write_front_ns;
        if self.pages > 0 {
            start = start.max(self.admitted);
            if self.ends.len() == self.pages
                && let Some(Reverse(end)) = self.ends.pop()
            {
                start = start.max(end);
            }
            self.admitted = start;
        }
        self.in_free = self.in_free.max(start) + self.host.transfer_ns(bytes);
        self.in_free
    }
}

impl Fifo {
    #[inline(never)]
    pub(super) fn submit_behind_front(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        let Some(mut front) = self.front.take() else { return Token(self.run(op, at.0, at.0.max(after.0))) };
        let completion = front.host.completion_ns;
        let done = match op {
            TimedOp::Read { transfer, .. } => {
                let end = self.run(op, at.0, (at.0 + front.host.read_front_ns).max(after.0));
                let span = front.host.transfer_ns(transfer);
                if span == 0 { end + completion } else { front.out.book(at.0, end, span) + span + completion }
            }
            TimedOp::Program { transfer, .. } => {
                let arrived = front.inbound(at.0, transfer);
                let end = self.run(op, at.0, arrived.max(after.0));
                if front.pages > 0 {
                    front.ends.push(Reverse(end));
                    front.last_program = front.last_program.max(end);
                    arrived + completion
                } else {
                    end + completion
                }
            }
            TimedOp::Erase { .. } => self.run(op, at.0, at.0.max(after.0)),
        };
        self.front = Some(front);
        self.last = self.last.max(done);
        Token(done)
    }
}
