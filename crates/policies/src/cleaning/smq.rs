//! Everything, as soon as nobody asks for anything.

use super::{Cleaning, Entry, Order, Plan, View};
use nandscape_core::{Info, Param, ParamKind};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "smq",
        summary: "everything while idle, least useful first, nothing while busy",
        source: "dm-cache, policy smq in Linux 6.1 with migration_threshold",
        params: &[
            Param {
                name: "smq_idle",
                summary: "time without a request after which the cache is idle",
                kind: ParamKind::Time,
                default: "1s",
            },
            Param {
                name: "smq_migration",
                summary: "bytes under way to the disk at a time",
                kind: ParamKind::Size { min: 1, max: 1 << 40 },
                default: "1MiB",
            },
        ],
    },
    build: |setup| {
        let blocks = setup.params.size("smq_migration") / u64::from(setup.block_bytes);
        Ok(Box::new(Smq {
            idle: setup.params.time_ns("smq_idle"),
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
