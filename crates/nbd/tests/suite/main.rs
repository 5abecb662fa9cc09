//! The integration tests of this crate, in one program.

mod paced;
mod serving;
mod support;
mod tls;
