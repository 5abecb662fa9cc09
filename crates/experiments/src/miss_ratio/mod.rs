//! How often caches miss: eviction policies alone over a workload, without data, time or devices.
//!
//! * [`advise()`]: the curves of many policies, and what follows from them.
//! * [`simulate()`]: any number of caches over one reading of a workload.

mod advise;
mod feed;
mod simulate;

pub use advise::{AdviseCase, AdviseOptions, Advised, advise};
pub use simulate::{Case, Replacement, SimulateOptions, simulate};
