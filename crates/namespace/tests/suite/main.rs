//! The integration tests of this crate, in one program.

mod admin;
mod directives;
mod predictable;
mod sets;
mod store;
mod subsystem;
mod vector;
mod zones;
