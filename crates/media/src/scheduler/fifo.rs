//! Parallel timing, first come first served: every die and every channel bus is a resource, and the completion of an operation is fixed
//! when it is submitted.
//!
//! A die runs its operations in submission order and is held from the start of an operation to its end, transfers included
//! (one page register). A bus carries one transfer at a time. An operation queued on a busy die books its transfer in
//! the future; later operations of other dies may use the bus before that ("backfill"), otherwise one busy die would stop its
//! whole channel. Up to [`GAPS`] such free stretches are remembered for each bus, which keeps submission O(1).

use super::{Scheduler, TimedOp, Timing};
use nandscape_core::{Completion, Geometry, SimTime, Token};

/// Free stretches remembered per bus. More than the dies of a channel never matter much: each die books at most one
/// transfer ahead of the others at a time.
pub const GAPS: usize = 16;

/// One channel bus: busy up to `free` except for the gaps.
#[derive(Clone, Debug)]
struct Bus {
    free: u64,
    gaps: [(u64, u64); GAPS],
    len: usize,
}

impl Bus {
    const fn new(at: u64) -> Self {
        Self { free: at, gaps: [(0, 0); GAPS], len: 0 }
    }

    /// Books `span` ns at or after `earliest`; gives the start.
    #[inline]
    fn book(&mut self, earliest: u64, span: u64) -> u64 {
        if earliest >= self.free {
            if earliest > self.free {
                self.remember(self.free, earliest);
            }
            self.free = earliest + span;
            return earliest;
        }
        for i in 0..self.len {
            let (start, end) = self.gaps[i];
            let begin = start.max(earliest);
            if begin + span <= end {
                self.use_gap(i, begin, begin + span);
                return begin;
            }
        }
        let begin = self.free;
        self.free += span;
        begin
    }

    /// Gaps are kept in time order; the earliest is forgotten when there are too many.
    fn remember(&mut self, start: u64, end: u64) {
        if self.len == GAPS {
            self.gaps.copy_within(1.., 0);
            self.len -= 1;
        }
        self.gaps[self.len] = (start, end);
        self.len += 1;
    }

    fn use_gap(&mut self, i: usize, begin: u64, end: u64) {
        let (gap_start, gap_end) = self.gaps[i];
        match (gap_start < begin, end < gap_end) {
            (true, false) => self.gaps[i].1 = begin,
            (false, true) => self.gaps[i].0 = end,
            (false, false) => {
                self.gaps.copy_within(i + 1..self.len, i);
                self.len -= 1;
            }
            (true, true) => {
                self.gaps[i].0 = end;
                if self.len < GAPS {
                    self.gaps.copy_within(i..self.len, i + 1);
                    self.gaps[i] = (gap_start, begin);
                    self.len += 1;
                }
            }
        }
    }
}

/// Parallel timing, first come first served. Tokens are completion times.
#[derive(Clone, Debug)]
pub struct Fifo {
    timing: Timing,
    page_bytes: u32,
    page_transfer_ns: u64,
    channels: u32,
    pages_per_unit: u32,
    dies: Vec<u64>,
    buses: Vec<Bus>,
    last: u64,
}

impl Fifo {
    #[inline]
    fn transfer_ns(&self, bytes: u32) -> u64 {
        if bytes == self.page_bytes { self.page_transfer_ns } else { self.timing.transfer_ns(bytes) }
    }

    /// Books the command cycles, if they are modelled; gives their end.
    #[inline]
    fn command(&mut self, bus: usize, start: u64) -> u64 {
        let span = self.timing.command_ns;
        if span == 0 { start } else { self.buses[bus].book(start, span) + span }
    }
}

impl Scheduler for Fifo {
    fn new(geometry: &Geometry, timing: &Timing) -> Self {
        Self {
            timing: *timing,
            page_bytes: geometry.page_bytes,
            page_transfer_ns: timing.transfer_ns(geometry.page_bytes),
            channels: geometry.channels,
            pages_per_unit: geometry.blocks_per_unit() * geometry.pages_per_block,
            dies: vec![0; geometry.units() as usize],
            buses: vec![Bus::new(0); geometry.channels as usize],
            last: 0,
        }
    }

