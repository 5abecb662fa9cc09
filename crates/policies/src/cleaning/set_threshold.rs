//! Cleaning within a set that has too many dirty blocks.

use super::{Cleaning, Entry, Order, Plan, View, part};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    CLEAN_THRESHOLD: f64 = share() or "20%", "share of a set's slots above which it is cleaned";
    CLEAN_SET_WRITES: u32 = int(1, 1 << 20) or "2", "disk writes begun for a set at a time";
    CLEAN_WRITES: u32 = int(1, 1 << 20) or "4", "blocks under way to the disk at a time, of all sets";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "set-threshold",
        summary: "each set down to a share of dirty slots, a few blocks at a time",
        source: "FlashCache dirty_thresh_pct, max_clean_ios_set, max_clean_ios_total",
        params: PARAMS,
    },
    build: |setup| {
        let params = setup.params;
        Ok(Box::new(SetThreshold {
            threshold: part(setup.ways, params.get(CLEAN_THRESHOLD)),
            set_writes: params.get(CLEAN_SET_WRITES),
            writes: params.get(CLEAN_WRITES),
        }))
    },
};

/// The fullest set comes first; `FlashCache` takes the set that was just written, and arrives at the same
/// state once writes pause.
#[derive(Debug)]
struct SetThreshold {
    threshold: u32,
    set_writes: u32,
    writes: u32,
}

impl Cleaning for SetThreshold {
    fn plan(&mut self, view: &View) -> Plan {
        let Some((set, dirty)) = view.fullest.filter(|(_, dirty)| *dirty > self.threshold) else {
            return Plan::NONE;
        };
        let room = self.writes.saturating_sub(view.cleaning);
        let blocks = (dirty - self.threshold).min(room);
        Plan { set: Some(set), writes: self.set_writes, ..Plan::of(blocks, Order::Disk) }
    }
}
