//! What a server counts and measures while it runs.
//!
//! * `document`: the shape of what is told, with the names of the result document where it has them.
//! * `totals`: what was measured since the start, and in the last seconds.
//! * `gather`: both, and the counters of the stack, in one document.

mod document;
mod gather;
mod totals;

pub use document::{
    ClockStat, FaultStat, Interval, Latencies, NamespaceStat, PaceStat, QueueStat, ServerStat, ServiceStat,
    Space, Stat,
};
pub(crate) use totals::Totals;
