//! The integration tests of this crate, in one program.

mod block_file;
mod forgetful;
mod mount;
mod object_fs;
mod object_mount;
