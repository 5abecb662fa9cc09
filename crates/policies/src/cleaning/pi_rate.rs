//! A controller that holds the dirty share at a target.

use super::{Cleaning, Entry, Order, Plan, View, part};
use nandscape_core::{Info, SimTime, keys};

keys! { PARAMS:
    RATE_TARGET: f64 = share() or "10%", "share of dirty slots that is aimed at";
    RATE_P_INVERSE: f64 = float(0.001, 1e9) or "40",
        "seconds in which the proportional term alone would remove the excess";
    RATE_I_INVERSE: f64 = float(0.001, 1e12) or "10000",
        "inverse of the integral term's gain, in seconds squared";
    RATE_UPDATE: u64 = time() or "5s", "time between two settings of the rate";
    RATE_MIN: u64 = size(1, 1 << 50) or "4KiB", "lowest rate, in bytes a second";
    RATE_MAX: Option<u64> = size(1, 1 << 50),
        "highest rate, in bytes a second, at which the integral stops growing too; absent: none";
    RATE_IDLE: u64 = time() or "30s",
        "time without a request after which the rate is rate_idle_max; 0s: never";
    RATE_IDLE_MAX: Option<u64> = size(1, 1 << 50),
        "the rate while no requests come, in bytes a second; absent: no limit, as published";
    RATE_BATCH: u32 = int(1, 1 << 16) or "16", "blocks begun together, neighbours in one write";
    RATE_IN_TURN: bool = flag() or "false",
        "blocks begun together are read from the cache one after the other, so that hosts do not wait for \
         many reads at once";
    RATE_HIGH: f64 = share() or "100%",
        "share of dirty slots above which no rate is kept until it is 5 % of the slots less, as long as \
         blocks wait for slots; 100%: never, as published";
    RATE_HIGH_AFTER: u64 = time() or "1s",
        "how long after a block that waited for a slot, or went past the cache, no rate is kept";
    RATE_HIGH_BATCH: u32 = int(1, 1 << 20) or "128", "blocks under way to the disk meanwhile";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "pi-rate",
        summary: "a rate that a proportional-integral controller sets so that a target share stays dirty",
        source: "bcache in Linux 6.1: writeback_percent, writeback_rate_p_term_inverse, writeback_rate_i_term_inverse, writeback_rate_update_seconds",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        let block = f64::from(setup.block_bytes);
        let max = params.get(RATE_MAX).map_or(f64::INFINITY, |rate| rate as f64 / block);
        let min = params.get(RATE_MIN) as f64 / block;
        if max < min {
            let expected = format!("no less than rate_min, which is {}", params.text(RATE_MIN));
            return Err(params.error(RATE_MAX, expected));
        }
        if params.get(RATE_UPDATE) == 0 {
            return Err(params.error(RATE_UPDATE, "more than 0s"));
        }
        let high = params.get(RATE_HIGH);
        Ok(Box::new(PiRate {
            target: f64::from(part(setup.slots, params.get(RATE_TARGET))),
            inverse: [params.get(RATE_P_INVERSE), params.get(RATE_I_INVERSE)],
            update: params.get(RATE_UPDATE),
            bounds: [min, max],
            idle: params.get(RATE_IDLE),
            idle_rate: params.get(RATE_IDLE_MAX).map(|rate| rate as f64 / block),
            batch: params.get(RATE_BATCH),
            in_turn: params.get(RATE_IN_TURN),
            high: if high < 1.0 { part(setup.slots, high) } else { u32::MAX },
            low: part(setup.slots, high).saturating_sub(part(setup.slots, HIGH_TO_LOW)),
            high_batch: params.get(RATE_HIGH_BATCH),
            high_after: params.get(RATE_HIGH_AFTER),
            rate: min,
            ..PiRate::default()
        }))
    },
};

/// What of all slots lies between the share above which no rate is kept and the one at which it is again.
const HIGH_TO_LOW: f64 = 0.05;

/// How far the pacing may fall behind and run ahead: 2 and 2.5 s, as published.
const BEHIND_NS: u64 = 2_000_000_000;
const AHEAD_NS: u64 = 2_500_000_000;
/// Not more behind than this counts as keeping up.
const SLACK_NS: u64 = 1_000_000;

