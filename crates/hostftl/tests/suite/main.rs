//! Tests of the layers of the host.

mod crash;
mod random;
mod support;
