//! The integration tests of this crate, in one program.

mod block_file;
mod mount;
