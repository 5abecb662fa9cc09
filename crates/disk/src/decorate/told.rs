//! Somebody who is told of what happens to a store.

use super::pass_on;
use nandscape_core::command::Payload;
use nandscape_core::{Applied, BlockCommand, Clocked, Extent, Op, Store, StoreResult};

/// When [`Told`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// This command is about to change bytes, and waits meanwhile.
    BeforeWrite(Extent),
    /// What was written is durable: of a store that flushes when a flush is applied.
    Flushed,
}

/// A store that tells somebody of its writes and flushes.
pub struct Told {
    store: Box<dyn Store + Send>,
    tell: Box<dyn FnMut(Tell) + Send>,
}

impl Told {
    /// `tell` is called with the command in hand; it must not use the store.
    pub fn new(store: Box<dyn Store + Send>, tell: impl FnMut(Tell) + Send + 'static) -> Self {
        Self { store, tell: Box::new(tell) }
    }
}

impl Clocked for Told {
    nandscape_core::delegate_clock!(self, self.store);
}

impl Store for Told {
    pass_on!(self, self.store; shape, allocation, flash, start, counts, idle, shutdown, reset_counters);

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        if matches!(command.op, Op::Write | Op::Trim | Op::WriteZeroes) {
            (self.tell)(Tell::BeforeWrite(command.extent));
        }
        let applied = self.store.apply(command, payload)?;
        if command.op == Op::Flush {
            (self.tell)(Tell::Flushed);
        }
        Ok(applied)
    }
}
