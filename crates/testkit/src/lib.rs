//! Suites that every implementation of a contract must pass. A dev-dependency only.
//!
//! * [`allocator`]: what a test holds in memory.
//! * [`campaign`]: anything over stores that fail at every operation, go on, end and begin again.
//! * [`checksums`]: of damaged metadata, made right again.
//! * [`closed_forms`]: write amplification as the literature gives it.
//! * [`conformance`]: any translation layer against a plain array of bytes.
//! * [`crash`]: any translation layer over a device whose power is cut at every operation.
//! * [`objects`]: any store of objects, against plain ones and over losses of power.
//! * [`store`]: any store, and [`subsystem`]: any subsystem, a cache too, against plain arrays of bytes, with
//!   commands that overlap.
//! * [`shrink`]: makes a failing list of steps short enough to read.

pub mod allocator;
pub mod campaign;
pub mod checksums;
pub mod closed_forms;
mod commands;
pub mod conformance;
pub mod crash;
pub mod objects;
pub mod shrink;
pub mod store;
pub mod subsystem;
