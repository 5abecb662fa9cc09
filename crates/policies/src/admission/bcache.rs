//! bcache's rules for what goes past the cache.

use super::streams::Streams;
use super::{Admission, Ask, Bypass, Entry, Served};
use nandscape_core::rng::{Rng, seeded};
use nandscape_core::{Info, Op, SimTime, keys};
use std::collections::BTreeMap;

keys! { PARAMS:
    pub BCACHE_CUTOFF: u64 = size(0, 1 << 50) or "4MiB", "length from which a stream bypasses; 0: never";
    BCACHE_CONGESTED_READ: u64 = time() or "2ms",
        "a read of the SSD that takes longer makes it count as congested; 0s: never";
    BCACHE_CONGESTED_WRITE: u64 = time() or "20ms",
        "a write of the SSD that takes longer makes it count as congested; 0s: never";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "bcache",
        summary: "long streams, clients that usually stream, and long requests while the SSD is slow are not cached",
        source: "bcache in Linux 6.1: sequential_cutoff, congested_read_threshold_us, congested_write_threshold_us",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        Ok(Box::new(Bcache {
            cutoff: params.get(BCACHE_CUTOFF),
            slow_ns: [params.get(BCACHE_CONGESTED_READ), params.get(BCACHE_CONGESTED_WRITE)],
            volumes: BTreeMap::new(),
            clients: BTreeMap::new(),
            debt: 0,
            slow_at: SimTime::ZERO,
            rng: seeded(setup.seed),
            long: 0,
            congested: 0,
        }))
    },
};

const STREAMS: u32 = 128;
const EXPIRE_NS: u64 = 5_000_000_000;
/// Milliseconds of slowness that are remembered at most.
const DEBT_MAX: i64 = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    run: u64,
    /// Average over its streams, each weighing an eighth of all before.
    average: u64,
}

/// Departures: a client is whoever uses one tag (bcache: one task), and the share of the cache that is dirty
/// is the business of `dirty-cutoff`.
#[derive(Debug)]
struct Bcache {
    cutoff: u64,
    /// Of reads, of writes.
    slow_ns: [u64; 2],
    /// Reads and writes are not told apart.
    volumes: BTreeMap<u16, Streams>,
    clients: BTreeMap<u16, Client>,
    /// Milliseconds by which answers were late, less one for each answer in time.
    debt: i64,
    slow_at: SimTime,
    rng: nandscape_core::rng::Xoshiro256PlusPlus,
    long: u64,
    congested: u64,
}

impl Bcache {
    /// From how many sectors on a stream bypasses because of congestion: few at first, growing exponentially
    /// to none as the debt is forgiven by time.
    fn congested_sectors(&mut self, at: SimTime) -> Option<u64> {
        if self.slow_ns == [0; 2] || self.debt == 0 {
            return None;
        }
        let forgiven = i64::try_from(at.since(self.slow_at).0 / 1_024_000).unwrap_or(i64::MAX);
        let left = forgiven.saturating_sub(self.debt);
        if left >= 0 {
            return None;
        }
        let step = (left + DEBT_MAX).max(0) as u64;
        // 2^(step / 64), the bits between as a straight line.
        let grown = if step == 0 { 0 } else { ((64 + (step & 63)) << (step >> 6)) >> 6 };
        let spread = u64::from((self.rng.next_u64() as u32).count_ones());
        Some(grown.saturating_sub(spread).max(1))
    }
}

impl Admission for Bcache {
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass> {
        if !matches!(ask.op, Op::Read | Op::Write) || ask.extent.len == 0 {
            return Ok(());
        }
        let congested = self.congested_sectors(ask.at);
        if congested.is_none() && self.cutoff == 0 {
            return Ok(());
        }
        let streams = self.volumes.entry(ask.volume).or_insert_with(|| Streams::new(STREAMS, EXPIRE_NS));
        let (stream, is_new) = streams.note((ask.volume, 0), ask.extent, ask.at);
        let run = stream.bytes();
        let client = self.clients.entry(ask.hint.0).or_default();
        if is_new {
            client.average = (client.average * 7 + client.run) / 8;
        }
        client.run = run;
        let sectors = client.run.max(client.average) >> 9;
        if self.cutoff > 0 && sectors >= self.cutoff >> 9 {
            self.long += 1;
            return Err(Bypass::Sequential);
        }
        if congested.is_some_and(|limit| sectors >= limit) {
            self.congested += 1;
            return Err(Bypass::Congested);
        }
        Ok(())
    }

    fn watches_device(&self) -> bool {
        self.slow_ns != [0; 2]
    }

    fn served(&mut self, served: &Served) {
        let slow_ns = self.slow_ns[usize::from(served.op == Op::Write)];
        if slow_ns == 0 {
            return;
        }
        if served.took.0 > slow_ns {
            let late = i64::try_from(served.took.0 / 1_024_000).unwrap_or(i64::MAX);
            self.debt += late.min(DEBT_MAX - self.debt);
            self.slow_at = served.at;
        } else if self.debt > 0 {
            self.debt -= 1;
        }
    }

    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        out.extend([("bcache_long", self.long), ("bcache_congested", self.congested)]);
    }

    fn memory_bytes(&self) -> u64 {
        let streams: u64 = self.volumes.values().map(Streams::memory_bytes).sum();
        streams + self.clients.len() as u64 * 48
    }
}
