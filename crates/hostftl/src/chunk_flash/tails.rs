//! The last pages of open chunks, which the device does not give back yet
//! ([`nandscape_core::vector::VectorGeometry::cached`]).

use nandscape_core::{BlockId, Oob};
use std::collections::{BTreeMap, VecDeque};

/// By block: the last pages, each with its OOB and its bytes (none where none are kept).
#[derive(Debug)]
pub(super) struct Tails {
    pages: u32,
    blocks: BTreeMap<BlockId, VecDeque<(Oob, Vec<u8>)>>,
}

impl Tails {
    /// Of so many pages at most.
    pub const fn new(pages: u32) -> Self {
        Self { pages, blocks: BTreeMap::new() }
    }

    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// A page was written to a block.
    pub fn push(&mut self, block: BlockId, oob: Oob, data: Option<&[u8]>) {
        if self.pages == 0 {
            return;
        }
        let tail = self.blocks.entry(block).or_default();
        // The bytes of the page that leaves hold those of the one that comes.
        let mut bytes = if tail.len() < self.pages as usize {
            Vec::new()
        } else {
            tail.pop_front().map_or_else(Vec::new, |(_, bytes)| bytes)
        };
        bytes.clear();
        bytes.extend_from_slice(data.unwrap_or_default());
        tail.push_back((oob, bytes));
    }

    /// A page, so many before the last.
    pub fn get(&self, block: BlockId, before_last: u32) -> Option<(Oob, &[u8])> {
        let tail = self.blocks.get(&block)?;
        let at = tail.len().checked_sub(before_last as usize + 1)?;
        tail.get(at).map(|(oob, bytes)| (*oob, bytes.as_slice()))
    }

    /// Everything of a block can be read, or is gone.
    pub fn drop_block(&mut self, block: BlockId) {
        self.blocks.remove(&block);
    }
}
