//! Parallel timing, first come first served: every die and every channel bus is a resource, and the completion of an operation is fixed
//! when it is submitted.
//!
//! A die runs its operations in submission order and is held from the start of an operation to its end, transfers included
//! (one page register). A bus carries one transfer at a time. An operation queued on a busy die books its transfer in
//! the future; later operations of other dies may use the bus before that ("backfill"), otherwise one busy die would stop its
//! whole channel. Up to [`GAPS`] such free stretches are remembered for each bus, which keeps submission O(1).
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

use super::{Scheduler, TimedOp, Timing};
use nandscape_core::{Completion, Divider, Geometry, SimTime, Token, UnitId};

/// Free stretches remembered per bus. More than the dies of a channel never matter much: each die books at most one
/// transfer ahead of the others at a time.
pub const GAPS: usize = 16;

/// Turns a count of gaps into an index of the ring. A mask, which also tells the compiler that no index is out of bounds.
const MASK: usize = GAPS - 1;
const _: () = assert!(GAPS.is_power_of_two(), "the mask needs a power of two");

/// One channel bus: busy up to `free` except for the gaps.
#[derive(Clone, Debug)]
struct Bus {
    free: u64,
    /// The gaps are `gaps[(first + i) & MASK]` for `i` below `len`, disjoint and in time order.
    first: usize,
    len: usize,
    gaps: [(u64, u64); GAPS],
}

impl Bus {
    const fn new(at: u64) -> Self {
        Self { free: at, first: 0, len: 0, gaps: [(0, 0); GAPS] }
    }

    #[inline(always)]
    const fn gap(&mut self, i: usize) -> &mut (u64, u64) {
        &mut self.gaps[(self.first + i) & MASK]
    }

    /// Books `span` ns at or after `earliest`; gives the start.
    #[inline(always)]
    fn book(&mut self, earliest: u64, span: u64) -> u64 {
        if earliest >= self.free {
            if earliest > self.free {
                self.remember(self.free, earliest);
            }
            self.free = earliest + span;
            return earliest;
        }
        self.book_in_gap(earliest, span)
    }

    /// Takes the first gap that fits, else the end of the queue. Only gaps that end late enough matter; they are the last ones.
    #[inline(always)]
    fn book_in_gap(&mut self, earliest: u64, span: u64) -> u64 {
        let needed = earliest + span;
        let mut first_fit = self.len;
        for i in (0..self.len).rev() {
            let (start, end) = *self.gap(i);
            if end < needed {
                break;
            }
            if start + span <= end {
                first_fit = i;
            }
        }
        if first_fit < self.len {
            let begin = earliest.max(self.gap(first_fit).0);
            self.use_gap(first_fit, begin, begin + span);
            return begin;
        }
        let begin = self.free;
        self.free += span;
        begin
    }

    /// The earliest is forgotten when there are too many.
    #[inline(always)]
    const fn remember(&mut self, start: u64, end: u64) {
        if self.len == GAPS {
            self.first = (self.first + 1) & MASK;
        } else {
            self.len += 1;
        }
        *self.gap(self.len - 1) = (start, end);
    }

