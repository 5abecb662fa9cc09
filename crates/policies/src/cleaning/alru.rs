//! A cleaner that wakes at intervals.

use super::{Cleaning, Entry, Needs, Order, Plan, View};
use nandscape_core::{Info, SimTime, keys};

keys! { PARAMS:
    ALRU_WAKE: u64 = time() or "20s", "sleep after a pass that left nothing stale";
    ALRU_STALE: u64 = time() or "120s", "time since its last write from which a block is cleaned";
    ALRU_BUFFERS: u32 = int(1, 10_000) or "100", "blocks of a pass";
    ALRU_ACTIVITY: u64 = time() or "10s", "time without a request before it works";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "alru",
        summary: "wakes at intervals, and if hosts are quiet cleans what was not written lately",
        source: "Open-CAS ALRU: wake_up, staleness_time, flush_max_buffers, activity_threshold",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        Ok(Box::new(Alru {
            wake: params.get(ALRU_WAKE),
            stale: params.get(ALRU_STALE),
            buffers: params.get(ALRU_BUFFERS),
            activity: params.get(ALRU_ACTIVITY),
            next: SimTime::ZERO,
        }))
    },
};

#[derive(Debug)]
struct Alru {
    wake: u64,
    stale: u64,
    buffers: u32,
    activity: u64,
    next: SimTime,
}

impl Cleaning for Alru {
    fn plan(&mut self, view: &View) -> Plan {
        let Some(oldest) = view.oldest else { return Plan::NONE };
        if view.at < self.next {
            return Plan { again: Some(self.next), ..Plan::NONE };
        }
        let is_quiet = view.at.since(view.last_request).0 >= self.activity;
        if !is_quiet || view.at < oldest + self.stale {
            self.next = SimTime(view.at.0.saturating_add(self.wake.max(1)));
            return Plan { again: Some(self.next), ..Plan::NONE };
        }
        // The next pass follows when this one is written.
        let blocks = if view.cleaning == 0 { self.buffers } else { 0 };
        Plan { until: Some(SimTime(view.at.0 - self.stale)), ..Plan::of(blocks, Order::Oldest) }
    }

    fn needs(&self) -> Needs {
        Needs::SinceWritten
    }
}
