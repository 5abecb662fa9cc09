//! Suites that every implementation of a contract must pass. A dev-dependency only.
//!
//! * [`conformance`]: any translation layer against a plain array of bytes.
//! * [`shrink`]: makes a failing list of steps short enough to read.

pub mod conformance;
pub mod shrink;
