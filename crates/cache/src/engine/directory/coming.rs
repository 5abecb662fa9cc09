//! What commands to come will need is loaded in steps, since where each step leads is known only when what
//! the one before asked for is there.

use super::Directory;
use nandscape_core::{Extent, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;
use std::cell::Cell;

/// Calls after which a key's bucket is there, and its slot's record.
const BUCKET: u32 = 3;
const RECORD: u32 = 6;
const KEPT: usize = 8;

/// The first blocks of the last calls, and what is to be done with them.
#[derive(Debug)]
pub struct Coming {
    blocks: [Cell<(BlockKey, Op)>; KEPT],
    calls: Cell<u32>,
}

impl Coming {
    pub fn new() -> Self {
        let none = (BlockKey::new(0, 0), Op::Flush);
        Self { blocks: std::array::from_fn(|_| Cell::new(none)), calls: Cell::new(0) }
    }

    const fn at(&self, call: u32) -> &Cell<(BlockKey, Op)> {
        &self.blocks[call as usize % KEPT]
    }
}

impl<E: Eviction> Directory<E> {
    /// Such a command will come soon, after those of earlier calls: what is looked up for its first block may
    /// come nearer in the meantime. Gives what is to be read soon from the fast store.
    pub fn look_ahead(&self, volume: u16, op: Op, extent: Extent) -> Option<Extent> {
        let (first, _) = self.shape.blocks(extent);
        let key = BlockKey::new(volume, first);
        let (coming, call) = (&self.coming, self.coming.calls.get());
        self.index.prepare(key);
        let (in_bucket, _) = coming.at(call.wrapping_sub(BUCKET)).get();
        if let Some(slot) = self.index.guess(in_bucket) {
            self.slots.prepare(slot);
        }
        // What is written goes to another slot.
        let (with_record, then) = coming.at(call.wrapping_sub(RECORD)).get();
        let data = if then == Op::Read { self.index.guess(with_record) } else { None };
        coming.at(call).set((key, op));
        coming.calls.set(call.wrapping_add(1));
        data.map(|slot| self.place(slot, 0, 0))
    }
}
