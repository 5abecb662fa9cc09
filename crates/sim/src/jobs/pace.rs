//! When a job may issue: think time and rate limits. Times are nanoseconds of virtual time.

use nandscape_core::rng::{Xoshiro256PlusPlus, seeded};
use nandscape_core::sample::exponential;
use nandscape_jobs::job::{RateProcess, ThinkBlocks};
use nandscape_jobs::{Direction, Job};

#[derive(Clone, Copy, Debug, Default)]
struct Limit {
    bytes_per_s: u64,
    iops: u64,
    /// Bytes or requests issued since `origin`.
    issued: u64,
    origin: u64,
    /// When the next request is due.
    next: u64,
}

impl Limit {
    const fn is_set(&self) -> bool {
        self.bytes_per_s > 0 || self.iops > 0
    }

    fn issue(&mut self, bytes: u64, process: RateProcess, rng: &mut Xoshiro256PlusPlus) {
        let (amount, rate) = if self.bytes_per_s > 0 { (bytes, self.bytes_per_s) } else { (1, self.iops) };
        match process {
            RateProcess::Linear => {
                self.issued += amount;
                let span = u128::from(self.issued) * 1_000_000_000 / u128::from(rate);
                self.next = self.origin.saturating_add(u64::try_from(span).unwrap_or(u64::MAX));
            }
            RateProcess::Poisson => {
                let mean = amount as f64 * 1e9 / rate as f64;
                let gap = exponential(rng) * mean;
                self.next = self.next.saturating_add(gap as u64);
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pace {
    limits: [Limit; 3],
    /// Whether directions are chosen by what is due.
    pub has_limits: bool,
    process: RateProcess,
    think_ns: u64,
    think_blocks: u64,
    think_io_ns: u64,
    counts_issues: bool,
    catches_up: bool,
    /// Requests since the last think time.
    since_think: u64,
    /// End of the last think time.
    thought_at: u64,
    rng: Xoshiro256PlusPlus,
}

impl Pace {
    pub fn new(job: &Job, seed: u64) -> Self {
        let limits =
            job.rate.map(|rate| Limit { bytes_per_s: rate.bytes_per_s, iops: rate.iops, ..Limit::default() });
        Self {
            limits,
            has_limits: limits.iter().any(Limit::is_set),
            process: job.rate_process,
            think_ns: job.think_ns,
            think_blocks: job.think_blocks,
            think_io_ns: job.think_io_ns,
            counts_issues: job.think_blocks_type == ThinkBlocks::Issue,
            catches_up: !job.rate_ignores_think,
            since_think: 0,
            thought_at: 0,
            rng: seeded(seed ^ u64::from(job.number).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x7061_6365),
        }
    }

    pub fn start(&mut self, now: u64) {
        for limit in &mut self.limits {
            (limit.origin, limit.next) = (now, now);
        }
        self.thought_at = now;
    }

    /// Which direction may go first and when, `wanted` having been chosen by the mix: a direction that is
    /// behind its rate goes before one that is ahead, as in fio.
    pub fn due(&self, wanted: Direction, other: Option<Direction>, now: u64) -> (Direction, u64) {
        let at = |d: Direction| {
            let limit = &self.limits[d as usize];
            if limit.is_set() { limit.next } else { 0 }
        };
        let first = at(wanted);
        match other {
            Some(other) if first > now && at(other) < first => (other, at(other)),
            _ => (wanted, first),
        }
    }

    #[inline]
    pub fn issue(&mut self, direction: Direction, bytes: u64) {
        if self.has_limits && self.limits[direction as usize].is_set() {
            self.limits[direction as usize].issue(bytes, self.process, &mut self.rng);
        }
        if self.counts_issues {
            self.since_think += 1;
        }
    }

    #[inline]
    pub const fn complete(&mut self) {
        if !self.counts_issues {
            self.since_think += 1;
        }
    }

    /// Whether it is time to think, with `inflight` requests outstanding.
    #[inline]
    pub const fn wants_to_think(&self, inflight: u32, now: u64) -> bool {
        if self.think_ns == 0 {
            return false;
        }
        if self.think_io_ns > 0 {
            return now - self.thought_at >= self.think_io_ns;
        }
        // Requests under way would complete the block count: no more are issued beyond it.
        let pending = if self.counts_issues { 0 } else { inflight as u64 };
        self.since_think + pending >= self.think_blocks
    }

    /// Thinks from `now`; gives the end.
    pub fn think(&mut self, now: u64) -> u64 {
        self.since_think = 0;
        let end = now.saturating_add(self.think_ns);
        self.thought_at = end;
        if !self.catches_up {
            for limit in &mut self.limits {
                limit.origin = limit.origin.saturating_add(self.think_ns);
                limit.next = limit.next.saturating_add(self.think_ns);
            }
        }
        end
    }
}
