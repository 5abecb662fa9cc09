//! The integration tests of this crate, in one program.

mod admission;
mod campaign;
mod cleaning;
mod crash;
mod cutoff;
mod designs;
mod engine;
mod failure;
mod flushes;
mod model;
mod open;
mod presets;
mod rig;
mod support;
mod time;
mod volumes;
