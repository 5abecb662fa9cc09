//! What stands for a volume that was taken off, while others with higher numbers are still there.

use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Applied, BlockCommand, Clocked, Op, SimTime, Store, StoreError, StoreResult, StoreShape, Token,
};

/// A store that has nothing to give and takes nothing.
pub(super) struct Hole {
    pub(super) bytes: u64,
    pub(super) keeps_bytes: bool,
}

impl Store for Hole {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.bytes,
            block_bytes: 512,
            stores_bytes: self.keeps_bytes,
            regions: None,
        }
    }

    fn apply(&mut self, command: BlockCommand, _: Payload<'_>) -> StoreResult<Applied> {
        match command.op {
            Op::Flush => Ok(Applied::default()),
            _ => Err(StoreError::Gone { detail: "the volume was taken off".to_owned() }),
        }
    }

    fn start(&mut self, _: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        Ok(Token(at.0))
    }

    fn counts(&self) -> HostCounts {
        HostCounts::default()
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        Ok(Token(at.0))
    }

    fn reset_counters(&mut self, _: SimTime) {}
}

impl Clocked for Hole {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}
