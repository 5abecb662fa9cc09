//! Blocks that nobody has written for long.

use super::{Cleaning, Entry, Needs, Order, Plan, View};
use nandscape_core::{Info, SimTime, keys};

keys! { PARAMS:
    FALLOW_DELAY: u64 = time() or "900s", "age from which a block is cleaned";
    FALLOW_SPEED: u64 = int(1, 1 << 20) or "2", "blocks of each set that are cleaned in a second";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "idle-age",
        summary: "blocks not written for a time, so many a second of each set",
        source: "FlashCache fallow_delay and fallow_clean_speed; age from the last write instead of two marking passes",
        params: PARAMS,
    },
    build: |setup| {
        let sets = u64::from(setup.slots / setup.ways);
        Ok(Box::new(IdleAge {
            delay: setup.params.get(FALLOW_DELAY),
            interval: (1_000_000_000 / (setup.params.get(FALLOW_SPEED) * sets)).max(1),
            next: SimTime::ZERO,
            charged: 0,
        }))
    },
};

#[derive(Debug)]
struct IdleAge {
    delay: u64,
    /// Between two blocks, in nanoseconds.
    interval: u64,
    /// From when on the next may start.
    next: SimTime,
    /// Of [`View::started`], what `next` accounts for.
    charged: u64,
}

impl Cleaning for IdleAge {
    fn plan(&mut self, view: &View) -> Plan {
        let begun = view.started - self.charged;
        self.charged = view.started;
        self.next = SimTime(self.next.0.saturating_add(begun.saturating_mul(self.interval)));
        let Some(oldest) = view.oldest else { return Plan::NONE };
        let due = oldest + self.delay;
        let start = due.max(self.next);
        if view.at < start {
            return Plan { again: Some(start), ..Plan::NONE };
        }
        // What was not used of the speed is not saved up.
        self.next = view.at;
        Plan {
            until: Some(SimTime(view.at.0 - self.delay)),
            again: Some(view.at + self.interval),
            ..Plan::of(1, Order::Oldest)
        }
    }

    fn needs(&self) -> Needs {
        Needs::SinceWritten
    }
}
