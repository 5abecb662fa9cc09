//! Everything, as soon as nobody asks for anything.

use super::{Cleaning, Entry, Order, Plan, View};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    SMQ_IDLE: u64 = time() or "1s", "time without a request after which the cache is idle";
    SMQ_MIGRATION: u64 = size(1, 1 << 40) or "1MiB", "bytes under way to the disk at a time";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "smq",
        summary: "everything while idle, least useful first, nothing while busy",
        source: "dm-cache, policy smq in Linux 6.1 with migration_threshold",
        params: PARAMS,
    },
    build: |setup| {
        let blocks = setup.params.get(SMQ_MIGRATION) / u64::from(setup.block_bytes);
        Ok(Box::new(Smq {
            idle: setup.params.get(SMQ_IDLE),
            room: u32::try_from(blocks.max(1)).unwrap_or(u32::MAX),
        }))
    },
};

#[derive(Debug)]
struct Smq {
    idle: u64,
    room: u32,
}

impl Cleaning for Smq {
    fn plan(&mut self, view: &View) -> Plan {
        let left = view.dirty.saturating_sub(view.cleaning);
        let start = view.last_request + self.idle;
        if left == 0 {
            return Plan::NONE;
        }
        if view.at < start {
            return Plan { again: Some(start), ..Plan::NONE };
        }
        Plan::of(left.min(self.room.saturating_sub(view.cleaning)), Order::Eviction)
    }
}
