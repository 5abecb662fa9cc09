//! The integration tests of this crate, in one program.

mod conformance;
mod host_file;
mod hostile;
mod kill;
mod snapshot;
