//! `AutoStream` by sequentiality, frequency and recency.
//!
//! After `AutoStream` (SYSTOR 2017) as far as re-implementations show it. A write that goes on where the one
//! before ended has that one's stream. Otherwise the stream is the one its chunk earned earlier: the
//! logarithm of a count of writes that halves with every decay period. Decided here:
//!
//! * Streams count from 1: a chunk never written, or one that has decayed to nothing, has stream 1.
//! * A decay over 64 periods or more leaves nothing. (A re-implementation clamps the weight to the value 63
//!   there, which makes old chunks hotter than middle-aged ones.)
//! * Where the workload has no time stamps nothing decays.

use super::{PolicyEntry, StreamPolicy, WriteFacts, log_floor};
use crate::table::Table;
use nandscape_core::{Info, keys};

keys! { PARAMS:
    CHUNK: u64 = size(4096, 1 << 40) or "1MiB", "bytes of a chunk";
    BASE: u64 = int(2, 1_000_000) or "2", "base of the logarithm that makes a stream out of a count";
    DECAY: u64 = time() or "30s", "time in which a count halves";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "autostream-sfr",
        summary: "AutoStream: sequentiality, frequency and recency of writes to chunks",
        source: "Yang et al., SYSTOR 2017 [AutoStream]",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        let decay_ns = params.get(DECAY);
        if decay_ns == 0 {
            return Err(params.error(DECAY, "a time above 0"));
        }
        Ok(Box::new(Sfr::new(params.get(CHUNK), params.get(BASE), decay_ns, setup.streams)))
    },
};

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    count: u64,
    last_ns: u64,
    stream: u16,
}

#[derive(Debug)]
struct Sfr {
    chunk_bytes: u64,
    base: u64,
    decay_ns: u64,
    streams: u16,
    chunks: Table<Chunk>,
    previous_end: u64,
    previous_stream: u16,
}

impl Sfr {
    fn new(chunk_bytes: u64, base: u64, decay_ns: u64, streams: u16) -> Self {
        let (previous_end, previous_stream) = (u64::MAX, 0);
        Self { chunk_bytes, base, decay_ns, streams, chunks: Table::default(), previous_end, previous_stream }
    }
}

impl StreamPolicy for Sfr {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        if self.streams == 0 {
            return 0;
        }
        let Some(chunk) = self.chunks.entry(write.offset / self.chunk_bytes) else { return 0 };
        let stream =
            if write.offset == self.previous_end { self.previous_stream } else { chunk.stream.max(1) };
        let now = write.at.as_ns();
        let periods = now.saturating_sub(chunk.last_ns) / self.decay_ns;
        chunk.count = if periods >= 64 { 0 } else { (chunk.count + 1) >> periods };
        chunk.stream = (log_floor(chunk.count, self.base) + 1).min(self.streams);
        chunk.last_ns = now;
        (self.previous_end, self.previous_stream) = (write.offset.saturating_add(write.len), stream);
        stream
    }

    fn memory_bytes(&self) -> u64 {
        self.chunks.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts;
    use super::*;
    use nandscape_core::SimTime;

    const CHUNK: u64 = 1 << 20;
    const DECAY: u64 = 30_000_000_000;

    /// A write that continues none, so that its chunk decides.
    fn write(policy: &mut Sfr, chunk: u64, at_ns: u64) -> u16 {
        policy.previous_end = u64::MAX;
        policy.assign(&WriteFacts { at: SimTime(at_ns), ..facts(chunk * CHUNK) })
    }

    #[test]
    fn the_count_decides_before_its_own_write_counts() {
        for (base, expected) in [(2, [1, 1, 2, 2, 3, 3]), (10, [1, 1, 1, 1, 1, 1])] {
            let mut policy = Sfr::new(CHUNK, base, DECAY, 4);
            assert_eq!([0; 6].map(|at| write(&mut policy, 3, at)), expected, "base {base}");
        }
    }

    #[test]
    fn a_run_keeps_the_stream_of_its_start() {
        let mut policy = Sfr::new(CHUNK, 2, DECAY, 4);
        for _ in 0..9 {
            write(&mut policy, 0, 0);
        }
        let hot = write(&mut policy, 0, 0);
        assert_eq!(hot, 4);
        // Goes on into chunks that were never written.
        for page in 1..600 {
            assert_eq!(policy.assign(&facts(page * 4096)), hot, "page {page}");
        }
        assert_eq!(policy.assign(&facts(600 * 4096 + 4096)), 4.min(policy.chunks.get(2).unwrap().stream));
    }

    #[test]
    fn counts_halve_with_every_period_and_are_nothing_after_64() {
        let mut policy = Sfr::new(CHUNK, 2, DECAY, 16);
        for _ in 0..1023 {
            write(&mut policy, 0, 0);
        }
        // 1024 writes, then three periods: 128 are left.
        write(&mut policy, 0, 3 * DECAY);
        assert_eq!(policy.chunks.get(0).unwrap().count, 128);
        for periods in [63, 64, 65, 1000] {
            policy.chunks.entry(0).unwrap().count = u64::MAX >> 1;
            policy.chunks.entry(0).unwrap().last_ns = 0;
            write(&mut policy, 0, periods * DECAY);
            let left = policy.chunks.get(0).unwrap().count;
            // The clamp to 63 would leave a sixty-third of it here.
            assert_eq!(left, u64::from(periods == 63), "{periods} periods");
            assert_eq!(write(&mut policy, 0, periods * DECAY), 1);
        }
    }
}
