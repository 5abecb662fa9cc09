//! Cleaning from a high share of dirty blocks down to a low one.

use super::{Cleaning, Entry, Needs, Order, Plan, View, part};
use nandscape_core::{Info, Key, SimTime, keys};

keys! { PARAMS:
    CLEAN_HIGH: f64 = share() or "50%", "share of dirty slots at which cleaning begins";
    CLEAN_LOW: f64 = share() or "45%", "share of dirty slots at which it ends";
    CLEAN_SET_HIGH: f64 = share() or "100%", "the same for a set";
    CLEAN_SET_LOW: f64 = share() or "95%", "the same for a set";
    CLEAN_MAX_AGE: u64 = time() or "0s", "blocks dirty for longer are cleaned regardless; 0s: no limit";
    CLEAN_BATCH: u32 = int(1, 1 << 20) or "64", "blocks under way to the disk at a time";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "watermarks",
        summary: "from a high share of dirty slots down to a low one, of all and of each set, and whatever is too old",
        source: "dm-writecache high_watermark and low_watermark (50, 45); EnhanceIO dirty thresholds (30, 10; sets 100, 30)",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        let pair = |high: Key<f64>, low: Key<f64>, of| {
            if params.get(low) > params.get(high) {
                return Err(params.error(
                    low,
                    format!("no more than {}, which is {}", high.param.name, params.text(high)),
                ));
            }
            Ok(Marks { high: part(of, params.get(high)), low: part(of, params.get(low)), is_on: false })
        };
        Ok(Box::new(Watermarks {
            all: pair(CLEAN_HIGH, CLEAN_LOW, setup.slots)?,
            sets: pair(CLEAN_SET_HIGH, CLEAN_SET_LOW, setup.ways)?,
            max_age: params.get(CLEAN_MAX_AGE),
            batch: params.get(CLEAN_BATCH),
        }))
    },
};

/// Above `high` it switches on, at `low` off.
#[derive(Debug)]
struct Marks {
    high: u32,
    low: u32,
    is_on: bool,
}

impl Marks {
    /// How many are too many.
    fn excess(&mut self, dirty: u32) -> u32 {
        self.is_on = dirty > self.low && (self.is_on || dirty > self.high);
        if self.is_on { dirty - self.low } else { 0 }
    }
}

/// What is under way counts as clean already. The sets are looked at one at a time, the fullest first, each
/// time anew.
#[derive(Debug)]
struct Watermarks {
    all: Marks,
    sets: Marks,
    max_age: u64,
    batch: u32,
}

impl Cleaning for Watermarks {
    fn plan(&mut self, view: &View) -> Plan {
        let room = self.batch.saturating_sub(view.cleaning);
        let excess = self.all.excess(view.dirty.saturating_sub(view.cleaning));
        let mut plan = Plan::of(excess.min(room), Order::Disk);
        if let Some((set, dirty)) = view.fullest.filter(|_| excess == 0 && view.ways < view.slots) {
            let excess = self.sets.excess(dirty.saturating_sub(view.cleaning));
            (plan.blocks, plan.set) = (excess.min(room), (excess > 0).then_some(set));
        }
        let Some(oldest) = view.oldest.filter(|_| plan.blocks == 0 && self.max_age > 0) else { return plan };
        if view.at.since(oldest).0 >= self.max_age {
            let until = Some(SimTime(view.at.0 - self.max_age));
            return Plan { until, ..Plan::of(room, Order::Oldest) };
        }
        Plan { again: Some(oldest + self.max_age), ..plan }
    }

    fn needs(&self) -> Needs {
        if self.max_age > 0 { Needs::SinceDirty } else { Needs::NoAges }
    }
}
