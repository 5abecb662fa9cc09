//! A store that has two owners: a cache, and the test that looks at it.

use super::pass_on;
use nandscape_core::command::Payload;
use nandscape_core::{Applied, BlockCommand, Clocked, Store, StoreResult};
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle to a store. What is below is not shown as flash, whatever it is.
#[derive(Debug)]
pub struct Shared<S>(Arc<Mutex<S>>);

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Shared<S> {
    /// The first handle.
    pub fn new(store: S) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    /// The store itself, as long as the guard lives. Panics if a thread panicked while it had it.
    pub fn get(&self) -> MutexGuard<'_, S> {
        self.0.lock().expect("nobody panicked with the store in hand")
    }
}

impl<S: Store> Store for Shared<S> {
    pass_on!(self, self.get(); shape, start, submit, allocation, counts, idle, shutdown, reset_counters);

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        self.get().apply(command, payload)
    }
}

impl<S: Store> Clocked for Shared<S> {
    nandscape_core::delegate_clock!(self, self.get());
}
