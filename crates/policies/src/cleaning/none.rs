//! Nothing is cleaned before its slot is needed.

use super::{Cleaning, Entry, Plan, View};
use nandscape_core::Info;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "none",
        summary: "dirty blocks stay until they are evicted or the cache is detached",
        source: "FIU dm-cache, Open-CAS nop",
        params: &[],
    },
    build: |_| Ok(Box::new(None)),
};

#[derive(Debug)]
struct None;

impl Cleaning for None {
    fn plan(&mut self, _: &View) -> Plan {
        Plan::NONE
    }
}
