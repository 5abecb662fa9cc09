//! A benchmark in virtual time, as fio would run it on a raw device: so many requests under way, of one size
//! and direction.

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Command, Completion, Extent, Hint, Op, SimTime, Store, StoreError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after another, round and round.
    Sequential,
    /// Anywhere, at multiples of the request's size.
    Random,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Read or write.
    pub op: Op,
    /// Where.
    pub pattern: Pattern,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Requests under way.
    pub depth: u32,
    /// Requests in all.
    pub requests: u64,
    /// The part of the store that is used, from its beginning, in bytes; 0 is all of it.
    pub span_bytes: u64,
    /// For places chosen at random.
    pub seed: u64,
}

impl Default for Load {
    /// 20,000 sequential reads of 4 KiB at depth 32.
    fn default() -> Self {
        Self {
            op: Op::Read,
            pattern: Pattern::Sequential,
            request_bytes: 4096,
            depth: 32,
            requests: 20_000,
            span_bytes: 0,
            seed: 1,
        }
    }
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Requests answered.
    pub requests: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// From the first request to the last answer, in nanoseconds.
    pub elapsed_ns: u64,
    /// Sum of all latencies, in nanoseconds.
    pub latency_ns_sum: u64,
    /// The longest latency, in nanoseconds.
    pub latency_ns_max: u64,
}

impl Measured {
    /// Bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// Runs a load on a store from `at` on. What is written is zeroes, if bytes are kept at all.
///
/// # Errors
/// The first that the store gives.
///
/// # Panics
/// If the load asks for anything but reads and writes, or for a request larger than its span.
pub fn measure(store: &mut dyn Store, load: &Load, at: SimTime) -> Result<Measured, StoreError> {
    assert!(matches!(load.op, Op::Read | Op::Write), "a load of {:?}: expected reads or writes", load.op);
    let span = if load.span_bytes == 0 { store.capacity_bytes() } else { load.span_bytes };
    let places = span / load.request_bytes;
    assert!(places > 0, "requests of {} bytes in {span}", load.request_bytes);
    let mut run = Run { store, at, known: BinaryHeap::new(), watched: Vec::new(), out: Vec::new() };
    let mut rng = seeded(load.seed);
    let mut measured = Measured::default();
    let mut issued_at = vec![at; load.depth as usize];
    let mut free: Vec<u32> = (0..load.depth).rev().collect();
    let mut issued = 0;
    while measured.requests < load.requests {
        while issued < load.requests
            && let Some(slot) = free.pop()
        {
            let place = match load.pattern {
                Pattern::Sequential => issued % places,
                Pattern::Random => below(&mut rng, places),
            };
            let extent = Extent::new(place * load.request_bytes, load.request_bytes);
            issued_at[slot as usize] = run.at;
            run.submit(Command::new(load.op, extent, Hint::default()), slot)?;
            issued += 1;
        }
        let (done, slot) = run.next();
        let latency = done.since(issued_at[slot as usize]).0;
        measured.requests += 1;
        measured.bytes += load.request_bytes;
        measured.latency_ns_sum += latency;
        measured.latency_ns_max = measured.latency_ns_max.max(latency);
        measured.elapsed_ns = done.since(at).0;
        free.push(slot);
    }
    Ok(measured)
}

/// Requests under way, whichever way the store tells of their completion.
struct Run<'a> {
    store: &'a mut dyn Store,
    at: SimTime,
    known: BinaryHeap<Reverse<(u64, u32)>>,
    watched: Vec<u32>,
    out: Vec<Completion>,
}

impl Run<'_> {
    fn submit(&mut self, command: Command, slot: u32) -> Result<(), StoreError> {
        let token = self.store.submit(command, Payload::None, self.at)?;
        if let Some(done) = self.store.completion(token) {
            self.known.push(Reverse((done.0, slot)));
        } else {
            self.store.watch(token, u64::from(slot));
            self.watched.push(slot);
        }
        Ok(())
    }

    /// Waits for the next answer.
    fn next(&mut self) -> (SimTime, u32) {
        loop {
            let known = self.known.peek().map(|Reverse((done, _))| *done);
            // What the store has still to decide may come before what is known.
            let event = if self.watched.is_empty() { None } else { self.store.next_event().map(|at| at.0) };
            if let Some(event) = event
                && known.is_none_or(|known| event <= known)
            {
                self.store.advance(SimTime(event), &mut self.out);
                for completion in self.out.drain(..) {
                    let slot = completion.tag as u32;
                    self.watched.retain(|watched| *watched != slot);
                    self.known.push(Reverse((completion.at.0, slot)));
                }
                continue;
            }
            let Reverse((done, slot)) =
                self.known.pop().expect("a store with requests under way has an event");
            self.at = self.at.max(SimTime(done));
            return (SimTime(done), slot);
        }
    }
}
