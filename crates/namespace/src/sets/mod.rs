//! NVM sets: a device divided by dies, each part with a translation layer of its own.
//!
//! * [`SetLayout`] says which dies belong to which set: traditional, vertical, horizontal
//!   [sets-article layouts] or any list;
//! * [`Part`] is the flash device that one set sees: some dies of a shared device, with addresses and
//!   counters of its own;
//! * [`PredictableLatency`] is the state machine of deterministic windows; the other types are the standard's
//!   identify data and log pages.

mod identify;
mod layout;
mod part;
mod predictable;

pub use identify::{
    EnduranceGroupLog, IDENTIFY_BYTES, ReadRecovery, SetAttributes, controller_attribute, encode_group_list,
    encode_set_list,
};
pub use layout::{LayoutError, SetLayout};
pub use part::{Part, Shared, share};
pub use predictable::{
    Budget, PlmConfig, PlmError, PlmLog, PredictableLatency, Window, encode_aggregate, event,
};
