//! The integration tests of this crate, in one program.

mod images;
mod journal;
