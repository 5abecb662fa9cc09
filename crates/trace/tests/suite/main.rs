//! The integration tests of this crate, in one program.

mod conformance;
mod golden;
mod public;
mod round_trip;
mod stats;
mod workload;
