//! `AutoStream` by multi-queue: chunks rise with their count of writes and sink when writes stop.
//!
//! After `AutoStream` (SYSTOR 2017) as far as re-implementations show it. Time
//! is a count of writes. Where the re-implementation is in doubt or wrong, this is decided:
//!
//! * The stream of a write is looked up before its own update. A new chunk has the coldest stream.
//! * A sinking chunk's count falls to the lowest that its new queue holds, so it must earn its way up again.
//!   Otherwise its next write would put it back where it sank from.
//! * The lifetime (writes between two writes of the hottest chunk) is unknown until some chunk has been the
//!   hottest at two writes; until then nothing sinks.
//! * The base of the logarithm is a parameter: re-implementations use 10, the paper is not legible here.

use super::{PolicyEntry, StreamPolicy, WriteFacts, log_floor};
use crate::table::Table;
use nandscape_core::{Info, keys};

keys! { PARAMS:
    CHUNK: u64 = size(4096, 1 << 40) or "1MiB", "bytes of a chunk";
    BASE: u64 = int(2, 1_000_000) or "2", "base of the logarithm that makes a queue out of a count";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "autostream-mq",
        summary: "AutoStream: multi-queue over chunks, by count and recency of writes",
        source: "Yang et al., SYSTOR 2017 [AutoStream]",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| Ok(Box::new(MultiQueue::new(params.get(CHUNK), params.get(BASE), setup.streams))),
};

/// No chunk: end of a queue.
const NIL: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// 0 where it was never written.
    count: u64,
    last: u64,
    expiry: u64,
    /// Neighbours in the queue, one more than their number, 0 for none.
    before: u64,
    after: u64,
    /// 1 is the coldest.
    queue: u16,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u64,
    tail: u64,
}

#[derive(Debug)]
struct MultiQueue {
    chunk_bytes: u64,
    base: u64,
    chunks: Table<Chunk>,
    /// By stream, from 1 in place 0.
    queues: Vec<Queue>,
    clock: u64,
    hottest: u64,
    hottest_count: u64,
    lifetime: Option<u64>,
}

impl MultiQueue {
    fn new(chunk_bytes: u64, base: u64, streams: u16) -> Self {
        Self {
            chunk_bytes,
            base,
            chunks: Table::default(),
            queues: vec![Queue { head: NIL, tail: NIL }; usize::from(streams)],
            clock: 0,
            hottest: NIL,
            hottest_count: 0,
            lifetime: None,
        }
    }

    fn chunk(&mut self, number: u64) -> &mut Chunk {
        self.chunks.entry(number).expect("checked when it came")
    }

    fn unlink(&mut self, number: u64) {
        let Chunk { before, after, queue, .. } = *self.chunk(number);
        match before {
            0 => self.queues[usize::from(queue) - 1].head = after.wrapping_sub(1),
            before => self.chunk(before - 1).after = after,
        }
        match after {
            0 => self.queues[usize::from(queue) - 1].tail = before.wrapping_sub(1),
            after => self.chunk(after - 1).before = before,
        }
    }

    fn append(&mut self, number: u64, queue: u16) {
        let tail = self.queues[usize::from(queue) - 1].tail;
        let chunk = self.chunk(number);
        (chunk.queue, chunk.before, chunk.after) = (queue, tail.wrapping_add(1), 0);
        match tail {
            NIL => self.queues[usize::from(queue) - 1].head = number,
            tail => self.chunk(tail).after = number + 1,
        }
        self.queues[usize::from(queue) - 1].tail = number;
    }

    fn level(&self, count: u64) -> u16 {
        (log_floor(count, self.base) + 1).min(self.queues.len() as u16)
    }

    fn update(&mut self, number: u64) {
        self.clock += 1;
        let (clock, hottest_count) = (self.clock, self.hottest_count);
        let chunk = self.chunk(number);
        let is_new = chunk.count == 0;
        chunk.count += 1;
        let (count, gap) = (chunk.count, clock - chunk.last);
        chunk.last = clock;
        if count > hottest_count {
            // The span between two writes of the hottest; a first write has none.
            if !is_new {
                self.lifetime = Some(gap);
            }
            (self.hottest, self.hottest_count) = (number, count);
        }
        let expiry = self.lifetime.map_or(NIL, |lifetime| clock.saturating_add(lifetime));
        self.chunk(number).expiry = expiry;
        let level = self.level(count);
        if is_new {
            self.append(number, level);
        } else if self.chunk(number).queue != level {
            self.unlink(number);
            self.append(number, level);
        }
        self.demote();
    }

    /// Looks at the head of each queue from the hottest to the second.
    fn demote(&mut self) {
        for queue in (2..=self.queues.len() as u16).rev() {
            let head = self.queues[usize::from(queue) - 1].head;
            if head == NIL || self.chunk(head).expiry >= self.clock {
                continue;
            }
            self.unlink(head);
            self.append(head, queue - 1);
            let lowest = self.base.saturating_pow(u32::from(queue) - 2);
            let expiry = self.lifetime.map_or(NIL, |lifetime| self.clock.saturating_add(lifetime));
            let chunk = self.chunk(head);
            (chunk.count, chunk.expiry) = (lowest, expiry);
            if head == self.hottest {
                self.find_hottest();
            }
        }
    }

