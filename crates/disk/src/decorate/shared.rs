//! A store that has two owners: a cache, and the test that looks at it.

use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Applied, BlockCommand, Clocked, Extent, SimTime, Store, StoreError, StoreShape, Token,
};
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

    /// The store itself, as long as the guard lives.
    ///
    /// # Panics
    /// If a thread panicked while it had it.
    pub fn get(&self) -> MutexGuard<'_, S> {
        self.0.lock().expect("nobody panicked with the store in hand")
    }
}

impl<S: Store> Store for Shared<S> {
    fn shape(&self) -> StoreShape {
        self.get().shape()
    }

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> Result<Applied, StoreError> {
        self.get().apply(command, payload)
    }

    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> Result<Token, StoreError> {
        self.get().start(command, applied, at)
    }

    fn submit(
        &mut self,
        command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, StoreError> {
        self.get().submit(command, payload, at)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        self.get().allocation(extent)
    }

    fn counts(&self) -> HostCounts {
        self.get().counts()
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), StoreError> {
        self.get().idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, StoreError> {
        self.get().shutdown(at)
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.get().reset_counters(at);
    }
}

impl<S: Store> Clocked for Shared<S> {
    nandscape_core::delegate_clock!(self, self.get());
}
