//! A drive of which only its rates are known: the four numbers that a benchmark prints.

use crate::base::{Base, of_base};
use crate::contents::Keep;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{Applied, BlockCommand, Clocked, Extent, Op, SimTime, Store, StoreResult, Token};
use std::collections::VecDeque;

/// Bytes of the requests that the random rates are of.
pub const RATED_REQUEST_BYTES: u64 = 4096;

/// Sequential streams of one direction that are followed at the same time.
const STREAMS: usize = 32;

/// The rates of a drive, in bytes per second, kept busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Reading in sequence.
    pub sequential_read: u64,
    /// Writing in sequence.
    pub sequential_write: u64,
    /// Reading 4 KiB at random.
    pub random_read: u64,
    /// Writing 4 KiB at random.
    pub random_write: u64,
    /// Latency of a read beyond the time it occupies the drive, in nanoseconds: seen at queue depth 1.
    pub read_latency_ns: u64,
    /// The same of a write.
    pub write_latency_ns: u64,
}

/// A drive with given rates: one server, first come first served.
///
/// A request that begins where one of the last 32 streams of its direction ended takes its bytes at the
/// sequential rate. Any other takes longer by what makes 4 KiB requests run at the random rate; so large
/// random ones come near the sequential rate. Trims and flushes take no time; a flush ends after all before
/// it.
#[derive(Debug)]
pub struct RatedDrive {
    base: Base,
    rates: Rates,
    reads: Streams,
    writes: Streams,
    free_at: u64,
    /// When the last request so far is answered.
    answered_at: u64,
}

/// Where sequential streams have ended, the most recent first.
#[derive(Debug, Default)]
struct Streams {
    ends: VecDeque<u64>,
}

impl Streams {
    /// Whether an extent goes on with a stream. It ends that stream now, or begins one.
    fn follow(&mut self, extent: Extent) -> bool {
        let found = self.ends.iter().position(|end| *end == extent.offset);
        if let Some(at) = found {
            self.ends.remove(at);
        } else if self.ends.len() == STREAMS {
            self.ends.pop_back();
        }
        self.ends.push_front(extent.end());
        found.is_some()
    }
}

impl RatedDrive {
    /// A new drive of 512-byte blocks. Panics if the capacity is not whole blocks, or a rate is 0.
    pub fn new(capacity_bytes: u64, rates: Rates, keep: Keep) -> Self {
        let Rates { sequential_read, sequential_write, random_read, random_write, .. } = rates;
        assert!(
            [sequential_read, sequential_write, random_read, random_write].iter().all(|rate| *rate > 0),
            "a rate is 0: {rates:?}"
        );
        Self {
            base: Base::new(capacity_bytes, 512, keep),
            rates,
            reads: Streams::default(),
            writes: Streams::default(),
            free_at: 0,
            answered_at: 0,
        }
    }

    /// How long a command occupies the drive, and how much later it is answered.
    fn service_ns(&mut self, command: BlockCommand) -> (u64, u64) {
        let rates = &self.rates;
        let (streams, sequential, random, latency) = match command.op {
            Op::Read => (&mut self.reads, rates.sequential_read, rates.random_read, rates.read_latency_ns),
            Op::Write => {
                (&mut self.writes, rates.sequential_write, rates.random_write, rates.write_latency_ns)
            }
            Op::Trim | Op::WriteZeroes | Op::Flush => return (0, 0),
        };
        let len = command.extent.len;
        if streams.follow(command.extent) {
            return (crate::transfer_ns(len, sequential), latency);
        }
        if random >= sequential {
            return (crate::transfer_ns(len, random), latency);
        }
        let extra = crate::transfer_ns(RATED_REQUEST_BYTES, random)
            - crate::transfer_ns(RATED_REQUEST_BYTES, sequential);
        (extra + crate::transfer_ns(len, sequential), latency)
    }
}

