//! The integration tests of this crate, in one program.

mod docs;
mod parse;
