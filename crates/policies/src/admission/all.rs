//! Everything is cached.

use super::{Admission, Ask, Bypass, Entry};
use nandscape_core::Info;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "all",
        summary: "whatever the mode caches",
        source: "the default of FIU dm-cache, EnhanceIO and RapidDisk-Cache",
        params: &[],
    },
    build: |_| Ok(Box::new(All)),
};

#[derive(Debug)]
struct All;

impl Admission for All {
    fn request(&mut self, _: &Ask) -> Result<(), Bypass> {
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}
