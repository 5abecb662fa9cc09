//! The integration tests of this crate, in one program.

mod mqsim;
mod replay;
mod zoned_jobs;
mod zones;
