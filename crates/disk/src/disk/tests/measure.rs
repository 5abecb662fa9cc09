//! A benchmark in virtual time, as fio on a raw device: requests of one size and direction, some in flight.

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockCommand, Extent, Hint, Op, Outstanding, SimTime, Store, StoreError};

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

/// Runs a load on a store from `at` on, writing zeroes if bytes are kept. Panics if the load asks for
/// anything but reads and writes, or for a request larger than its span.
pub fn measure(store: &mut dyn Store, load: &Load, at: SimTime) -> Result<Measured, StoreError> {
    assert!(matches!(load.op, Op::Read | Op::Write), "a load of {:?}: expected reads or writes", load.op);
    let span = if load.span_bytes == 0 { store.capacity_bytes() } else { load.span_bytes };
    let places = span / load.request_bytes;
    assert!(places > 0, "requests of {} bytes in {span}", load.request_bytes);
    let mut outstanding = Outstanding::default();
    let mut rng = seeded(load.seed);
    let mut measured = Measured::default();
    let (mut issued, mut now) = (0, at);
    while measured.requests < load.requests {
        while issued < load.requests && outstanding.count() < load.depth as usize {
            let place = match load.pattern {
                Pattern::Sequential => issued % places,
                Pattern::Random => below(&mut rng, places),
            };
            let extent = Extent::new(place * load.request_bytes, load.request_bytes);
            let command = BlockCommand::new(load.op, extent, Hint::default());
            let token = store.submit(command, Payload::None, now)?;
            outstanding.submitted(store, token, now, now);
            issued += 1;
        }
        let next = outstanding.next(store);
        let (done, issued_at) = next.expect("a store with requests under way has an event");
        now = now.max(done);
        let latency = done.since(issued_at).0;
        measured.requests += 1;
        measured.bytes += load.request_bytes;
        measured.latency_ns_sum += latency;
        measured.latency_ns_max = measured.latency_ns_max.max(latency);
        measured.elapsed_ns = done.since(at).0;
    }
    Ok(measured)
}
