//! Cleaning from a high share of dirty blocks down to a low one.

use super::{Cleaning, Entry, Needs, Order, Plan, View, part};
use nandscape_core::{Info, Param, ParamKind, SimTime};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "watermarks",
        summary: "from a high share of dirty slots down to a low one, of all and of each set, and whatever is too old",
        source: "dm-writecache high_watermark and low_watermark (50, 45); EnhanceIO dirty thresholds (30, 10; sets 100, 30)",
        params: &[
            Param {
                name: "clean_high",
                summary: "share of dirty slots at which cleaning begins",
                kind: ParamKind::Share,
                default: "50%",
            },
            Param {
                name: "clean_low",
                summary: "share of dirty slots at which it ends",
                kind: ParamKind::Share,
                default: "45%",
            },
            Param {
                name: "clean_set_high",
                summary: "the same for a set",
                kind: ParamKind::Share,
                default: "100%",
            },
            Param {
                name: "clean_set_low",
                summary: "the same for a set",
                kind: ParamKind::Share,
                default: "95%",
            },
            Param {
                name: "clean_max_age",
                summary: "blocks dirty for longer are cleaned regardless; 0s: no limit",
                kind: ParamKind::Time,
                default: "0s",
            },
            Param {
                name: "clean_batch",
                summary: "blocks under way to the disk at a time",
                kind: ParamKind::Int { min: 1, max: 1 << 20 },
                default: "64",
            },
        ],
    },
    build: |setup| {
        let params = setup.params;
        let pair = |high: &str, low: &str, of| {
            if params.share(low) > params.share(high) {
                return Err(params.error(low, format!("no more than {high}, which is {}", params.text(high))));
            }
            Ok(Marks { high: part(of, params.share(high)), low: part(of, params.share(low)), is_on: false })
        };
        Ok(Box::new(Watermarks {
            all: pair("clean_high", "clean_low", setup.slots)?,
            sets: pair("clean_set_high", "clean_set_low", setup.ways)?,
            max_age: params.time_ns("clean_max_age"),
            batch: params.int32("clean_batch"),
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
