//! Everything, whether hosts are busy or not.

use super::{Cleaning, Entry, Order, Plan, View};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    CLEANER_MIGRATION: u64 = size(1, 1 << 40) or "1MiB", "bytes under way to the disk at a time";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "cleaner",
        summary: "everything at once, under load too: to take a cache away",
        source: "dm-cache, policy cleaner in Linux with migration_threshold",
        params: PARAMS,
    },
    build: |setup| {
        let blocks = setup.params.get(CLEANER_MIGRATION) / u64::from(setup.block_bytes);
        Ok(Box::new(Cleaner { room: u32::try_from(blocks.max(1)).unwrap_or(u32::MAX) }))
    },
};

/// A cleaning policy only chooses what is written back. So host writes still make blocks dirty, which are
/// cleaned in turn, and misses still bring blocks in. The kernel's policy admits no block; here the mode
/// decides that (`write-through` makes nothing dirty, `pass-through` also admits nothing).
#[derive(Debug)]
struct Cleaner {
    room: u32,
}

impl Cleaning for Cleaner {
    fn plan(&mut self, view: &View) -> Plan {
        let left = view.dirty.saturating_sub(view.cleaning);
        Plan::of(left.min(self.room.saturating_sub(view.cleaning)), Order::Disk)
    }
}
