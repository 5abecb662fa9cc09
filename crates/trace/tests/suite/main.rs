//! The integration tests of this crate, in one program.

mod conformance;
mod contract;
mod database;
mod fast13;
mod golden;
mod lsm;
mod public;
mod round_trip;
mod stats;
mod uflip;
mod workload;
mod zoned;
