//! Loads of commands beside each other on a subsystem, each with its own depth and rate, in virtual time.

use nandscape_core::command::Payload;
use nandscape_core::{Command, NamespaceError, Outstanding, SimTime, Subsystem};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Commands of one kind, so many at a time.
pub struct Load<'a> {
    /// Commands under way.
    pub depth: u32,
    /// Shortest time between two of them.
    pub gap_ns: u64,
    /// The next command and its bytes, after so many; none ends the load.
    pub next: Box<dyn FnMut(u64) -> Option<(Command, u64)> + 'a>,
}

/// What a load saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Latencies of the commands that ended in the counted time.
    pub latencies_ns: Vec<u64>,
    pub bytes: u64,
    pub seconds: f64,
}

impl Seen {
    pub fn per_s(&self) -> f64 {
        self.latencies_ns.len() as f64 / self.seconds
    }

    pub fn mib_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds / f64::from(1 << 20)
    }

    pub fn mean_ns(&self) -> f64 {
        self.latencies_ns.iter().map(|ns| *ns as f64).sum::<f64>() / self.latencies_ns.len().max(1) as f64
    }

    /// The latency that a share of the commands does not exceed.
    pub fn percentile_ns(&self, share: f64) -> f64 {
        let mut sorted = self.latencies_ns.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).map_or(0.0, |ns| *ns as f64)
    }
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    load: usize,
    issued: SimTime,
    bytes: u64,
}

/// Runs loads beside each other from `at`; what ends between `warm_ns` and `warm_ns + counted_ns` later is
/// counted. Ends earlier when every load has. Gives what each saw, and when the last command ended.
pub fn run(
    subsystem: &mut dyn Subsystem,
    loads: &mut [Load<'_>],
    at: SimTime,
    (warm_ns, counted_ns): (u64, u64),
) -> Result<(Vec<Seen>, SimTime), NamespaceError> {
    let (from, until) = (at + warm_ns, at + (warm_ns + counted_ns));
    let mut seen: Vec<Seen> = loads.iter().map(|_| Seen::default()).collect();
    let mut issued = vec![0u64; loads.len()];
    let mut free_from = vec![at; loads.len()];
    let mut outstanding: Outstanding<Pending> = Outstanding::default();
    let mut due: BinaryHeap<Reverse<(SimTime, usize)>> = BinaryHeap::new();
    for (number, load) in loads.iter().enumerate() {
        (0..load.depth).for_each(|_| due.push(Reverse((at, number))));
    }
    let mut end = at;
    let mut first = None;
    loop {
        let next_due = due.peek().map(|Reverse((at, _))| *at).filter(|at| *at < until);
        let limit = next_due.unwrap_or(SimTime::MAX);
        if let Some((done, pending)) = outstanding.next_until(subsystem, limit) {
            end = end.max(done);
            let counted = &mut seen[pending.load];
            if done >= from && done <= until {
                first.get_or_insert(done);
                counted.latencies_ns.push(done.since(pending.issued).0);
                counted.bytes += pending.bytes;
            }
            due.push(Reverse((done.max(free_from[pending.load]), pending.load)));
            continue;
        }
        let Some(now) = next_due else { break };
        let Some(Reverse((_, number))) = due.pop() else { break };
        let load = &mut loads[number];
        let now = now.max(free_from[number]);
        if now > limit {
            due.push(Reverse((now, number)));
            continue;
        }
        let Some((command, bytes)) = (load.next)(issued[number]) else { continue };
        issued[number] += 1;
        free_from[number] = now + load.gap_ns;
        outstanding.advance(subsystem, now);
        let token = subsystem.submit(0, command, Payload::None, now)?.done;
        let pending = Pending { load: number, issued: now, bytes };
        outstanding.submitted(subsystem, token, now, pending);
    }
    for seen in &mut seen {
        seen.seconds = counted_ns.min(end.since(from).0.max(1)) as f64 / 1e9;
    }
    Ok((seen, end))
}