impl Store for RatedDrive {
    of_base!();

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        self.base.take(command, payload)?;
        Ok(Applied::default())
    }

    fn start(&mut self, command: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        let (occupied, latency) = self.service_ns(command);
        if command.op == Op::Flush {
            return Ok(Token(self.answered_at.max(at.0)));
        }
        self.free_at = self.free_at.max(at.0) + occupied;
        let answered = self.free_at + latency;
        self.answered_at = self.answered_at.max(answered);
        Ok(Token(answered))
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        Ok(Token(self.answered_at.max(at.0)))
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.base.counts = HostCounts::default();
        self.free_at = at.0;
        self.answered_at = at.0;
    }
}

impl Clocked for RatedDrive {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime(self.answered_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::measure::{Load, Pattern, measure};
    use nandscape_core::Hint;

    /// The SSD of the article on disk caches [cache-article introduction].
    const SSD: Rates = Rates {
        sequential_read: 231_000_000,
        sequential_write: 74_000_000,
        random_read: 230_000_000,
        random_write: 72_000_000,
        read_latency_ns: 60_000,
        write_latency_ns: 20_000,
    };

    fn drive() -> RatedDrive {
        RatedDrive::new(1 << 30, SSD, Keep::Nothing)
    }

    #[test]
    fn its_four_numbers_are_what_is_measured() {
        for (op, pattern, rate) in [
            (Op::Read, Pattern::Sequential, SSD.sequential_read),
            (Op::Write, Pattern::Sequential, SSD.sequential_write),
            (Op::Read, Pattern::Random, SSD.random_read),
            (Op::Write, Pattern::Random, SSD.random_write),
        ] {
            let load = Load { op, pattern, ..Load::default() };
            let measured = measure(&mut drive(), &load, SimTime::ZERO).unwrap();
            let ratio = measured.bytes_per_s() / rate as f64;
            assert!((ratio - 1.0).abs() < 0.01, "{op:?} {pattern:?}: {ratio}");
        }
    }

    #[test]
    fn one_request_at_a_time_waits_for_the_latency_too() {
        let load = Load { op: Op::Read, pattern: Pattern::Random, depth: 1, ..Load::default() };
        let measured = measure(&mut drive(), &load, SimTime::ZERO).unwrap();
        let expected = 4096.0 / (4096.0 / 230e6 + 60e-6);
        let ratio = measured.bytes_per_s() / expected;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn interleaved_streams_are_sequential_up_to_their_number() {
        let rates = Rates { random_read: 2_000_000, read_latency_ns: 0, ..SSD };
        for (streams, is_sequential) in [(1, true), (32, true), (33, false)] {
            let mut drive = RatedDrive::new(1 << 30, rates, Keep::Nothing);
            for step in 0..64 {
                for stream in 0..streams {
                    let extent = Extent::new(stream * (1 << 20) + step * 4096, 4096);
                    let command = BlockCommand::new(Op::Read, extent, Hint::default());
                    drive.submit(command, Payload::None, SimTime(0)).unwrap();
                }
            }
            let rate = (64 * streams * 4096) as f64 / drive.idle_from().as_secs_f64();
            assert_eq!(rate > 50e6, is_sequential, "{streams} streams: {rate} B/s");
        }
    }

    #[test]
    fn large_random_requests_come_near_the_sequential_rate() {
        let rates = Rates { random_read: 2_000_000, ..SSD };
        let mut drive = RatedDrive::new(1 << 30, rates, Keep::Nothing);
        let load = Load {
            op: Op::Read,
            pattern: Pattern::Random,
            request_bytes: 1 << 20,
            requests: 200,
            ..Load::default()
        };
        let rate = measure(&mut drive, &load, SimTime::ZERO).unwrap().bytes_per_s();
        assert!(
            (0.65..0.75).contains(&(rate / 231e6)),
            "{rate}: 4.54 ms of transfer after 2.03 ms of positioning"
        );
    }
}
