//! A store that is not to be changed: what is written is kept in memory.

use super::pass_on;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{Applied, BlockCommand, Clocked, Extent, Op, SimTime, Store, StoreResult, Token};
use std::collections::BTreeMap;

/// A store over another one that is only read. Blocks that are written, trimmed or zeroed are kept in memory
/// and are gone with it; so it is for few of them.
pub struct Overlay {
    store: Box<dyn Store + Send>,
    written: BTreeMap<u64, Box<[u8]>>,
    counts: HostCounts,
}

impl Overlay {
    /// Nothing is written yet. Panics if the store keeps no bytes.
    pub fn new(store: Box<dyn Store + Send>) -> Self {
        assert!(store.stores_bytes(), "a store without bytes has nothing to keep");
        Self { store, written: BTreeMap::new(), counts: HostCounts::default() }
    }

    fn blocks(&self, extent: Extent) -> std::ops::Range<u64> {
        let block = u64::from(self.store.block_bytes());
        extent.offset / block..extent.end().div_ceil(block)
    }
}

impl Clocked for Overlay {
    nandscape_core::delegate_clock!(self, self.store);
}

impl Store for Overlay {
    pass_on!(self, self.store; shape, allocation, flash);

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        let block = self.store.block_bytes();
        self.counts.count(command, block);
        if command.op == Op::Flush {
            return Ok(Applied::default());
        }
        crate::base::check(command.extent, self.store.capacity_bytes(), block)?;
        let blocks = self.blocks(command.extent);
        match (command.op, payload) {
            (Op::Read, Payload::Read(data)) => {
                self.store.apply(command, Payload::Read(data))?;
                for (number, bytes) in self.written.range(blocks.clone()) {
                    let at = (number - blocks.start) as usize * block as usize;
                    data[at..at + block as usize].copy_from_slice(bytes);
                }
            }
            (Op::Read, _) => {}
            (Op::Write, Payload::Write(data)) => {
                for (number, bytes) in blocks.zip(data.chunks(block as usize)) {
                    self.written.insert(number, bytes.into());
                }
            }
            _ => {
                for number in blocks {
                    self.written.insert(number, vec![0; block as usize].into());
                }
            }
        }
        Ok(Applied::default())
    }

    /// Takes no time, whatever it is over.
    fn start(&mut self, _: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        Ok(Token(at.0))
    }

    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn idle(&mut self, _: SimTime, _: SimTime) -> StoreResult<()> {
        Ok(())
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        Ok(Token(at.0))
    }

    fn reset_counters(&mut self, _: SimTime) {
        self.counts = HostCounts::default();
    }
}
