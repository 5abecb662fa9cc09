//! Tests of the layers of the host.

mod closed_forms;
mod crash;
mod latency;
mod limits;
mod random;
mod support;
