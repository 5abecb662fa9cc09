//! Sets in which nothing has become dirty for long.

use super::{Cleaning, Entry, Needs, Order, Plan, View};
use nandscape_core::{Info, SimTime, keys};

keys! { PARAMS:
    SET_AGE: u64 = time() or "60s",
        "time since a block of a set became dirty last from which the whole set is cleaned, and time between two passes; 0s: never";
    SET_AGE_PER: Option<u64> = size(1, 1 << 50),
        "size of a cache for which that time holds; it is twice as long with twice the size. Absent: any";
    SET_AGE_BATCH: u32 = int(1, 1 << 20) or "64", "blocks under way to the disk at a time";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "set-age",
        summary: "at intervals, every set in which no block became dirty for as long",
        source: "EnhanceIO time_based_clean_interval (eio_clean_aged_sets); not put off above autoclean_threshold",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        let bytes = u64::from(setup.slots) * u64::from(setup.block_bytes);
        // In whole multiples, as the original counts 16 GiB.
        let times = params.get(SET_AGE_PER).map_or(1, |per| (bytes / per).max(1));
        Ok(Box::new(SetAge {
            age: params.get(SET_AGE).saturating_mul(times),
            batch: params.get(SET_AGE_BATCH),
            pass: None,
        }))
    },
};

/// A pass cleans the sets that are old enough when it begins, so a set is cleaned one to two intervals after
/// a block of it became dirty last.
#[derive(Debug)]
struct SetAge {
    age: u64,
    batch: u32,
    /// The pass that goes on, or the next one that finds something; `None` before anything is dirty.
    pass: Option<SimTime>,
}

impl Cleaning for SetAge {
    fn plan(&mut self, view: &View) -> Plan {
        let Some((set, since)) = view.oldest_set.filter(|_| self.age > 0) else { return Plan::NONE };
        let due = SimTime(since.0.saturating_add(self.age));
        let pass = self.pass.get_or_insert(due);
        // The oldest set only ever gets younger, so no pass that is left out would have found one.
        let intervals = due.0.saturating_sub(pass.0).div_ceil(self.age);
        pass.0 = pass.0.saturating_add(intervals.saturating_mul(self.age));
        if view.at < *pass {
            return Plan { again: Some(*pass), ..Plan::NONE };
        }
        let until = Some(SimTime(pass.0 - self.age));
        let room = self.batch.saturating_sub(view.cleaning);
        Plan { set: Some(set), until, ..Plan::of(room, Order::Disk) }
    }

    fn needs(&self) -> Needs {
        if self.age > 0 { Needs::OfSets } else { Needs::NoAges }
    }
}
