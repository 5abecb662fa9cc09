//! NVM sets: a device divided by dies, each part with a translation layer of its own.
//!
//! * [`SetLayout`] says which dies belong to which set: traditional, vertical, horizontal (rows S2-02 to S2-04) or any list;
//! * [`Part`] is the flash device that one set sees: some dies of a shared device, with addresses and counters of its own.

mod layout;
mod part;

pub use layout::{LayoutError, SetLayout};
pub use part::{Part, Shared, share};