    /// The largest count in the hottest queue that is not empty.
    fn find_hottest(&mut self) {
        (self.hottest, self.hottest_count) = (NIL, 0);
        let Some(queue) = self.queues.iter().rev().find(|queue| queue.head != NIL) else { return };
        let mut at = queue.head;
        while at != NIL {
            let Chunk { count, after, .. } = *self.chunk(at);
            if count > self.hottest_count {
                (self.hottest, self.hottest_count) = (at, count);
            }
            at = after.wrapping_sub(1);
        }
    }
}

impl StreamPolicy for MultiQueue {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        if self.queues.is_empty() {
            return 0;
        }
        let number = write.offset / self.chunk_bytes;
        let Some(chunk) = self.chunks.entry(number) else { return 0 };
        let stream = chunk.queue.max(1);
        self.update(number);
        stream
    }

    fn memory_bytes(&self) -> u64 {
        self.chunks.memory_bytes() + (self.queues.len() * size_of::<Queue>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts};
    use super::*;

    const CHUNK: u64 = 1 << 20;

    fn policy(base: u64, streams: u16) -> MultiQueue {
        MultiQueue::new(CHUNK, base, streams)
    }

    fn write(policy: &mut MultiQueue, chunk: u64) -> u16 {
        policy.assign(&facts(chunk * CHUNK))
    }

    /// Every chunk is in the queue it names, and links agree both ways.
    fn check(policy: &mut MultiQueue) {
        let mut seen = 0;
        for queue in 1..=policy.queues.len() as u16 {
            let (mut at, mut before) = (policy.queues[usize::from(queue) - 1].head, NIL);
            while at != NIL {
                let chunk = *policy.chunk(at);
                assert_eq!((chunk.queue, chunk.before), (queue, before.wrapping_add(1)));
                // What sank has a count of its own queue, so the queue is always that of the count.
                assert_eq!(policy.level(chunk.count), queue);
                (before, at) = (at, chunk.after.wrapping_sub(1));
                seen += 1;
            }
            assert_eq!(policy.queues[usize::from(queue) - 1].tail, before);
        }
        let known =
            (0..4096).filter(|at| policy.chunks.get(*at).is_some_and(|chunk| chunk.count > 0)).count();
        assert_eq!(seen, known);
    }

    #[test]
    fn the_stream_is_that_before_the_write_and_follows_the_logarithm_of_the_count() {
        for (base, expected) in [(2, [1, 1, 2, 2, 3, 3, 3, 3, 4, 4]), (10, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])] {
            let mut policy = policy(base, 4);
            let streams: Vec<u16> = (0..10).map(|_| write(&mut policy, 5)).collect();
            assert_eq!(streams, expected, "base {base}");
            // The tenth write in base 10 is seen at the eleventh.
            assert_eq!(write(&mut policy, 5), if base == 2 { 4 } else { 2 });
        }
    }

    #[test]
    fn a_chunk_that_sank_does_not_jump_back_at_its_next_write() {
        for base in [2, 4] {
            let mut policy = policy(base, 4);
            for _ in 0..64 {
                write(&mut policy, 1);
            }
            assert_eq!(policy.chunk(1).queue, 4);
            // Another chunk is written until the first one expires and sinks by one queue.
            let mut other = 0;
            while policy.chunk(1).queue == 4 {
                write(&mut policy, 2);
                other += 1;
                assert!(other < 100, "chunk 1 never sinks");
            }
            let sunk = policy.chunk(1).queue;
            assert_eq!(sunk, 3);
            assert_eq!(write(&mut policy, 1), sunk);
            assert_eq!(policy.chunk(1).queue, sunk, "one write must not earn a queue back");
            check(&mut policy);
        }
    }

    #[test]
    fn links_hold_when_chunks_sink_and_rise() {
        let mut policy = policy(2, 4);
        for round in 0..200 {
            write(&mut policy, round % 7);
            check(&mut policy);
        }
    }

    #[test]
    fn nothing_sinks_before_a_lifetime_is_known() {
        let mut policy = policy(2, 4);
        for chunk in 0..100 {
            write(&mut policy, chunk);
        }
        assert_eq!(policy.lifetime, None);
        check(&mut policy);
    }

    #[test]
    fn queues_stay_whole_under_random_writes_and_hot_chunks_end_above_cold_ones() {
        use nandscape_core::rng::{below, seeded};
        let mut rng = seeded(1);
        for (base, streams) in [(2, 1), (2, 4), (2, 8), (10, 4)] {
            let mut policy = policy(base, streams);
            let (mut hot, mut cold) = (0u64, 0u64);
            for i in 0..20_000 {
                let is_hot = below(&mut rng, 10) < 9;
                let chunk = if is_hot { below(&mut rng, 10) } else { 10 + below(&mut rng, 1000) };
                let stream = u64::from(write(&mut policy, chunk));
                assert!((1..=u64::from(streams)).contains(&stream));
                *if is_hot { &mut hot } else { &mut cold } += stream;
                if i % 500 == 0 {
                    check(&mut policy);
                }
            }
            let (hot, cold) = (hot as f64 / 18_000.0, cold as f64 / 2000.0);
            assert!(streams == 1 || hot > cold + 0.05, "base {base}, {streams} streams: {hot} {cold}");
        }
    }

    #[test]
    fn without_streams_there_is_none() {
        assert_eq!(build("autostream-mq", &[], 0).assign(&facts(0)), 0);
    }
}
