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

/// Counts the commands of several stores together, from 0, so that a moment between two commands of either
/// side of a cache has one number.
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

/// Methods of a store around another one, in a field, that does them as that one does.
macro_rules! pass_on {
    ($field:ident: $($method:ident),*) => {
        $($crate::decorate::pass_on!(@$method $field);)*
    };
    (@shape $field:ident) => {
        fn shape(&self) -> nandscape_core::StoreShape {
            self.$field.shape()
        }
    };
    (@allocation $field:ident) => {
        fn allocation(&self, extent: nandscape_core::Extent) -> nandscape_core::Allocation {
            self.$field.allocation(extent)
        }
    };
    (@flash $field:ident) => {
        fn flash(&self) -> Option<&dyn nandscape_core::Subsystem> {
            self.$field.flash()
        }
    };
    (@start $field:ident) => {
        fn start(&mut self, command: Command, applied: Applied, at: SimTime) -> Result<Token, StoreError> {
            self.$field.start(command, applied, at)
        }
    };
    (@counts $field:ident) => {
        fn counts(&self) -> nandscape_core::command::HostCounts {
            self.$field.counts()
        }
    };
    (@idle $field:ident) => {
        fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), StoreError> {
            self.$field.idle(at, until)
        }
    };
    (@shutdown $field:ident) => {
        fn shutdown(&mut self, at: SimTime) -> Result<Token, StoreError> {
            self.$field.shutdown(at)
        }
    };
    (@reset_counters $field:ident) => {
        fn reset_counters(&mut self, at: SimTime) {
            self.$field.reset_counters(at);
        }
    };
}
use pass_on;
