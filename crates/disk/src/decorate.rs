//! Stores around stores: errors, cuts of power, and a handle to look inside.

mod cut;
mod failing;
mod overlay;
mod shared;
#[cfg(test)]
mod tests;
mod told;

pub use cut::{Cut, Fate};
pub use failing::{Failing, Fault, When};
pub use overlay::Overlay;
pub use shared::Shared;
pub use told::{Tell, Told};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts commands of several stores together, from 0, so that any moment between two has one number.
#[derive(Clone, Debug, Default)]
pub struct Operations(Arc<AtomicU64>);

impl Operations {
    /// Commands so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The number of a new command.
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// What is listed of an `impl Store`, left to another one: `pass_on!(self, self.store; shape, counts)`.
macro_rules! pass_on {
    ($this:ident, $inner:expr; $($method:ident),+) => {
        $(crate::decorate::pass_on!(@$method $this, $inner);)+
    };
    (@shape $this:ident, $inner:expr) => {
        fn shape(&$this) -> nandscape_core::StoreShape {
            $inner.shape()
        }
    };
    (@prepare $this:ident, $inner:expr) => {
        fn prepare(&$this, op: nandscape_core::Op, extent: nandscape_core::Extent) {
            $inner.prepare(op, extent);
        }
    };
    (@start $this:ident, $inner:expr) => {
        fn start(
            &mut $this,
            command: nandscape_core::BlockCommand,
            applied: nandscape_core::Applied,
            at: nandscape_core::SimTime,
        ) -> Result<nandscape_core::Token, nandscape_core::StoreError> {
            $inner.start(command, applied, at)
        }
    };
    (@submit $this:ident, $inner:expr) => {
        fn submit(
            &mut $this,
            command: nandscape_core::BlockCommand,
            payload: nandscape_core::command::Payload<'_>,
            at: nandscape_core::SimTime,
        ) -> Result<nandscape_core::Token, nandscape_core::StoreError> {
            $inner.submit(command, payload, at)
        }
    };
    (@allocation $this:ident, $inner:expr) => {
        fn allocation(&$this, extent: nandscape_core::Extent) -> nandscape_core::Allocation {
            $inner.allocation(extent)
        }
    };
    (@flash $this:ident, $inner:expr) => {
        fn flash(&$this) -> Option<&dyn nandscape_core::Subsystem> {
            $inner.flash()
        }
    };
    (@counts $this:ident, $inner:expr) => {
        fn counts(&$this) -> nandscape_core::command::HostCounts {
            $inner.counts()
        }
    };
    (@idle $this:ident, $inner:expr) => {
        fn idle(
            &mut $this,
            at: nandscape_core::SimTime,
            until: nandscape_core::SimTime,
        ) -> Result<(), nandscape_core::StoreError> {
            $inner.idle(at, until)
        }
    };
    (@shutdown $this:ident, $inner:expr) => {
        fn shutdown(
            &mut $this,
            at: nandscape_core::SimTime,
        ) -> Result<nandscape_core::Token, nandscape_core::StoreError> {
            $inner.shutdown(at)
        }
    };
    (@reset_counters $this:ident, $inner:expr) => {
        fn reset_counters(&mut $this, at: nandscape_core::SimTime) {
            $inner.reset_counters(at);
        }
    };
}
pub(crate) use pass_on;
