//! Parallel timing, first come first served: every die and every channel bus is a resource, and the
//! completion of an operation is fixed when it is submitted.
//!
//! A die runs its operations in submission order and is held from the start of an operation to its end,
//! transfers included (one page register). A bus carries one transfer at a time. An operation queued on a
//! busy die books its transfer in the future; later operations of other dies may use the bus before that
//! ("backfill"), otherwise one busy die would stop its whole channel. Submissions come in nondecreasing time,
//! so a booking looks only at the gaps between now and its own time.
//!
//! Of the [`Options`] it follows `host` and `buffer`, see `front`.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

mod front;

use super::bus::Bus;
use super::{Follows, Options, Scheduler, SchedulerEntry, TimedOp, Timing, submit_each};
use front::Front;
use nandscape_core::{Clocked, Divider, Geometry, Info, Ppn, Sender, SimTime, Token, UnitId, Way, state};

/// Registry entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    info: Info {
        name: "fifo",
        summary: "dies and buses are resources; first come first served, completions fixed at submission",
        source: "",
        params: &[],
    },
    follows: Follows::Host,
};

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
    front: Option<Box<Front>>,
}

/// One die: when it is free, and its bus.
#[derive(Clone, Copy, Debug)]
struct Die {
    free: u64,
    bus: u32,
}

state!(impl [] Fifo {
    saved: last;
    tables: dies, buses;
    parts: front;
    fixed: timing, page_bytes, page_transfer_ns, pages_per_unit;
});

state!(impl [] Die { saved: free; fixed: bus; });

impl Fifo {
    #[inline(always)]
    fn transfer_ns(&self, bytes: u32) -> u64 {
        if bytes == self.page_bytes { self.page_transfer_ns } else { self.timing.transfer_ns(bytes) }
    }

    /// Books the command cycles, if they are modelled; gives their end.
    #[inline(always)]
    fn command(bus: &mut Bus, now: u64, start: u64, span: u64) -> u64 {
        if span == 0 { start } else { bus.book(now, start, span) + span }
    }

    /// Runs an operation, not before `earliest`; gives its end. Nothing will be submitted before `now` any
    /// more.
    #[inline(always)]
    fn run(&mut self, op: TimedOp, now: u64, earliest: u64) -> u64 {
        let unit = self.pages_per_unit.quotient(op.page().0);
        let command_ns = self.timing.command_ns;
        let span = match op {
            TimedOp::Read { transfer, .. } => self.transfer_ns(transfer),
            TimedOp::Program { transfer, held, .. } => self.transfer_ns(transfer + held),
            TimedOp::Erase { .. } => 0,
        };
        let die = &mut self.dies[unit as usize];
        let bus = &mut self.buses[die.bus as usize];
        let start = earliest.max(die.free);
        let end = match op {
            TimedOp::Read { .. } => {
                let start = Self::command(bus, now, start, command_ns);
                bus.book(now, start + self.timing.read_ns, span) + span
            }
            TimedOp::Program { .. } => {
                let span = command_ns + span;
                bus.book(now, start, span) + span + self.timing.program_ns
            }
            TimedOp::Erase { .. } => Self::command(bus, now, start, command_ns) + self.timing.erase_ns,
        };
        die.free = end;
        self.last = self.last.max(end);
        end
    }
}

impl Clocked for Fifo {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime(self.last)
    }
}

impl Scheduler for Fifo {
    fn new(geometry: &Geometry, timing: &Timing) -> Self {
        let transfer = timing.transfer_ns(geometry.sector_bytes.min(512));
        let shortest = if timing.command_ns == 0 { transfer } else { transfer.min(timing.command_ns) };
        Self {
            timing: *timing,
            page_bytes: geometry.page_bytes,
            page_transfer_ns: timing.transfer_ns(geometry.page_bytes),
            pages_per_unit: Divider::new(geometry.blocks_per_unit() * geometry.pages_per_block),
            dies: (0..geometry.units())
                .map(|unit| Die { free: 0, bus: geometry.channel_of(UnitId(unit)) })
                .collect(),
            buses: vec![Bus::new(0, shortest); geometry.channels as usize],
            last: 0,
            front: None,
        }
    }

    fn with_options(geometry: &Geometry, timing: &Timing, options: &Options) -> Self {
        Self { front: Front::new(geometry, options).map(Box::new), ..Self::new(geometry, timing) }
    }

    #[inline(always)]
    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        self.submit_as(op, Sender::Host, at, after)
    }

    #[inline(always)]
    fn submit_as(&mut self, op: TimedOp, sender: Sender, at: SimTime, after: Token) -> Token {
        if self.front.is_some() && sender != Sender::Device {
            let at = if sender == Sender::HostLater { SimTime(at.0.max(after.0)) } else { at };
            return self.submit_behind_front(op, at, after);
        }
        Token(self.run(op, at.0, at.0.max(after.0)))
    }

    #[inline(always)]
    fn submit_programs(
        &mut self,
        pages: impl Iterator<Item = Ppn>,
        transfer: u32,
        sender: Sender,
        at: SimTime,
        after: Token,
    ) -> Token {
        if self.front.is_some() && sender != Sender::Device {
            return submit_each(self, pages, transfer, sender, at, after);
        }
        let span = self.timing.command_ns + self.transfer_ns(transfer);
        let (program_ns, earliest) = (self.timing.program_ns, at.0.max(after.0));
        let mut last = 0;
        for page in pages {
            let die = &mut self.dies[self.pages_per_unit.quotient(page.0) as usize];
            let begin = self.buses[die.bus as usize].book(at.0, earliest.max(die.free), span);
            die.free = begin + span + program_ns;
            last = last.max(die.free);
        }
        self.last = self.last.max(last);
        Token(last)
    }

    fn pass(&mut self, way: Way, bytes: u32, at: SimTime, after: Token) -> Token {
        let start = at.0.max(after.0);
        let done = self.front.as_mut().map_or(start, |front| front.pass(way, bytes, at.0, start));
        self.last = self.last.max(done);
        Token(done)
    }

    fn barrier(&mut self, at: SimTime) -> Token {
        self.front.as_ref().map_or(Token::NONE, |front| front.barrier(at))
    }

    #[inline(always)]
    fn join(&mut self, a: Token, b: Token) -> Token {
        Token(a.0.max(b.0))
    }

    fn reset(&mut self, at: SimTime) {
        for die in &mut self.dies {
            die.free = at.0;
        }
        for bus in &mut self.buses {
            bus.reset(at.0);
        }
        self.last = at.0;
        if let Some(front) = &mut self.front {
            front.reset(at.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        TimedOp::Program { page: Ppn(unit * 4), transfer: 1000, held: 0 }
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
        let small = TimedOp::Program { page: Ppn(8), transfer: 500, held: 0 };
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
}