/// Blocks instead of sectors, and real numbers instead of whole ones; else as published: the error is what is
/// dirty beyond the target; its integral grows only while the disk keeps up with the rate that is set, and
/// shrinks only while it is positive. Ours are the upper bound, which also ends the integral's growth, and
/// the share above which no rate is kept while there is somebody whom it helps: writes that hit make a block
/// dirty again as soon as it is clean, and wait for nothing. Not taken over: the delay after the first dirty
/// block, and the terms for fragmented buckets, since slots do not fragment.
#[derive(Debug, Default)]
struct PiRate {
    target: f64,
    /// Proportional, integral.
    inverse: [f64; 2],
    update: u64,
    /// Lowest and highest rate, in blocks a second.
    bounds: [f64; 2],
    idle: u64,
    /// Blocks a second while no requests come; `None`: no limit.
    idle_rate: Option<f64>,
    batch: u32,
    in_turn: bool,
    /// Dirty blocks above which no rate is kept, down to how many, and how many are under way then.
    high: u32,
    low: u32,
    high_batch: u32,
    is_high: bool,
    /// Of [`View::waited`], what was seen, and until when it counts, which is so long after.
    waited: u64,
    wanted_until: SimTime,
    high_after: u64,
    rate: f64,
    /// Blocks times seconds.
    integral: f64,
    update_at: SimTime,
    /// From when on the next blocks may start.
    next: SimTime,
    /// Of [`View::started`], what `next` accounts for.
    charged: u64,
}

impl PiRate {
    fn control(&mut self, view: &View) {
        let error = f64::from(view.dirty) - self.target;
        let keeps_up = view.at.0 < self.next.0.saturating_add(SLACK_NS);
        let proportional = error / self.inverse[0];
        if (error < 0.0 && self.integral > 0.0) || (error > 0.0 && keeps_up) {
            let most = (self.bounds[1] - proportional).max(0.0) * self.inverse[1];
            let grown = self.integral + error * self.update as f64 / 1e9;
            self.integral = grown.min(most.max(self.integral));
        }
        let rate = proportional + self.integral / self.inverse[1];
        self.rate = rate.clamp(self.bounds[0], self.bounds[1]);
    }

    /// Accounts for what was begun since the last time.
    fn charge(&mut self, view: &View, is_idle: bool) {
        let begun = view.started - self.charged;
        self.charged = view.started;
        if begun > 0 {
            let rate = self.idle_rate.filter(|_| is_idle).unwrap_or(self.rate);
            let took = (begun as f64 / rate * 1e9) as u64;
            let next = self.next.0.saturating_add(took);
            self.next = SimTime(next.clamp(view.at.0.saturating_sub(BEHIND_NS), view.at.0 + AHEAD_NS));
        }
    }
}

impl Cleaning for PiRate {
    fn plan(&mut self, view: &View) -> Plan {
        let is_idle = self.idle > 0 && view.at.since(view.last_request).0 >= self.idle;
        self.charge(view, is_idle);
        let left = view.dirty.saturating_sub(view.cleaning);
        if view.at >= self.update_at {
            self.control(view);
            self.update_at = view.at + self.update;
        }
        if view.dirty == 0 {
            // There was nothing to do, which is not falling behind.
            self.next = self.next.max(view.at);
            return Plan { again: (self.integral > 0.0).then_some(self.update_at), ..Plan::NONE };
        }
        if view.waited != self.waited {
            (self.waited, self.wanted_until) = (view.waited, view.at + self.high_after);
        }
        let is_wanted = self.waited > 0 && view.at <= self.wanted_until;
        self.is_high = is_wanted && left > self.low && (self.is_high || left > self.high);
        if self.is_high {
            self.next = self.next.min(view.at);
            // Some at a time, since what is asked for block by block would be written so.
            let room = self.high_batch.saturating_sub(view.cleaning);
            let blocks = if room >= self.high_batch.div_ceil(4) { room.min(left - self.low) } else { 0 };
            return Plan { again: Some(self.update_at), ..Plan::of(blocks, Order::Disk) };
        }
        if is_idle {
            // What was not used of the rate is not saved up.
            self.next = if self.idle_rate.is_some() { self.next.max(view.at) } else { view.at };
        }
        let is_due = view.at >= self.next;
        let room = self.batch.saturating_sub(view.cleaning);
        let again = if is_due { self.update_at } else { self.next.min(self.update_at) };
        let blocks = if is_due { left.min(room) } else { 0 };
        Plan { again: Some(again), in_turn: self.in_turn, ..Plan::of(blocks, Order::Disk) }
    }
}
