//! The integration tests of this crate, in one program.

mod apart;
mod attaching;
mod caches;
mod mirrored;
mod support;