    #[inline]
    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        let unit = op.page().0 / self.pages_per_unit;
        let bus = (unit % self.channels) as usize;
        let start = at.0.max(after.0).max(self.dies[unit as usize]);
        let end = match op {
            TimedOp::Read { transfer, .. } => {
                let span = self.transfer_ns(transfer);
                let start = self.command(bus, start);
                self.buses[bus].book(start + self.timing.read_ns, span) + span
            }
            TimedOp::Program { transfer, .. } => {
                let span = self.timing.command_ns + self.transfer_ns(transfer);
                self.buses[bus].book(start, span) + span + self.timing.program_ns
            }
            TimedOp::Erase { .. } => self.command(bus, start) + self.timing.erase_ns,
        };
        self.dies[unit as usize] = end;
        self.last = self.last.max(end);
        Token(end)
    }

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        Token(a.0.max(b.0))
    }

    #[inline]
    fn completion(&self, token: Token) -> Option<SimTime> {
        Some(SimTime(token.0))
    }

    fn watch(&mut self, _: Token, _: u64) {}

    fn advance(&mut self, _: SimTime, _: &mut Vec<Completion>) {}

    fn next_event(&self) -> Option<SimTime> {
        None
    }

    fn idle_from(&self) -> SimTime {
        SimTime(self.last)
    }

    fn reset(&mut self, at: SimTime) {
        self.dies.fill(at.0);
        self.buses.fill(Bus::new(at.0));
        self.last = at.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::Ppn;

    /// Two channels of two dies; 1 ns a byte, so that a 1000-byte page takes 1000 ns on the bus.
    fn fifo() -> Fifo {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 1,
            pages_per_block: 4,
            page_bytes: 1000,
            sector_bytes: 1000,
            oob_bytes: 0,
        };
        let timing = Timing {
            read_ns: 50,
            program_ns: 700,
            erase_ns: 3000,
            channel_bytes_per_s: 1_000_000_000,
            command_ns: 0,
        };
        Fifo::new(&geometry, &timing)
    }

    fn read(unit: u32) -> TimedOp {
        TimedOp::Read { page: Ppn(unit * 4), transfer: 1000 }
    }

    fn program(unit: u32) -> TimedOp {
        TimedOp::Program { page: Ppn(unit * 4), transfer: 1000 }
    }

    #[test]
    fn dies_of_one_channel_share_its_bus() {
        let mut fifo = fifo();
        // Units 0 and 2 are the dies of channel 0.
        assert_eq!(fifo.submit(read(0), SimTime(0), Token::NONE), Token(1050));
        assert_eq!(fifo.submit(read(2), SimTime(0), Token::NONE), Token(2050));
        assert_eq!(fifo.submit(read(1), SimTime(0), Token::NONE), Token(1050));
    }

    #[test]
    fn a_die_queue_does_not_block_the_bus_for_others() {
        let mut fifo = fifo();
        assert_eq!(fifo.submit(program(0), SimTime(0), Token::NONE), Token(1700));
        // Queued behind the first: its transfer is booked for 1700..2700.
        assert_eq!(fifo.submit(program(0), SimTime(0), Token::NONE), Token(3400));
        // Die 2 finds the bus free in 1000..1700? Too short for 1000 ns, so it follows at 2700.
        assert_eq!(fifo.submit(program(2), SimTime(0), Token::NONE), Token(4400));
        let small = TimedOp::Program { page: Ppn(8), transfer: 500 };
        fifo.reset(SimTime(0));
        fifo.submit(program(0), SimTime(0), Token::NONE);
        fifo.submit(program(0), SimTime(0), Token::NONE);
        assert_eq!(fifo.submit(small, SimTime(0), Token::NONE), Token(1000 + 500 + 700), "backfilled");
    }

    #[test]
    fn after_delays_the_start() {
        let mut fifo = fifo();
        let read = fifo.submit(read(0), SimTime(0), Token::NONE);
        assert_eq!(fifo.submit(program(1), SimTime(0), read), Token(1050 + 1700));
        assert_eq!(fifo.idle_from(), SimTime(2750));
    }

    #[test]
    fn a_bus_is_never_booked_twice() {
        use nandscape_core::rng::{below, seeded};
        let mut rng = seeded(1);
        let mut bus = Bus::new(0);
        let mut booked: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for _ in 0..5000 {
            now += below(&mut rng, 40);
            let earliest = now + below(&mut rng, 300);
            let span = 1 + below(&mut rng, 30);
            let start = bus.book(earliest, span);
            assert!(start >= earliest);
            booked.push((start, start + span));
        }
        booked.sort_unstable();
        for pair in booked.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
        }
    }
}
