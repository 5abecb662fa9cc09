//! No more dirty blocks once too many are.

use super::{Admission, Ask, Bypass, Entry, Room};
use crate::key::BlockKey;
use nandscape_core::{Info, Op, keys};

keys! { PARAMS:
    CUTOFF_DIRTY: f64 = share() or "70%",
        "share of dirty slots from which on no further block is taken in to become dirty; 100%: when all are";
    CUTOFF_LARGE: u64 = size(0, 1 << 50) or "0",
        "bytes of a request from which on cutoff_large_dirty holds for it, if that is less; 0: never";
    CUTOFF_LARGE_DIRTY: f64 = share() or "50%",
        "the same share for large requests, of which a disk takes nearly as much without a cache";
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "dirty-cutoff",
        summary: "writes of blocks that are not cached go to the disk while too many slots are dirty",
        source: "bcache in Linux 6.1: CUTOFF_WRITEBACK_SYNC (70) and CUTOFF_WRITEBACK (40, of writes that nobody waits for)",
        params: PARAMS,
    },
    build: |setup| {
        Ok(Box::new(DirtyCutoff {
            share: setup.params.get(CUTOFF_DIRTY),
            large: match setup.params.get(CUTOFF_LARGE) {
                0 => u64::MAX,
                bytes => bytes,
            },
            large_share: setup.params.get(CUTOFF_LARGE_DIRTY).min(setup.params.get(CUTOFF_DIRTY)),
            is_large: false,
            is_above: None,
            refused: 0,
        }))
    },
};

/// A block that is cached is none of this policy's business: a write of it stays in the cache, whatever the
/// share. In bcache what is above the cut-off goes to the disk and into the cache.
#[derive(Debug)]
struct DirtyCutoff {
    share: f64,
    /// From how many bytes on the other share holds.
    large: u64,
    large_share: f64,
    /// Whether the request under way is as large.
    is_large: bool,
    /// What was found for the first block of the request under way. All of its blocks go the same way, so
    /// that the disk gets it in one piece, now or later.
    is_above: Option<bool>,
    refused: u64,
}

impl Admission for DirtyCutoff {
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass> {
        (self.is_large, self.is_above) = (ask.extent.len >= self.large, None);
        Ok(())
    }

    fn block(&mut self, _: BlockKey, _: Op, room: Room) -> Result<(), Bypass> {
        if !room.makes_dirty {
            return Ok(());
        }
        let share = if self.is_large { self.large_share } else { self.share };
        let is_above =
            self.is_above.get_or_insert_with(|| f64::from(room.dirty) >= share * f64::from(room.slots));
        if !*is_above {
            return Ok(());
        }
        self.refused += 1;
        Err(Bypass::Dirty)
    }

    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        out.push(("cutoff_dirty_blocks", self.refused));
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}
