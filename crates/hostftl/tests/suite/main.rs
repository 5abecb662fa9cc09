//! Tests of the layers of the host.

mod closed_forms;
mod crash;
mod dm_zoned;
mod latency;
mod limits;
mod random;
mod support;
