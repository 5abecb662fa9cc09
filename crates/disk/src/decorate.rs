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

/// What a store around another one says as that one does.
macro_rules! pass_on {
    ($field:ident) => {
        fn shape(&self) -> StoreShape {
            self.$field.shape()
        }
        fn allocation(&self, extent: Extent) -> Allocation {
            self.$field.allocation(extent)
        }
        fn flash(&self) -> Option<&dyn Subsystem> {
            self.$field.flash()
        }
    };
}
use pass_on;
