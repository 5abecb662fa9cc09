//! One page operation at a time on the whole device, transfers included in the latencies: the timing of the
//! thesis, whose throughputs [thesis table 4.2] fit no other.

use super::{Follows, Scheduler, SchedulerEntry, TimedOp, Timing};
use nandscape_core::{Clocked, Geometry, Info, SimTime, Token, Way};

/// Registry entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    info: Info {
        name: "serial",
        summary: "one page operation at a time on the whole device, transfers included",
        source: "[thesis table 4.2]",
        params: &[],
    },
    follows: Follows::Nothing,
};

/// Serial timing. Tokens are completion times.
#[derive(Clone, Debug)]
pub struct Serial {
    timing: Timing,
    free: u64,
}

nandscape_core::state!(impl [] Serial { saved: free; fixed: timing; });

impl Clocked for Serial {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime(self.free)
    }
}

impl Scheduler for Serial {
    fn new(_: &Geometry, timing: &Timing) -> Self {
        Self { timing: *timing, free: 0 }
    }

    #[inline]
    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        let latency = match op {
            TimedOp::Read { .. } => self.timing.read_ns,
            TimedOp::Program { .. } => self.timing.program_ns,
            TimedOp::Erase { .. } => self.timing.erase_ns,
        };
        self.free = self.free.max(at.0).max(after.0) + latency;
        Token(self.free)
    }

    fn pass(&mut self, _: Way, _: u32, at: SimTime, after: Token) -> Token {
        Token(at.0.max(after.0))
    }

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        Token(a.0.max(b.0))
    }

    fn reset(&mut self, at: SimTime) {
        self.free = at.0;
    }
}
