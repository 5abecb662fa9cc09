//! The integration tests of this crate, in one program.

mod mqsim;
mod replay;
mod zones;