    #[inline(always)]
    fn use_gap(&mut self, i: usize, begin: u64, end: u64) {
        let (gap_start, gap_end) = *self.gap(i);
        match (gap_start < begin, end < gap_end) {
            (true, false) => self.gap(i).1 = begin,
            (false, true) => self.gap(i).0 = end,
            (false, false) => {
                for i in i + 1..self.len {
                    *self.gap(i - 1) = *self.gap(i);
                }
                self.len -= 1;
            }
            // A gap on both sides is left; only the later one if there are too many already.
            (true, true) if self.len == GAPS => self.gap(i).0 = end,
            (true, true) => {
                for i in (i..self.len).rev() {
                    *self.gap(i + 1) = *self.gap(i);
                }
                self.len += 1;
                self.gap(i).1 = begin;
                self.gap(i + 1).0 = end;
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
    pages_per_unit: Divider,
    dies: Vec<Die>,
    buses: Vec<Bus>,
    last: u64,
}

/// One die: when it is free, and its bus.
#[derive(Clone, Copy, Debug)]
struct Die {
    free: u64,
    bus: u32,
}

impl Fifo {
    #[inline(always)]
    fn transfer_ns(&self, bytes: u32) -> u64 {
        if bytes == self.page_bytes { self.page_transfer_ns } else { self.timing.transfer_ns(bytes) }
    }

    /// Books the command cycles, if they are modelled; gives their end.
    #[inline(always)]
    fn command(bus: &mut Bus, start: u64, span: u64) -> u64 {
        if span == 0 { start } else { bus.book(start, span) + span }
    }
}

impl Scheduler for Fifo {
    fn new(geometry: &Geometry, timing: &Timing) -> Self {
        Self {
            timing: *timing,
            page_bytes: geometry.page_bytes,
            page_transfer_ns: timing.transfer_ns(geometry.page_bytes),
            pages_per_unit: Divider::new(geometry.blocks_per_unit() * geometry.pages_per_block),
            dies: (0..geometry.units())
                .map(|unit| Die { free: 0, bus: geometry.channel_of(UnitId(unit)) })
                .collect(),
            buses: vec![Bus::new(0); geometry.channels as usize],
            last: 0,
        }
    }

    #[inline(always)]
    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        let unit = self.pages_per_unit.quotient(op.page().0);
        let command_ns = self.timing.command_ns;
        let span = match op {
            TimedOp::Read { transfer, .. } | TimedOp::Program { transfer, .. } => self.transfer_ns(transfer),
            TimedOp::Erase { .. } => 0,
        };
        let die = &mut self.dies[unit as usize];
        let bus = &mut self.buses[die.bus as usize];
        let start = at.0.max(after.0).max(die.free);
        let end = match op {
            TimedOp::Read { .. } => {
                let start = Self::command(bus, start, command_ns);
                bus.book(start + self.timing.read_ns, span) + span
            }
            TimedOp::Program { .. } => {
                let span = command_ns + span;
                bus.book(start, span) + span + self.timing.program_ns
            }
            TimedOp::Erase { .. } => Self::command(bus, start, command_ns) + self.timing.erase_ns,
        };
        die.free = end;
        self.last = self.last.max(end);
        Token(end)
    }

    #[inline(always)]
    fn join(&mut self, a: Token, b: Token) -> Token {
        Token(a.0.max(b.0))
    }

    #[inline(always)]
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
        for die in &mut self.dies {
            die.free = at.0;
        }
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

    /// The same rules on a plain list, searched from the front.
    #[derive(Default)]
    struct PlainBus {
        free: u64,
        gaps: Vec<(u64, u64)>,
    }

    impl PlainBus {
        fn book(&mut self, earliest: u64, span: u64) -> u64 {
            if earliest >= self.free {
                if earliest > self.free {
                    if self.gaps.len() == GAPS {
                        self.gaps.remove(0);
                    }
                    self.gaps.push((self.free, earliest));
                }
                self.free = earliest + span;
                return earliest;
            }
            let fits = |(start, end): &(u64, u64)| earliest.max(*start) + span <= *end;
            let Some(i) = self.gaps.iter().position(fits) else {
                self.free += span;
                return self.free - span;
            };
            let (start, end) = self.gaps.remove(i);
            let begin = earliest.max(start);
            if begin + span < end {
                self.gaps.insert(i, (begin + span, end));
            }
            if start < begin && self.gaps.len() < GAPS {
                self.gaps.insert(i, (start, begin));
            }
            begin
        }
    }

    #[test]
    fn gaps_are_those_of_a_plain_list() {
        use nandscape_core::rng::{below, seeded};
        let mut rng = seeded(3);
        for (late, longest) in [(300, 30), (3000, 30), (100, 200)] {
            let (mut bus, mut plain) = (Bus::new(0), PlainBus::default());
            let mut now = 0;
            for step in 0..20_000 {
                now += below(&mut rng, 40);
                let earliest = now + below(&mut rng, late);
                let span = 1 + below(&mut rng, longest);
                assert_eq!(bus.book(earliest, span), plain.book(earliest, span), "step {step}");
                let gaps: Vec<_> = (0..bus.len).map(|i| *bus.gap(i)).collect();
                assert_eq!(gaps, plain.gaps, "step {step}");
            }
        }
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
