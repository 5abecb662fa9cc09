//! NVM sets: a device divided by dies, each part with a translation layer of its own.
//!
//! * [`SetLayout`]: the dies of each set: traditional, vertical, horizontal [sets-article layouts], any list;
//! * [`Part`]: the flash device of one set: some dies of a shared device, with own addresses and counters;
//!   also some blocks of each die;
//! * [`Processor`]: what runs the layers of sets, where its time counts;
//! * [`PredictableLatency`]: deterministic windows; the other types are identify data and log pages.

mod identify;
mod layout;
mod part;
mod predictable;
mod processor;

pub use identify::{
    EnduranceGroupLog, IDENTIFY_BYTES, ReadRecovery, SetAttributes, controller_attribute, encode_group_list,
    encode_set_list,
};
pub use layout::{LayoutError, SetLayout};
pub use part::{Order, Part, Shared, share};
pub use predictable::{
    Budget, PlmConfig, PlmError, PlmLog, PredictableLatency, Window, encode_aggregate, event,
};
pub use processor::Processor;
